"""The rights to stop nodes and to start them again."""

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.statements import ec2_arn, statement
from tidegate.core.model.ec2 import (
    CLUSTER_TAG,
    HEAD_ROLE,
    LOGIN_ROLE,
    ROLE_TAG,
    TAGS_OF_LAUNCH,
)


def start_and_stop_nodes(scope: Construct, cluster: str) -> Sequence[iam.PolicyStatement]:
    """What is started has the tags of its new launch, and keeps those that rights look at."""
    ours = {
        "StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster},
        "StringNotEquals": {f"aws:ResourceTag/{ROLE_TAG}": [HEAD_ROLE, LOGIN_ROLE]},
    }
    told = {
        **ours,
        "ForAllValues:StringEquals": {"aws:TagKeys": list(TAGS_OF_LAUNCH)},
        "Null": {"aws:TagKeys": "false"},
    }
    instances = [ec2_arn(scope, "instance/*")]
    actions = ["ec2:StartInstances", "ec2:StopInstances"]
    return (
        statement("StopNodes", actions, instances, ours),
        statement("TagWhatIsStarted", ["ec2:CreateTags"], instances, told),
    )
