"""The front of the local cloud: counts API calls, asks IAM, and lets them at moto one by one.

What a test ordered happens to them on the way (local/trouble.py).
"""

import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock, RLock
from typing import Any, assert_never
from urllib.parse import parse_qs, unquote

from local.iam import answers
from local.iam.answers import Answer
from local.iam.authorizer import Authorizer
from local.iam.gate import Gate
from local.iam.managed import install_managed_policies
from local.iam.requests import body_of, is_s3_head, signer_of
from local.iam.simulator import install_simulator
from local.prices import LocalPrices, get_products
from local.trouble import App, ConnectionLost, Environ, Fault, Trouble, Troubles

# The access key of clients that only watch, such as the demo's screen.
OBSERVER_KEY = "observer"

# Keys that may do everything. ASIALOCAL is what machines without a role are given.
ADMINISTRATORS = frozenset({"local", OBSERVER_KEY, "ASIALOCAL"})

S3_OBJECT = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
S3_BUCKET = {"GET": "ListObjects", "PUT": "CreateBucket", "HEAD": "HeadBucket"}

# Source: Lambda API reference, Invoke.
_INVOKED = re.compile(r"/2015-03-31/functions/(?P<function>[^/]+)/invocations")

# Name, payload and whether its answer is waited for -> the answer, or nothing.
type Invoke = Callable[[str, bytes, bool], bytes]


class Front:
    """A WSGI layer above moto. `calls`: "ec2:CreateFleet", in IAM's words, -> how often.

    moto's server runs a thread per request and its backends take no locks: of 30 rounds of
    eight planners that committed at once, one had two winners. SQS stays outside the lock,
    since a long poll would keep everybody waiting; its queues have a lock of their own.

    Who signs with credentials of an assumed role may do what that role's policies allow.
    `authorizer.log` holds what was asked of IAM.
    """

    def __init__(self, app: App, prices: LocalPrices) -> None:
        self.app = app
        self.prices = prices
        self.calls: Counter[str] = Counter()
        self.counting = Lock()
        # Reentrant: what moto does in answer to a request may ask the authorizer itself.
        self.serving = RLock()
        self.authorizer = Authorizer(lock=self.serving)
        self.troubles = Troubles()
        #: Runs a function; None: moto answers, by Docker.
        self.invoke: Invoke | None = None
        self.gate = Gate(self.authorizer, ADMINISTRATORS)
        install_managed_policies()
        install_simulator()

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        name = call_name(environ)
        with self.counting:
            self.calls.update([name] if name else [])
        trouble = self.troubles.take(name, lambda: _text(environ))
        if trouble is None:
            return self._serve(environ, start_response)
        return self._troubled(trouble, environ, start_response)

    def _serve(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        with self.serving:
            refusal = self.gate.refusal(environ)
            if refusal:
                return refusal.send(start_response)
        if self.invoke and (found := _INVOKED.fullmatch(environ.get("PATH_INFO", ""))):
            # Outside of the lock: the function makes calls of its own.
            is_waited_for = environ.get("HTTP_X_AMZ_INVOCATION_TYPE") != "Event"
            said = self.invoke(unquote(found["function"]), body_of(environ), is_waited_for)
            status = "200 OK" if is_waited_for else "202 Accepted"
            return Answer(status, said, (("Content-Type", "application/json"),)).send(
                start_response
            )
        with self.serving:
            if signer_of(environ).service == "pricing":
                return get_products(self.prices, body_of(environ)).send(start_response)
            if signer_of(environ).service != "sqs":
                return self._ask_moto(environ, start_response)
        return self._ask_moto(environ, start_response)

    def _ask_moto(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        try:
            return self.app(environ, start_response)
        except NotImplementedError as lack:
            service = signer_of(environ).service
            return answers.unsupported(service, str(lack)).send(start_response)

    def _troubled(self, trouble: Trouble, environ: Environ, start_response: Any) -> Iterable[bytes]:
        service, head = signer_of(environ).service, is_s3_head(environ)
        match trouble.fault:
            case Fault.THROTTLED:
                return answers.throttled(service, is_head=head).send(start_response)
            case Fault.SERVER_ERROR:
                return answers.server_error(service, is_head=head).send(start_response)
            case Fault.SLOW:
                self.troubles.delay(trouble)
                return self._serve(environ, start_response)
            case Fault.LOST_REQUEST:
                pass
            case Fault.LOST_ANSWER:
                b"".join(self._serve(environ, lambda *_: None))
            case _:
                assert_never(trouble.fault)
        self.troubles.delay(trouble)
        # Otherwise the connection is kept for the client's next request.
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionLost(trouble.call)

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
    if service == "resource-groups":
        words = environ.get("PATH_INFO", "").strip("/").split("-")
        return f"{service}:{''.join(word.capitalize() for word in words)}"
    return f"{service}:{_form_action(environ)}"


def _form_action(environ: Environ) -> str:
    """The Action field of a form."""
    return parse_qs(body_of(environ).decode(errors="replace")).get("Action", ["unknown"])[0]


def _text(environ: Environ) -> str:
    """Where a call says what it is about."""
    return f"{environ['PATH_INFO']}\n{body_of(environ).decode(errors='replace')}"
