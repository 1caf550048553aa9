"""Sessions of deployed roles, as AWS's services assume them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from botocore.exceptions import ClientError

from local.clients import client_at
from local.cloud import LocalCloud
from local.router.deployed import FunctionSettings

# STS lets a session live for an hour; it is renewed a little before.
LAMBDA = "lambda.amazonaws.com"
SESSION_S = 3600
RENEWED_BEFORE_S = 300


class Authorizer(Protocol):
    """IAM's answers; `local.iam.authorizer.Authorizer` gives them."""

    def allows(
        self, role_arn: str, action: str, resource: str, context: dict[str, str] = ...
    ) -> bool: ...

    def trusts(self, role_arn: str, service: str, context: dict[str, str] = ...) -> bool: ...

    def resource_policy_allows(
        self,
        policy: dict[str, Any],
        principal_service: str,
        action: str,
        resource: str,
        context: dict[str, str] = ...,
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class Session:
    """Credentials of an assumed role. `good_until_s`: epoch seconds."""

    access_key: str
    secret_key: str
    token: str
    good_until_s: float

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_SESSION_TOKEN": self.token,
        }


@dataclass(slots=True)
class Roles:
    """Assumes roles of functions through STS of the local cloud, where they trust Lambda."""

    cloud: LocalCloud
    authorizer: Authorizer
    _sessions: dict[str, Session] = field(default_factory=dict)
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def session(self, role_arn: str, function_arn: str) -> Session | None:
        """Of Lambda, for a function; None: the role does not trust it, which moto would not ask."""
        account = function_arn.split(":")[4]
        context = {"aws:SourceArn": function_arn, "aws:SourceAccount": account}
        if not self.authorizer.trusts(role_arn, LAMBDA, context):
            return None
        with self._lock:
            known = self._sessions.get(role_arn)
            if known is None or known.good_until_s < time.time():
                known = self._sessions[role_arn] = self._assume(role_arn)
            return known

    def client(self, role_arn: str, function_arn: str, api: str) -> Any:
        """A client that acts as Lambda does for a function of this role; None: not trusted."""
        session = self.session(role_arn, function_arn)
        if session is None:
            return None
        with self._lock:
            key = (session.access_key, api)
            if key not in self._clients:
                self._clients[key] = self._make_client(session, api)
            return self._clients[key]

    def put_logs(self, settings: FunctionSettings, lines: Sequence[str]) -> None:
        """Put a function's lines into its log group, or nowhere when its role may not."""
        group, logs = settings.log_group, self.client(settings.role_arn, settings.arn, "logs")
        if logs is None:
            return
        now_ms = int(time.time() * 1000)
        events = [{"timestamp": now_ms, "message": line} for line in lines]
        stream = f"local/{time.time_ns()}"
        try:
            logs.create_log_stream(logGroupName=group, logStreamName=stream)
            logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
        except ClientError:
            return

    def _assume(self, role_arn: str) -> Session:
        given = self.cloud.observer("sts").assume_role(
            RoleArn=role_arn, RoleSessionName="lambda", DurationSeconds=SESSION_S
        )["Credentials"]
        return Session(
            given["AccessKeyId"],
            given["SecretAccessKey"],
            given["SessionToken"],
            time.time() + SESSION_S - RENEWED_BEFORE_S,
        )

    def _make_client(self, session: Session, api: str) -> Any:
        url = self.cloud.endpoint_url
        return client_at(url, api, session.access_key, session.secret_key, session.token)
