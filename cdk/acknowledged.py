"""Where cdk-nag's rules for AWS solutions are not followed, and why.

An id names one finding, so that the next one of the same rule is seen again.
"""

import re
from collections.abc import Iterable
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

# What a statement's resource may hold a * for: the end of its ARN, the reason.
WILDCARDS = (
    (
        r"^\*$",
        "Describe actions of EC2 and of log groups have no resources and change nothing, and "
        "CloudWatch tells of composite alarms only who may ask for all; nor have resources "
        "the addresses to which SES sends no mail, and the channels of Session Manager, each of "
        "which belongs to the machine that opens it",
    ),
    (
        r":image/\*$",
        "images belong to others and change; which one is used, the launch template says, and "
        "only those of this stack may be launched",
    ),
    (
        r":(network-interface|volume|spot-instances-request|fleet)/\*$",
        "what a launch makes has no id before it; fleets and instances must carry the cluster's "
        "tag, subnets and groups are named one by one",
    ),
    (
        r":launch-template/\*$",
        "launch templates are told by the cluster's tag, which a condition asks for; there may be "
        "more of them than a policy has room for",
    ),
    (
        r":(placement-group|capacity-reservation)/\*$",
        "named by the launch templates of this stack, without which nothing can be launched",
    ),
    (
        r":ec2:[^:]*:\*:(subnet|security-group)/[a-z0-9-]+$",
        "one subnet or group by its id, whichever account shares it",
    ),
    (
        r":cloudformation:[^:]*:[^:]*:stack/\*/\*$",
        "what Resource Groups asks of whoever lists a group: one may be made of a stack",
    ),
    (r":instance/\*$", "instances are told by the cluster's tag, which a condition asks for"),
    (
        r":log-group:/tidegate/[a-z0-9/-]+:\*$",
        "Lambda and the nodes' agent name the streams below the one group",
    ),
    (
        r"/decisions/[^/]+/\*$",
        "the planner's own folder in the bucket; what it logs is named by the time of each look",
    ),
    (
        r"/(accounting|reports)/[^/]+/\*$",
        "the cluster's own folders of reports; what lies there is named by its period",
    ),
    (
        r"/\*\.tidegate-[a-z0-9-]+$",
        "the cluster's own file by the hash of its content, that of the deployment before too, "
        "since roles change before the functions that use them",
    ),
    (
        r"/\*\.tgz$",
        "boot bundles by the hash of their content, those of earlier deployments too; there is no "
        "secret in them, and a machine takes only the one whose hash it was told",
    ),
    (
        r":(component|image)/tidegate-[a-z0-9-]+/\*$|:component/[a-z0-9_-]+/[0-9.*]+(/\*)?$",
        "versions and builds of the cluster's own component and images, which Image Builder "
        "counts, and of components that the cluster file names",
    ),
    (
        r":log-group:/aws/imagebuilder/tidegate-[a-z0-9-]+:\*$",
        "Image Builder names the streams below the one group",
    ),
    (
        r":s3:::ec2imagebuilder\*/\*$",
        "Image Builder's own buckets, one in each region, from which a build has its tools",
    ),
    (
        r":ec2:[^:]*::snapshot/\*$",
        "what Image Builder made carries its tag, which a condition asks for",
    ),
    (
        r":s3:::[a-z0-9.-]+/[A-Za-z0-9._/-]+/\*$",
        "the folder of Slurm's packages that the cluster file names, for reading",
    ),
)

AWS_MANAGED = {
    "service-role/AWSBackupServiceRolePolicyForBackup": (
        "what a backup of each service takes, which AWS updates with them"
    ),
}


def acknowledge(construct: Construct, **reasons: str) -> None:
    """`reasons`: rule of AwsSolutions -> why it is not followed here."""
    for rule, reason in reasons.items():
        Validations.of(construct).acknowledge(
            Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason)
        )


def acknowledge_lookup(template: Construct) -> None:
    """CloudFormation's own rules, by which a CDK app judges itself unless it says otherwise, take
    the name of a parameter in Parameter Store for an image's id where a condition chooses it.
    """
    reason = "its image is looked up in Parameter Store at the deployment"
    Validations.of(template).acknowledge(
        Acknowledgment(id="CloudFormation-Validate::E1152", reason=reason)
    )


def acknowledge_rights(
    role: Construct, statements: Iterable[iam.PolicyStatement], managed: Iterable[str] = ()
) -> None:
    """Wildcards that have a reason above; any other stays a finding."""
    stack = Stack.of(role)
    resources = {_text(stack.resolve(arn)) for each in statements for arn in each.resources}
    for resource in sorted(each for each in resources if "*" in each):
        for ending, reason in WILDCARDS:
            if re.search(ending, resource):
                acknowledge(role, **{f"IAM5[Resource::{resource}]": reason})
                break
    for name in managed:
        policy = f"Policy::arn:<AWS::Partition>:iam::aws:policy/{name}"
        acknowledge(role, **{f"IAM4[{policy}]": AWS_MANAGED[name]})


def _text(value: Any) -> str:
    """As cdk-nag writes what is put in: <AWS::AccountId>, <Ledger.Arn>, STACK:OUTPUT."""
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_text, parts))
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([^}]+)\}", r"<\1>", text)
        case {"Fn::ImportValue": export}:
            return str(export)
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case _:
            return str(value)
