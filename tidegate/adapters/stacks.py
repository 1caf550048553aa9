"""CloudFormation: the templates that are deployed, and how the stacks are."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_stack_not_found, tolerating
from tidegate.core.model.frozen import frozen
from tidegate.wire.finite import parse_json

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


@frozen
class StackState:
    """CloudFormation's word for it (`UPDATE_COMPLETE`), and its reason or ""."""

    status: str
    reason: str


def stack_state(client: "CloudFormationClient", stack: str) -> StackState | None:
    """None: there is no such stack. Errors: Throttled, NotAuthorized."""
    with aws_call():
        answer = tolerating(lambda: client.describe_stacks(StackName=stack), is_stack_not_found)
    if isinstance(answer, ClientError):
        return None
    found = answer["Stacks"][0]
    return StackState(found["StackStatus"], found.get("StackStatusReason", ""))


def deployed_template(client: "CloudFormationClient", stack: str) -> dict[str, Any]:
    """The stack's template as it is deployed; empty when there is no such stack.

    Errors: Throttled, NotAuthorized.
    """
    with aws_call():
        answer = tolerating(
            lambda: client.get_template(StackName=stack, TemplateStage="Processed"),
            is_stack_not_found,
        )
    if isinstance(answer, ClientError):
        return {}
    body: Any = answer["TemplateBody"]
    return dict(parse_json(body) if isinstance(body, str) else body)
