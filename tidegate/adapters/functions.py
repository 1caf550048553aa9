"""Deployed Lambda functions, from outside: where their cluster keeps what, and a call of one."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_function_not_found, tolerating
from tidegate.core.model.errors import Permanent
from tidegate.wire.finite import parse_json

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

SAID_CHARS = 300


def read_environment(client: "LambdaClient", name: str) -> Mapping[str, str] | None:
    """The variables of a function; None: there is no such function.

    Errors: Throttled, NotAuthorized.
    """
    with aws_call():
        answer = tolerating(
            lambda: client.get_function_configuration(FunctionName=name), is_function_not_found
        )
    if isinstance(answer, ClientError):
        return None
    return answer.get("Environment", {}).get("Variables", {})


def invoke(client: "LambdaClient", name: str, event: Mapping[str, object]) -> None:
    """Have it run soon; its answer is not waited for. Errors: Throttled, NotAuthorized."""
    with aws_call():
        client.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps(event).encode())


def answer_of(client: "LambdaClient", name: str, event: Mapping[str, object]) -> Any:
    """Have it run, and what it answers. Errors: Throttled, NotAuthorized; Permanent, it failed."""
    with aws_call():
        done = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        said = done["Payload"].read().decode()
    if done.get("FunctionError"):
        raise Permanent(f"the function {name} failed: {said[:SAID_CHARS]}")
    return parse_json(said)
