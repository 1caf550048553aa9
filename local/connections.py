"""Connections that stay open from one request to the next, as those of AWS do.

werkzeug closes each after its answer: for every call of a client there was a new one, with a thread
of its own to serve it, a third of what a call costs.
"""

import io
import socket
import traceback
from contextlib import suppress
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.exceptions import InternalServerError
from werkzeug.serving import ThreadedWSGIServer

from local.trouble import App, Environ

type Said = tuple[str, list[tuple[str, str]], bytes]

# RFC 9110: their answers have no content.
NO_CONTENT = ("204", "304")


class Connection(MotoRequestHandler):
    """Answers one request after the other, and logs none of them."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    # What is written waits for the end of the answer, and nothing for who acknowledges it.
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.open_connections.add(self.connection)

    def finish(self) -> None:
        self.server.open_connections.discard(self.connection)
        with suppress(ConnectionError):  # who asked has gone, with what was not yet sent
            super().finish()

    def run_wsgi(self) -> None:
        """One request. It is read to its end first: the rest would be taken for the next one."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        self.environ = environ = self.make_environ()
        is_chunked = bool(environ.get("wsgi.input_terminated"))
        self.close_connection |= is_chunked  # the last chunk may be followed by more headers
        length = -1 if is_chunked else int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        self._answer(*answered(self.server.app, environ))

    def _answer(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, words = status.partition(" ")
        self.send_response(int(code), words)
        told = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in told and self.command != "HEAD" and code not in NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: a line per call hides what a demo or a failing test prints."""


def answered(app: App, environ: Environ) -> Said:
    """Status, headers and body. Errors: ConnectionError, where there is to be no answer."""
    try:
        return _said_by(app, environ)
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, the client is told, as by werkzeug
        traceback.print_exc()
        return _said_by(InternalServerError(), environ)


def _said_by(app: App, environ: Environ) -> Said:
    head: list[Any] = []

    def start_response(*said: Any) -> None:
        head[:] = said

    body = app(environ, start_response)
    try:
        return head[0], head[1], b"".join(body)
    finally:
        getattr(body, "close", lambda: None)()


class Server(ThreadedWSGIServer):
    """A thread for each connection; with the server all of them end."""

    def __init__(self, host: str, port: int, app: App) -> None:
        self.open_connections: set[socket.socket] = set()
        super().__init__(host, port, app, Connection)

    def server_close(self) -> None:
        super().server_close()
        for each in list(self.open_connections):
            with suppress(OSError):  # the client has ended it just now
                each.shutdown(socket.SHUT_RDWR)
