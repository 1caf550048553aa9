"""What baking images takes: the instance of a build, and who ends old images.

Source: AWS managed policy reference, EC2InstanceProfileForImageBuilder,
AmazonSSMManagedInstanceCore and EC2ImageBuilderLifecycleExecutionPolicy. Of these it is what a
component without files of its own, without inventory and without containers needs, for the images
of one cluster.
"""

from collections.abc import Iterable, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk import statements
from cdk.statements import ec2_arn, s3_arn, statement
from userdata.repository import Repository

# On what is baked, and not the tag of the cluster: by that the planner would take the instance of a
# build for a node that nobody asked for, and end it.
IMAGES_TAG = "tidegate:images-of"
# Image Builder's own, on whatever it makes.
_MADE = {"aws:ResourceTag/CreatedBy": "EC2 Image Builder"}


def log_group(name: str) -> str:
    """Where Image Builder writes what a build says. It may write below this prefix alone."""
    return f"/aws/imagebuilder/{name}"


def build(
    scope: Construct,
    *,
    names: Sequence[str],
    components: Iterable[str],
    bundles: iam.PolicyStatement,
    repository: Repository | None,
) -> Sequence[iam.PolicyStatement]:
    """What a build's instance may. `names`: of our components. `components`: ARNs of others.

    `bundles`: the right to read the boot's stages.
    """
    ours = [builder_arn(scope, f"component/{each}/*") for each in names]
    groups = [_log_group_arn(scope, log_group(each)) for each in names]
    messages = ("Acknowledge", "Delete", "Fail", "Get")
    return (
        statements.session_manager(),
        # Image Builder runs a build by Run Command, which older agents ask this service for.
        statement(
            "RunCommand",
            [
                *(f"ec2messages:{each}Message{'s' * (each == 'Get')}" for each in messages),
                *("ec2messages:GetEndpoint", "ec2messages:SendReply"),
            ],
            ["*"],
        ),
        statement(
            "Components", ["imagebuilder:GetComponent"], [*ours, *map(_each_build, components)]
        ),
        bundles,
        statement("Tools", ["s3:GetObject"], [s3_arn(scope, "ec2imagebuilder*/*")]),
        statement("Logs", ["logs:CreateLogStream", "logs:PutLogEvents"], groups),
        *statements.read_packages(scope, repository),
    )


def end_old_images(
    scope: Construct, *, cluster: str, names: Sequence[str]
) -> Sequence[iam.PolicyStatement]:
    """Images of this cluster alone, and snapshots that Image Builder has made."""
    images = ec2_arn(scope, "image/*", account="")
    ours = {"StringEquals": {**_MADE, f"aws:ResourceTag/{IMAGES_TAG}": cluster}}
    return (
        statement(
            "EndImages", ["ec2:DeregisterImage", "ec2:DescribeImageAttribute"], [images], ours
        ),
        statement(
            "EndSnapshots",
            ["ec2:DeleteSnapshot"],
            [ec2_arn(scope, "snapshot/*", account="")],
            {"StringEquals": _MADE},
        ),
        statement("FindImages", ["ec2:DescribeImages", "tag:GetResources"], ["*"]),
        statement(
            "EndRecords",
            ["imagebuilder:DeleteImage"],
            [builder_arn(scope, f"image/{each}/*") for each in names],
        ),
    )


def builder_arn(scope: Construct, resource: str) -> str:
    """`resource`: "component/NAME/*"."""
    kind, _, name = resource.partition("/")
    return Stack.of(scope).format_arn(service="imagebuilder", resource=kind, resource_name=name)


def _each_build(component: str) -> str:
    """A component's ARN as policies know it: 1.x.x is any such version, each with its builds."""
    arn, _, rest = component.partition(":component/")
    name, version, *of_build = rest.split("/")
    version = ".".join("*" if each == "x" else each for each in version.split("."))
    return f"{arn}:component/{name}/{version}/{of_build[0] if of_build else '*'}"


def _log_group_arn(scope: Construct, name: str) -> str:
    arn = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return f"{arn}:*"
