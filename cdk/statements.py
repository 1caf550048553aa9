"""IAM statements, each with what a part of Tidegate really calls and no more.

Source of actions, resources and condition keys: the Service Authorization Reference.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aws_cdk import ArnFormat, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.acknowledged import acknowledge_rights
from cdk.sizes import judge_policies
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, LOGIN_ROLE, ROLE_TAG, SPOT_ROLE
from tidegate.wire.prices import price_rights
from tidegate.wire.records import OPEN_INDEX
from userdata.repository import Repository, place_in_s3
from userdata.values import NODE_SOURCE

# What a launch makes beside instances, without a name yet.
_LAUNCHED_WITH = ("network-interface", "volume", "spot-instances-request")
# The fleet itself is asked for no more of it: the rest its launches are asked for.
_ASKED_OF_FLEET = ("volume", "placement-group")
# What a launch uses that may be shared by AWS RAM.
_LENT = ("capacity-reservation", "security-group", "subnet")


def statement(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Any] | None = None,
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid, actions=list(actions), resources=list(resources), conditions=conditions
    )


def role(
    scope: Construct,
    id: str,
    *,
    service: str,
    statements: Sequence[iam.PolicyStatement],
    managed: Sequence[str] = (),
    trust: Mapping[str, Any] | None = None,
) -> iam.Role:
    """A role that a service assumes.

    Its policy is part of the role itself, so that nothing is made with the role before it
    has its rights. Errors: ValueError, when IAM would refuse it for its size.
    """
    own = iam.PolicyDocument(statements=list(statements))
    made = iam.Role(
        scope,
        id,
        assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=trust),
        inline_policies={"own": own} if statements else None,
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(each) for each in managed],
    )
    judge_policies(made, own)
    acknowledge_rights(made, statements, managed)
    return made


def ec2_arn(scope: Construct, resource: str, *, account: str | None = None) -> str:
    """`resource`: "instance/*". `account`: "" of images and snapshots, None of what is ours."""
    kind, _, name = resource.partition("/")
    stack = Stack.of(scope)
    return stack.format_arn(service="ec2", resource=kind, resource_name=name, account=account)


def _used_arn(scope: Construct, resource: str) -> str:
    """What another account shares has that one in its ARN; ours is what the stack makes.

    Source: terraform-aws-modules/terraform-aws-iam#227, Karpenter on shared subnets.
    """
    is_lent = resource.startswith(_LENT) and not Token.is_unresolved(resource)
    return ec2_arn(scope, resource, account="*" if is_lent else None)


def s3_arn(scope: Construct, resource: str) -> str:
    """`resource`: "BUCKET/KEY"; S3's names have no region and no account."""
    return Stack.of(scope).format_arn(
        service="s3",
        region="",
        account="",
        resource=resource,
        arn_format=ArnFormat.NO_RESOURCE_NAME,
    )


def read_hooks(scope: Construct, sources: Iterable[str]) -> Sequence[iam.PolicyStatement]:
    """The very objects that hooks are in; nothing when none is in S3."""
    objects = sorted({each.removeprefix("s3://") for each in sources if each.startswith("s3://")})
    arns = [s3_arn(scope, each) for each in objects]
    return (statement("Hooks", ["s3:GetObject"], arns),) if arns else ()


def session_manager() -> iam.PolicyStatement:
    """A shell through Session Manager, and no more of Systems Manager.

    AWS's own policy for it, AmazonSSMManagedInstanceCore, also reads every parameter of the
    account. Source: Systems Manager user guide, "Create a custom IAM role for Session Manager".
    """
    channels = ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel")
    return statement(
        "SessionManager",
        [
            "ssm:UpdateInstanceInformation",
            *(f"ssmmessages:{each}" for each in (*channels, "OpenDataChannel")),
        ],
        ["*"],
    )


def tell_of_boot(bus_arn: str) -> iam.PolicyStatement:
    """Ready or failed, under a source of its own: nobody may write digests with this."""
    return tell("TellOfBoot", bus_arn, NODE_SOURCE)


def tell(sid: str, bus_arn: str, source: str) -> iam.PolicyStatement:
    """Events of one source: a call may hold several, and all of them must be of it.

    `ForAllValues` is also met by a request without the key, hence the second condition.
    Source: IAM user guide, "Set operators for multi-valued context keys".
    """
    condition = {
        "ForAllValues:StringEquals": {"events:source": source},
        "Null": {"events:source": "false"},
    }
    return statement(sid, ["events:PutEvents"], [bus_arn], condition)


def ledger(table_arn: str, *more: str) -> Sequence[iam.PolicyStatement]:
    """Of every function: whoever looks first draws the lineage, and to stop the head is a commit.

    A transaction is allowed as the puts and updates that are in it; only what is open is listed.
    """
    actions = [f"dynamodb:{each}" for each in (*more, "GetItem", "PutItem", "UpdateItem")]
    return (
        statement("Ledger", actions, [table_arn]),
        statement("Open", ["dynamodb:Query"], [f"{table_arn}/index/{OPEN_INDEX}"]),
    )


def notices(table_arn: str) -> iam.PolicyStatement:
    """Of the interruption function, which knows the nodes that it asks for and plans nothing."""
    actions = ["BatchGetItem", "PutItem", "UpdateItem"]
    return statement("Ledger", [f"dynamodb:{each}" for each in actions], [table_arn])


def send(sid: str, *queue_arns: str) -> iam.PolicyStatement:
    return statement(sid, ["sqs:SendMessage"], queue_arns)


def publish(topic_arn: str) -> iam.PolicyStatement:
    return statement("Tell", ["sns:Publish"], [topic_arn])


def receive(sid: str, *queue_arns: str) -> iam.PolicyStatement:
    """What Lambda needs to poll a queue for a function."""
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    return statement(sid, actions, queue_arns)


def read_newest(sid: str, bucket_arn: str, key: str) -> Sequence[iam.PolicyStatement]:
    """Without ListBucket, S3 answers AccessDenied instead of NoSuchKey before the first one."""
    return (
        statement(sid, ["s3:GetObject"], [f"{bucket_arn}/{key}"]),
        statement(f"{sid}IfAny", ["s3:ListBucket"], [bucket_arn]),
    )


def keep_decisions(bucket_arn: str, cluster: str) -> iam.PolicyStatement:
    """The newest verdicts and the log; people read them with rights of their own."""
    return statement("Decisions", ["s3:PutObject"], [f"{bucket_arn}/decisions/{cluster}/*"])


def describe_instances() -> iam.PolicyStatement:
    """EC2 knows no resources for Describe actions."""
    return statement("Instances", ["ec2:DescribeInstances"], ["*"])


def read_prices(cluster: Cluster, region: str) -> Sequence[iam.PolicyStatement]:
    """None of it knows resources. Nothing where the file says every price."""
    actions = price_rights(cluster, region)
    return (statement("Prices", actions, ["*"]),) if actions else ()


def launch(
    scope: Construct,
    *,
    cluster: str,
    subnets: Sequence[str],
    group_ids: Sequence[str],
    also: Sequence[str] = (),
) -> Sequence[iam.PolicyStatement]:
    """Fleets of our launch templates in our subnets, whose instances carry the cluster's tag.

    The templates are told by that tag too, which each has: there may be dozens, and the policies of
    a role have 10,240 characters. Sources: IAM user guide, "IAM and AWS STS quotas"; Karpenter's
    controller policy, AllowScopedEC2LaunchTemplateAccessActions.
    `also`: more kinds of EC2 resources that a launch may use.
    """
    kinds = (*_LAUNCHED_WITH, *also)
    ours = {"StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": cluster}}
    instances = ec2_arn(scope, "instance/*")
    templates = ec2_arn(scope, "launch-template/*")
    used = [
        *(_used_arn(scope, f"subnet/{each}") for each in subnets),
        # Images belong to others.
        ec2_arn(scope, "image/*", account=""),
    ]
    return (
        statement(
            "FleetOf",
            ["ec2:CreateFleet"],
            [*used, *(ec2_arn(scope, f"{each}/*") for each in kinds if each in _ASKED_OF_FLEET)],
        ),
        statement(
            "LaunchWith",
            ["ec2:RunInstances"],
            [
                *used,
                *(_used_arn(scope, f"security-group/{each}") for each in group_ids),
                *(_used_arn(scope, f"{each}/*") for each in kinds),
            ],
        ),
        statement(
            "LaunchFrom",
            ["ec2:CreateFleet", "ec2:RunInstances"],
            [templates],
            {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster}},
        ),
        # The launch template is no condition here: only RunInstances knows that key.
        statement("LaunchFleet", ["ec2:CreateFleet"], [ec2_arn(scope, "fleet/*"), instances], ours),
        # From a template at all; from which ones, "LaunchFrom" says.
        statement(
            "LaunchInstances",
            ["ec2:RunInstances"],
            [instances],
            {**ours, "ArnLike": {"ec2:LaunchTemplate": templates}},
        ),
        _tag_what_is_launched(scope, ours),
    )


def _tag_what_is_launched(scope: Construct, ours: Mapping[str, Any]) -> iam.PolicyStatement:
    created = {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}
    return statement(
        "TagWhatIsLaunched",
        ["ec2:CreateTags"],
        [ec2_arn(scope, f"{kind}/*") for kind in ("fleet", "instance", "volume")],
        {"StringEquals": {**ours["StringEquals"], **created}},
    )


def pass_role(scope: Construct, role_arn: str) -> iam.PolicyStatement:
    """China has a name of its own for EC2 (IAM user guide for the China regions)."""
    is_china = Stack.of(scope).region.startswith("cn-")
    services = ["ec2.amazonaws.com", *(["ec2.amazonaws.com.cn"] if is_china else [])]
    condition = {"StringEquals": {"iam:PassedToService": services}}
    return statement("NodesGetTheirRole", ["iam:PassRole"], [role_arn], condition)


def make_spot_role(scope: Construct) -> iam.PolicyStatement:
    """EC2 makes the role that it needs for spot instances, once in an account, as its caller.

    A stack cannot own it: the account may have it, and others go on to need it.
    Source: EC2 user guide, "Service-linked role for Spot Instance requests".
    """
    service = "spot.amazonaws.com"
    arn = Stack.of(scope).format_arn(
        service="iam",
        region="",
        resource="role",
        resource_name=f"aws-service-role/{service}/{SPOT_ROLE}",
    )
    condition = {"StringEquals": {"iam:AWSServiceName": service}}
    return statement("SpotRoleOfAccount", ["iam:CreateServiceLinkedRole"], [arn], condition)


def terminate_nodes(scope: Construct, cluster: str) -> iam.PolicyStatement:
    """Never the head or a login node, which carry the cluster's tag as well."""
    condition = {
        "StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster},
        "StringNotEquals": {f"aws:ResourceTag/{ROLE_TAG}": [HEAD_ROLE, LOGIN_ROLE]},
    }
    return statement(
        "EndNodes", ["ec2:TerminateInstances"], [ec2_arn(scope, "instance/*")], condition
    )


def start_and_stop_head(scope: Construct, cluster: str, *, has_login: bool) -> iam.PolicyStatement:
    """Login nodes are started and stopped with the head."""
    condition = {
        "StringEquals": {
            f"aws:ResourceTag/{CLUSTER_TAG}": cluster,
            f"aws:ResourceTag/{ROLE_TAG}": [HEAD_ROLE, LOGIN_ROLE] if has_login else HEAD_ROLE,
        }
    }
    actions = ["ec2:StartInstances", "ec2:StopInstances"]
    return statement("Head", actions, [ec2_arn(scope, "instance/*")], condition)


def write_logs(log_group_arn: str) -> iam.PolicyStatement:
    """`log_group_arn`: without `:*`; log streams are named below it."""
    actions = ["logs:CreateLogStream", "logs:PutLogEvents"]
    return statement("Logs", actions, [f"{log_group_arn}:*"])


def write_logs_of_nodes(log_group_arn: str) -> iam.PolicyStatement:
    """The agent asks for the streams of its group before it writes."""
    actions = ["CreateLogStream", "DescribeLogStreams", "PutLogEvents"]
    return statement("NodeLogs", [f"logs:{each}" for each in actions], [f"{log_group_arn}:*"])


def read_packages(scope: Construct, repository: Repository | None) -> Sequence[iam.PolicyStatement]:
    """Slurm's packages and their key, as far as they lie in S3; a list of that prefix alone."""
    url, key_url = (repository.url, repository.key) if repository else ("", "")
    folder, key = place_in_s3(url), place_in_s3(key_url)
    objects = [
        *([s3_arn(scope, f"{folder[0]}/{folder[1]}/*")] if folder else []),
        *([s3_arn(scope, f"{key[0]}/{key[1]}")] if key else []),
    ]
    listed = (
        statement(
            "PackagesListed",
            ["s3:ListBucket"],
            [s3_arn(scope, folder[0])],
            {"StringEquals": {"s3:prefix": f"{folder[1]}/"}},
        )
        if folder
        else None
    )
    read = statement("Packages", ["s3:GetObject"], objects) if objects else None
    return tuple(each for each in (read, listed) if each)


def read_secret(secret_arn: str, sid: str = "MungeKey") -> iam.PolicyStatement:
    return statement(sid, ["secretsmanager:GetSecretValue"], [secret_arn])


def use_key_for_secrets(scope: Construct, key_arn: str | None) -> Sequence[iam.PolicyStatement]:
    """What reading a secret takes whose key is not AWS's. None: it is."""
    if key_arn is None:
        return ()
    condition = {"StringEquals": {"kms:ViaService": _via(scope, "secretsmanager")}}
    return (statement("SecretsKey", ["kms:Decrypt"], [key_arn], condition),)


def use_key_for_volumes(scope: Construct, key_arn: str | None) -> Sequence[iam.PolicyStatement]:
    """What launching instances takes whose volumes have a key that is not AWS's.

    Source: EBS user guide, "How Amazon EBS encryption works", permissions for IAM users.
    """
    if key_arn is None:
        return ()
    actions = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom")
    return (
        statement(
            "VolumesKey",
            [f"kms:{each}" for each in (*actions, "ReEncryptTo")],
            [key_arn],
            {"StringEquals": {"kms:ViaService": _via(scope, "ec2")}},
        ),
        *lend_key_to_ec2(scope, key_arn),
    )


def lend_key_to_ec2(scope: Construct, key_arn: str | None) -> Sequence[iam.PolicyStatement]:
    """What starting instances takes whose volumes have a key that is not AWS's: no more.

    Source: the same page; "Instance Scheduler on AWS", Security, "Encrypted EC2 EBS Volumes".
    """
    if key_arn is None:
        return ()
    condition = {
        "StringEquals": {"kms:ViaService": _via(scope, "ec2")},
        "Bool": {"kms:GrantIsForAWSResource": "true"},
    }
    return (statement("VolumesKeyForEc2", ["kms:CreateGrant"], [key_arn], condition),)


def _via(scope: Construct, service: str) -> str:
    stack = Stack.of(scope)
    return f"{service}.{stack.region}.{stack.url_suffix}"


def mount(file_system_arn: str, *, as_root: bool) -> iam.PolicyStatement:
    """Without ClientRootAccess root is squashed: only the head may make folders for users."""
    actions = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    if as_root:
        actions.append("elasticfilesystem:ClientRootAccess")
    return statement("Files", actions, [file_system_arn])
