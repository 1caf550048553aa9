"""Signs what the head's Prometheus writes to a workspace of Amazon Managed Service for Prometheus.

A process of its own beside the agent, with the head's role. Prometheus cannot do it itself: the
packages of Debian 12 and Ubuntu 24.04 (2.42, 2.45) take `sigv4` in their configuration, end where
there are no credentials, and sign nothing: Debian's patch Disable_opentelemetry takes away the line
that puts the signer in. And only root and the agent's user reach the head's metadata service.
"""

import hmac
import logging
import os
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import override

from pydantic import BaseModel, ConfigDict, ValidationError

from tidegate.adapters.workspace import Workspace
from tidegate.agent.main import log_as_json
from tidegate.agent.settings import Url, Word
from tidegate.core.model.errors import Transient
from tidegate.wire.finite import FINITE

PREFIX = "TIDEGATE_REMOTE_WRITE_"
# Sources: Prometheus Remote-Write 1.0, "Protocol" (headers), "Retries & Backoff" (4xx is given up,
# but 429; 5xx is tried again).
PASSED_ON = ("Content-Encoding", "Content-Type", "User-Agent", "X-Prometheus-Remote-Write-Version")
# Who may write is mended by people or by IAM within seconds, so those samples are tried again.
NOT_YET = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
# A thousand samples, packed, are some 50 kB.
BODY_MAX = 8 * 2**20
# Prometheus keeps its connections open.
SILENCE_S = 300.0

logger = logging.getLogger("tidegate.remote_write")


class Settings(BaseModel):
    """What the head's boot says as TIDEGATE_REMOTE_WRITE_<NAME>.

    `token`: the file with the secret that Prometheus shows, so that nobody else on the head writes.
    """

    model_config = ConfigDict(frozen=True, **FINITE)

    url: Url
    region: Word
    token: Path
    port: int
    role: Word | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Errors: ValidationError."""
        names = {name: f"{PREFIX}{name.upper()}" for name in cls.model_fields}
        given = {name: environment[key] for name, key in names.items() if environment.get(key)}
        return cls.model_validate(given)


class Relay(ThreadingHTTPServer):
    """Listens on this machine alone. Says once what the workspace answers, until that changes."""

    daemon_threads = True

    def __init__(self, port: int, token: str, workspace: Workspace) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token, self.workspace = token, workspace
        self._lock, self._said = threading.Lock(), ""

    def forward(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """The status for Prometheus, and why."""
        try:
            answer = self.workspace.write(body, headers)
        except Transient as error:
            self._say(f"Metrics do not reach the workspace, and are tried again: {error}")
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            self._say("Metrics reach the workspace.")
            return answer.status, ""
        why = f"{answer.status} {answer.text}"
        if answer.status in NOT_YET:
            self._say(f"The workspace lets nobody write who comes with this role: {why}")
            return HTTPStatus.SERVICE_UNAVAILABLE, why
        self._say(f"The workspace does not take metrics: {why}")
        return answer.status, why

    def _say(self, what: str) -> None:
        kind = what[:60]
        with self._lock:
            is_news, self._said = kind != self._said, kind
        if is_news:
            logger.info("%s", what)


class Handler(BaseHTTPRequestHandler):
    """One write of Prometheus."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_S
    server: Relay

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > BODY_MAX:
            self.close_connection = True
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "no length, or too long")
            return
        body = self.rfile.read(int(size))
        shown = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(shown, f"Bearer {self.server.token}".encode()):
            self._answer(HTTPStatus.FORBIDDEN, "this is the door of the head's Prometheus")
            return
        headers = {name: value for name in PASSED_ON if (value := self.headers.get(name))}
        self._answer(*self.server.forward(body, headers))

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Each write would be a line."""


def main() -> None:
    """Run until it is stopped; exit 2: bad settings."""
    log_as_json()
    try:
        settings = Settings.from_environment(os.environ)
        token = settings.token.read_text().strip()
    except (ValidationError, OSError) as error:
        logger.critical("%s", error)
        sys.exit(2)
    workspace = Workspace(settings.url, settings.region, settings.role)
    Relay(settings.port, token, workspace).serve_forever()
