"""EC2 asked whether it would launch, without a launch.

Source: EC2 API reference, RunInstances and CreateFleet, DryRun: it tells whether the rights are
there, by DryRunOperation or UnauthorizedOperation; nothing is said of capacity or quotas.
"""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import (
    aws_call,
    code_of,
    is_answer_of_dry_run,
    is_bad_combination,
    is_by_organization,
    is_denied,
    is_dry_run_passed,
    is_without_network,
    message_of,
    tolerating,
)
from tidegate.core.model.frozen import frozen

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


@frozen
class Refused:
    """EC2's word against a launch.

    `is_of_caller`: who asks lacks a right, by no policy that holds for everybody in the account.
    `is_of_network`: there is no default VPC to ask in. `is_of_shape`: of parameters that exclude
    each other, before anything else was judged.
    """

    code: str
    said: str
    is_of_caller: bool
    is_of_network: bool
    is_of_shape: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.said}"


def try_launch(
    client: "EC2Client",
    *,
    image: str,
    instance_type: str,
    zone: str,
    subnet_id: str,
    is_spot: bool,
) -> Refused | None:
    """One instance; None: it would be launched. `subnet_id` "": in the default VPC.

    The metadata options stand in the request: policies with conditions on them look there, not into
    a template (aws/karpenter-provider-aws#9256). Errors: Throttled.
    """
    where: dict[str, Any] = (
        {"SubnetId": subnet_id} if subnet_id else {"Placement": {"AvailabilityZone": zone}}
    )
    if is_spot:
        where["InstanceMarketOptions"] = {"MarketType": "spot"}
    return refused_by(
        client.run_instances,
        ImageId=image,
        InstanceType=instance_type,
        MinCount=1,
        MaxCount=1,
        MetadataOptions={"HttpTokens": "required"},
        **where,
    )


def refused_by(call: Any, **request: Any) -> Refused | None:
    """What EC2 says against a call, which it answers by an error in any case."""
    with aws_call():
        answered = tolerating(lambda: call(**request, DryRun=True), is_answer_of_dry_run)
    if not isinstance(answered, ClientError) or is_dry_run_passed(answered):
        return None
    return Refused(
        code_of(answered),
        message_of(answered),
        is_denied(answered) and not is_by_organization(answered),
        is_without_network(answered),
        is_bad_combination(answered),
    )
