"""Writes of metrics to a workspace of Amazon Managed Service for Prometheus, signed by botocore."""

from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from tidegate.adapters.clients import CONNECT_S, credentials
from tidegate.core.model.errors import Transient
from tidegate.core.model.frozen import frozen

# As IAM and the signature call the service (service authorization reference).
SERVICE = "aps"
# Prometheus waits 30 s for an answer itself (`remote_timeout`).
READ_S = 20.0
# As many as its queue has shards (userdata/head/prometheus.yml.j2).
CONNECTIONS = 20


@frozen
class Answer:
    """`text`: why it was refused, as the workspace says it."""

    status: int
    text: str


class Workspace:
    """`role`: of another account, which is assumed for it; None: this machine's own."""

    def __init__(self, url: str, region: str, role: str | None) -> None:
        self._url, self._region, self._role = url, region, role
        self._credentials: Any = None
        session: Any = URLLib3Session
        self._http = session(
            timeout=(CONNECT_S, READ_S),
            proxies=get_environ_proxies(url),
            max_pool_connections=CONNECTIONS,
        )

    def write(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """What the workspace says of it. Errors: Transient, when it or STS was not reached."""
        request: Any = AWSRequest("POST", self._url, data=body, headers=dict(headers))
        try:
            SigV4Auth(self._keys(), SERVICE, self._region).add_auth(request)
            answer = self._http.send(request.prepare())
        except (BotoCoreError, ClientError) as error:
            raise Transient(str(error)) from error
        return Answer(answer.status_code, answer.text[:300])

    def _keys(self) -> Any:
        if self._credentials is None:
            self._credentials = credentials(self._role)
        return self._credentials.get_frozen_credentials()
