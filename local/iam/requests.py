"""What a raw request asks for: the API call, read the way its service's protocol writes it.

Source: Smithy's AWS JSON, AWS query, EC2 query and REST protocols, as in botocore's models.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.utils import get_service_model

from local.iam.patterns import Context, NotModelledError

type Environ = dict[str, Any]

# Services whose signatures carry another name than their actions do.
PREFIXES = {"monitoring": "cloudwatch"}

# SigV4's scope: key, date, region, service, "aws4_request".
SCOPE_PARTS = 5

# Smithy's RPC over CBOR, which CloudWatch speaks.
RPC_PATH = re.compile(r"/service/[^/]+/operation/(\w+)")
FUNCTION_PATH = re.compile(r"/2015-03-31/functions/([^/]+)/(invocations|configuration)")
GROUP_CALLS = {"/list-group-resources": "ListGroupResources"}
MAIL_CALLS = {"/v2/email/outbound-emails": "SendEmail"}
SUPPRESSED = "/v2/email/suppression/addresses/"
FUNCTION_CALLS = {
    ("POST", "invocations"): "Invoke",
    ("GET", "configuration"): "GetFunctionConfiguration",
}


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed a request, for which region and service; all "" for an unsigned one."""

    key: str = ""
    region: str = ""
    service: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """An API call. `service` is IAM's prefix, `name` the operation; `params` as its model names
    them, for S3 the query string.
    """

    service: str
    name: str
    region: str
    account: str
    params: Mapping[str, Any]
    path: str = ""

    def arn(self, resource: str, *, service: str = "", account: str | None = None) -> str:
        """The ARN of a resource in the call's own region and account."""
        owner = self.account if account is None else account
        return f"arn:aws:{service or self.service}:{self.region}:{owner}:{resource}"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that IAM must allow. `is_launch`: asked by a fleet as it launches."""

    action: str
    resource: str
    context: Context = field(default_factory=dict)
    is_launch: bool = False


def signer_of(environ: Environ) -> Signer:
    """From the Authorization header, or from the query string of a presigned URL."""
    header = environ.get("HTTP_AUTHORIZATION", "")
    scope = header.split("Credential=")[-1].split(",")[0]
    if not header:
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        scope = query.get("X-Amz-Credential", "")
    parts = scope.split("/")
    return Signer(parts[0], parts[2], parts[3]) if len(parts) == SCOPE_PARTS else Signer()


def token_of(environ: Environ) -> str:
    """The session token that came with the signature."""
    query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    header = environ.get("HTTP_X_AMZ_SECURITY_TOKEN")
    return str(header or query.get("X-Amz-Security-Token", ""))


def read_call(environ: Environ, account: str) -> Call:
    """The call in a request; its body is put back for moto to read."""
    signer = signer_of(environ)
    service = PREFIXES.get(signer.service, signer.service)
    path = unquote(environ.get("PATH_INFO", ""))
    name, params = _name_and_params(environ, service, path)
    return Call(service, name, signer.region, account, params, path)


def _name_and_params(environ: Environ, service: str, path: str) -> tuple[str, Mapping[str, Any]]:
    if service == "s3":
        query = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return environ["REQUEST_METHOD"], dict(query)
    if target := environ.get("HTTP_X_AMZ_TARGET", ""):
        return target.split(".")[-1], json.loads(body_of(environ) or b"{}")
    if found := RPC_PATH.search(path):
        return found[1], {}
    if service == "lambda" and (found := FUNCTION_PATH.fullmatch(path)):
        name = FUNCTION_CALLS.get((environ["REQUEST_METHOD"], found[2]))
        if name:
            return name, {"FunctionName": found[1]}
    if service == "resource-groups" and path in GROUP_CALLS:
        return GROUP_CALLS[path], json.loads(body_of(environ) or b"{}")
    if service == "ses" and path in MAIL_CALLS:
        return MAIL_CALLS[path], json.loads(body_of(environ) or b"{}")
    if service == "ses" and path.startswith(SUPPRESSED) and environ["REQUEST_METHOD"] == "GET":
        return "GetSuppressedDestination", {}
    form = dict(parse_qsl(body_of(environ).decode(errors="replace"), keep_blank_values=True))
    if "Action" not in form:
        raise NotModelledError(f"{service} request {environ['REQUEST_METHOD']} {path}")
    return form["Action"], _query_params(service, form)


def _query_params(service: str, form: Mapping[str, str]) -> Mapping[str, Any]:
    name = form["Action"]
    if name.startswith(("Describe", "Get")) and name != "GetConsoleOutput":
        # No rule looks into these, and parsing costs.
        return {}
    model: Any = get_service_model(service)
    if name not in model.operation_names:
        raise NotModelledError(f"{service}:{name}")
    parser: Any = PROTOCOL_PARSERS[model.metadata["protocol"]](model.operation_model(name))
    params: Mapping[str, Any] = parser.parse({"values": form})
    return params


def is_dry_run(call: Call) -> bool:
    """Whether EC2 is only asked what it would say."""
    return call.service == "ec2" and str(call.params.get("DryRun", "")).lower() == "true"


def is_s3_head(environ: Environ) -> bool:
    """Whether it is a HEAD of S3, whose answer has no body."""
    return signer_of(environ).service == "s3" and environ.get("REQUEST_METHOD") == "HEAD"


def body_of(environ: Environ) -> bytes:
    """The body, which is put back for moto to read."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body
