"""The front of the local cloud: counts API calls, asks IAM, and lets them at moto one by one."""

import io
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock, RLock
from typing import Any
from urllib.parse import parse_qs

from local.iam.authorizer import Authorizer
from local.iam.gate import Gate
from local.iam.managed import install_managed_policies
from local.iam.requests import signer_of

# The access key of clients that only watch, such as the demo's screen.
OBSERVER_KEY = "observer"

# Keys that may do everything. ASIALOCAL is what machines without a role are given.
ADMINISTRATORS = frozenset({"local", OBSERVER_KEY, "ASIALOCAL"})

type Environ = dict[str, Any]
type App = Callable[[Environ, Any], Iterable[bytes]]

S3_OBJECT = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
S3_BUCKET = {"GET": "ListObjects", "PUT": "CreateBucket", "HEAD": "HeadBucket"}


class Front:
    """A WSGI layer above moto. `calls`: "ec2:CreateFleet", in IAM's words, -> how often.

    moto's server runs a thread per request and its backends take no locks: of 30 rounds of
    eight planners that committed at once, one had two winners. SQS stays outside the lock,
    since a long poll would keep everybody waiting; its queues have a lock of their own.

    Who signs with credentials of an assumed role may do what that role's policies allow.
    `authorizer.log` holds what was asked of IAM.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.calls: Counter[str] = Counter()
        self.counting = Lock()
        # Reentrant: what moto does in answer to a request may ask the authorizer itself.
        self.serving = RLock()
        self.authorizer = Authorizer(lock=self.serving)
        self.gate = Gate(self.authorizer, ADMINISTRATORS)
        install_managed_policies()

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        name = call_name(environ)
        with self.counting:
            self.calls.update([name] if name else [])
        with self.serving:
            refusal = self.gate.refusal(environ)
            if refusal:
                return refusal.send(start_response)
            if signer_of(environ).service != "sqs":
                return self.app(environ, start_response)
        return self.app(environ, start_response)

    def snapshot(self) -> Counter[str]:
        with self.counting:
            return Counter(self.calls)


def call_name(environ: Environ) -> str:
    """The API call in a request; "" for what is none, such as moto's own pages, or an observer's.

    JSON services name it in X-Amz-Target, query services in the form's Action, S3 by method
    and path.
    """
    signer = signer_of(environ)
    service = signer.service
    if not service or signer.key == OBSERVER_KEY:
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
