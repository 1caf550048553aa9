"""AWS clients of the local cloud.

All of one session: it reads a service's description once. A session of its own costs each client
0.1 s of processor time, EC2's and EventBridge's more.
"""

from functools import cache
from threading import Lock
from typing import Any

from botocore.config import Config

from tidegate.adapters.clients import LONG_POLL, Session, client_config

REGION = "us-east-1"

# Sessions may not be shared by threads, clients may.
_MAKING = Lock()


def client_at(
    url: str,
    service: str,
    access_key: str,
    secret_key: str = "local",
    token: str | None = None,
    *,
    config: Config | None = None,
) -> Any:
    """A client of the cloud at `url` with these keys, set up as the product sets up its own."""
    make: Any = _session().client
    with _MAKING:
        return make(
            service,
            region_name=REGION,
            endpoint_url=url,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            aws_session_token=token,
            config=config or client_config(LONG_POLL),
        )


@cache
def _session() -> Session:
    return Session()
