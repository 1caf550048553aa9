"""How each service says no, in its own shape.

Sources: IAM user guide, "Troubleshoot access denied error messages" (the words); botocore's
parsers (the shapes); for fleets the reports of Karpenter's users (aws/karpenter-provider-aws
issues 1488 and 7370), whose denied launches came back among a fleet's errors.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from local.iam.evaluate import Decision, Verdict
from local.iam.requests import Call, Check

JSON_SERVICES = frozenset({"dynamodb", "events", "logs", "pricing", "secretsmanager", "sqs", "ssm"})
REST_JSON_SERVICES = frozenset({"lambda", "resource-groups", "scheduler"})
FORBIDDEN = "403 Forbidden"
THROTTLING_CODES = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "ec2": "RequestLimitExceeded",
    "lambda": "TooManyRequestsException",
    "resource-groups": "TooManyRequestsException",
    "s3": "SlowDown",
}
SERVER_ERROR_CODES = {
    "dynamodb": "InternalServerError",
    "ec2": "InternalError",
    "lambda": "ServiceException",
    "s3": "InternalError",
}
REQUEST_ID = "00000000-0000-0000-0000-000000000000"
EC2_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over HTTP. `status` as WSGI writes it."""

    status: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def send(self, start_response: Any) -> Iterable[bytes]:
        start_response(self.status, [("Content-Length", str(len(self.body))), *self.headers])
        return [self.body]


def sentence(session_arn: str, check: Check, decision: Decision) -> str:
    """What IAM says of a denial."""
    said = f"User: {session_arn} is not authorized to perform: {check.action}"
    if check.resource != "*":
        said += f" on resource: {check.resource}"
    if decision.verdict is Verdict.DENIED:
        named = ", ".join(decision.statements)
        return f"{said} with an explicit deny in an identity-based policy ({named})"
    return f"{said} because no identity-based policy allows the {check.action} action"


def access_denied(service: str, message: str, *, is_head: bool = False) -> Answer:
    """The service's own access-denied error; a HEAD has no body to say more in."""
    code = "AccessDenied"
    if service == "ec2":
        code = "UnauthorizedOperation"
        message = f"You are not authorized to perform this operation. {message}"
    elif service in REST_JSON_SERVICES | JSON_SERVICES:
        code = "AccessDeniedException"
    return _failed(service, code, message, query_code="AccessDenied", is_head=is_head)


def unknown_key(service: str, *, is_head: bool = False) -> Answer:
    """The service's own words for a key that nobody gave out."""
    said = "The security token included in the request is invalid."
    if service == "ec2":
        return _ec2("401 Unauthorized", "AuthFailure", said)
    code = "InvalidClientTokenId"
    if service == "s3":
        code = "InvalidAccessKeyId"
    elif service in REST_JSON_SERVICES | JSON_SERVICES:
        code = "UnrecognizedClientException"
    return _failed(service, code, said, query_code="InvalidClientTokenId", is_head=is_head)


def throttled(service: str, *, is_head: bool = False) -> Answer:
    """Source: the error codes of each service's API reference."""
    code = THROTTLING_CODES.get(service, "ThrottlingException")
    status = "503 Slow Down" if service in ("ec2", "s3") else "400 Bad Request"
    return _failed(service, code, "Rate exceeded", status=status, is_head=is_head)


def server_error(service: str, *, is_head: bool = False) -> Answer:
    """Source: the error codes of each service's API reference."""
    code = SERVER_ERROR_CODES.get(service, "InternalFailure")
    said, status = "We encountered an internal error.", "500 Internal Server Error"
    return _failed(service, code, said, status=status, is_head=is_head)


def unsupported(service: str, said: str) -> Answer:
    """Of what AWS knows and the local cloud does not."""
    return _failed(service, "UnsupportedOperation", said, status="400 Bad Request")


def unsigned() -> Answer:
    return _query("MissingAuthenticationToken", "Request is missing Authentication Token")


def denied_fleet(call: Call, message: str) -> Answer:
    said = f"You are not authorized to perform this operation. {message}"
    return failed_fleet(call, "UnauthorizedOperation", said)


def refused_by_ec2(code: str, message: str) -> Answer:
    return _ec2(FORBIDDEN, code, message)


def failed_fleet(call: Call, code: str, message: str) -> Answer:
    """A fleet whose launches were all refused: it is made, has no instance, and says so."""
    items = "".join(_fleet_errors(call, code, message))
    body = (
        f'<CreateFleetResponse xmlns="{EC2_NAMESPACE}"><requestId>{REQUEST_ID}</requestId>'
        f"<fleetId>fleet-{REQUEST_ID}</fleetId><errorSet>{items}</errorSet>"
        "<fleetInstanceSet/></CreateFleetResponse>"
    )
    return _xml("200 OK", body)


def _fleet_errors(call: Call, code: str, message: str) -> Iterator[str]:
    market = call.params["TargetCapacitySpecification"].get("DefaultTargetCapacityType")
    for config in call.params["LaunchTemplateConfigs"]:
        template = config.get("LaunchTemplateSpecification") or {}
        for override in config.get("Overrides") or [{}]:
            yield (
                "<item><launchTemplateAndOverrides>"
                f"<launchTemplateSpecification>{_elements(template)}"
                f"</launchTemplateSpecification><overrides>{_elements(override)}</overrides>"
                f"</launchTemplateAndOverrides><lifecycle>{market}</lifecycle>"
                f"<errorCode>{code}</errorCode>"
                f"<errorMessage>{escape(message)}</errorMessage></item>"
            )


def _elements(fields: Mapping[str, Any]) -> str:
    """The plain fields as EC2 writes them, with a small first letter."""
    plain = {name: value for name, value in fields.items() if isinstance(value, str | float)}
    return "".join(
        f"<{name[0].lower()}{name[1:]}>{escape(str(value))}</{name[0].lower()}{name[1:]}>"
        for name, value in plain.items()
    )


def _failed(
    service: str,
    code: str,
    message: str,
    *,
    query_code: str = "",
    status: str = "",
    is_head: bool = False,
) -> Answer:
    """In the shape of the service; `status` "": the one it has for a refusal."""
    if service == "ec2":
        return _ec2(status or FORBIDDEN, code, message)
    if service == "s3":
        return _s3(status or FORBIDDEN, code, message, is_head=is_head)
    if service in REST_JSON_SERVICES:
        return _rest_json(status or FORBIDDEN, code, message)
    if service in JSON_SERVICES:
        return _json(service, code, message, status=status, query_code=query_code or code)
    return _query(code, message, status=status or FORBIDDEN)


def _ec2(status: str, code: str, message: str) -> Answer:
    error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    body = f"<Response><Errors>{error}</Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
    return _xml(status, body)


def _query(code: str, message: str, *, status: str = FORBIDDEN) -> Answer:
    error = f"<Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message>"
    return _xml(
        status,
        f"<ErrorResponse><Error>{error}</Error><RequestId>{REQUEST_ID}</RequestId></ErrorResponse>",
    )


def _s3(status: str, code: str, message: str, *, is_head: bool) -> Answer:
    if is_head:
        return Answer(status)
    error = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    return _xml(status, f"<Error>{error}<RequestId>{REQUEST_ID}</RequestId></Error>")


def _xml(status: str, body: str) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    return Answer(status, text.encode(), (("Content-Type", "text/xml;charset=UTF-8"),))


def _json(service: str, code: str, message: str, *, status: str, query_code: str) -> Answer:
    """SQS also sends the code that it had when it still spoke the query protocol."""
    headers = [("Content-Type", "application/x-amz-json-1.0")]
    if service == "sqs":
        headers.append(("x-amzn-query-error", f"{query_code};Sender"))
    body = {"__type": f"com.amazonaws.{service}#{code}", "message": message}
    return Answer(status or "400 Bad Request", json.dumps(body).encode(), tuple(headers))


def _rest_json(status: str, code: str, message: str) -> Answer:
    headers = (("Content-Type", "application/json"), ("x-amzn-ErrorType", code))
    return Answer(status, json.dumps({"message": message}).encode(), headers)
