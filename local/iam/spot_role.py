"""The role that EC2 needs in an account before it launches the first spot instance there.

Sources: EC2 user guide, "Service-linked role for Spot Instance requests"; EC2's answer in
LeanerCloud/AutoSpotting#187, and that its caller's right to make the role ends it, in
chialab/aws-autoscaling-gitlab-runner#7.
"""

from contextlib import suppress

from moto.ec2.exceptions import EC2ClientError
from moto.iam.models import SERVICE_NAME_CONVERSION, iam_backends

from local.iam.launches import fleet_launches, run_launch
from local.iam.requests import Call, Check

SERVICE = "spot.amazonaws.com"
NAME = "AWSServiceRoleForEC2Spot"
CODE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
WORDS = (
    "The provided credentials do not have permission to create the service-linked role for EC2 "
    "Spot Instances."
)

# moto lacks it, and would make a role that nobody asks for.
SERVICE_NAME_CONVERSION["spot"] = "EC2Spot"


def is_missing(call: Call) -> bool:
    """Whether this launches spot instances in an account that has no such role."""
    return _is_spot(call) and not any(
        each.name == NAME for each in iam_backends[call.account]["aws"].roles.values()
    )


def check(call: Call) -> Check:
    """What EC2 asks for, to make the role itself."""
    arn = f"arn:aws:iam::{call.account}:role/aws-service-role/{SERVICE}/{NAME}"
    return Check("iam:CreateServiceLinkedRole", arn, {"iam:AWSServiceName": SERVICE})


def make(call: Call) -> None:
    iam_backends[call.account]["aws"].create_service_linked_role(SERVICE, "", "")


def _is_spot(call: Call) -> bool:
    if call.service != "ec2":
        return False
    with suppress(EC2ClientError):  # no such launch template, which EC2 says itself
        if call.name == "CreateFleet":
            return any(each.is_spot for each in fleet_launches(call))
        return call.name == "RunInstances" and run_launch(call).is_spot
    return False
