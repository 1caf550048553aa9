"""CloudFormation: the templates that are deployed."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_stack_not_found, tolerating
from tidegate.wire.finite import parse_json

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


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
