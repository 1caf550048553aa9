"""The front of the local cloud: counts API calls, and lets them at moto one by one."""

import io
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

# The access key of clients that only watch, such as the demo's screen.
OBSERVER_KEY = "observer"

type Environ = dict[str, Any]
type App = Callable[[Environ, Any], Iterable[bytes]]

S3_OBJECT = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
S3_BUCKET = {"GET": "ListObjects", "PUT": "CreateBucket", "HEAD": "HeadBucket"}


class Front:
    """A WSGI layer above moto. `calls`: "ec2:CreateFleet", in IAM's words, -> how often.

    moto's server runs a thread per request and its backends take no locks: of 30 rounds of
    eight planners that committed at once, one had two winners. SQS stays outside the lock,
    since a long poll would keep everybody waiting; its queues have a lock of their own.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.calls: Counter[str] = Counter()
        self.counting = Lock()
        self.serving = Lock()

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        name = call_name(environ)
        with self.counting:
            self.calls.update([name] if name else [])
        _, service = signed_by(environ)
        if service == "sqs":
            return self.app(environ, start_response)
        with self.serving:
            return self.app(environ, start_response)

    def snapshot(self) -> Counter[str]:
        with self.counting:
            return Counter(self.calls)


def signed_by(environ: Environ) -> tuple[str, str]:
    """Access key and service in the scope of a request's signature; "" for unsigned ones."""
    scope = environ.get("HTTP_AUTHORIZATION", "").split("Credential=")[-1].split(",")[0]
    parts = scope.split("/")
    if len(parts) != len(("key", "date", "region", "service", "aws4_request")):
        return "", ""
    return parts[0], parts[3]


def call_name(environ: Environ) -> str:
    """The API call in a request; "" for what is none, such as moto's own pages, or an observer's.

    JSON services name it in X-Amz-Target, query services in the form's Action, S3 by method
    and path.
    """
    key, service = signed_by(environ)
    if not service or key == OBSERVER_KEY:
        return ""
    if target := environ.get("HTTP_X_AMZ_TARGET", ""):
        return f"{service}:{target.split('.')[-1]}"
    if service == "s3":
        is_object = "/" in environ.get("PATH_INFO", "").strip("/")
        method = environ.get("REQUEST_METHOD", "")
        return f"s3:{(S3_OBJECT if is_object else S3_BUCKET).get(method, method)}"
    return f"{service}:{_form_action(environ)}"


def _form_action(environ: Environ) -> str:
    """The Action field of a form; the body is put back for moto to read."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return parse_qs(body.decode(errors="replace")).get("Action", ["unknown"])[0]
