"""Whether who asks may deploy and use a cluster, and the roles that do it for them may do theirs.

Sources: CDK developer guide, "Bootstrap your environment" (`cdk deploy` assumes roles of the
bootstrap stack, CloudFormation acts as another of them); the Service Authorization Reference for
the actions; IAM user guide, "Permissions boundaries for IAM entities".
"""

from collections.abc import Iterator, Sequence

from tidegate.adapters.account import Account
from tidegate.adapters.principals import Principals, Simulated
from tidegate.cli.deployable import Found, Needless, Unasked
from tidegate.core.model.ec2 import Market
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import FlowLogs
from tidegate.wire.prices import price_rights
from tidegate.wire.problems import Problem

# What `cdk bootstrap` makes without a qualifier; the CDK asks for at least this version.
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6
_ROLE = "cdk-hnb659fds-{}-role-{}-{}"
ASSUMED = ("deploy", "file-publishing")
EXECUTION = "cfn-exec"

# CloudFormation makes each kind of resource of our templates by this, among others.
CREATES = {
    "AWS::Backup::BackupPlan": "backup:CreateBackupPlan",
    "AWS::Backup::BackupSelection": "backup:CreateBackupSelection",
    "AWS::Backup::BackupVault": "backup:CreateBackupVault",
    "AWS::Budgets::Budget": "budgets:ModifyBudget",
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration": (
        "chatbot:CreateMicrosoftTeamsChannelConfiguration"
    ),
    "AWS::Chatbot::SlackChannelConfiguration": "chatbot:CreateSlackChannelConfiguration",
    "AWS::CloudWatch::Alarm": "cloudwatch:PutMetricAlarm",
    "AWS::CloudWatch::Dashboard": "cloudwatch:PutDashboard",
    "AWS::DynamoDB::Table": "dynamodb:CreateTable",
    "AWS::EC2::EIP": "ec2:AllocateAddress",
    "AWS::EC2::FlowLog": "ec2:CreateFlowLogs",
    "AWS::EC2::Instance": "ec2:RunInstances",
    "AWS::EC2::InstanceConnectEndpoint": "ec2:CreateInstanceConnectEndpoint",
    "AWS::EC2::InternetGateway": "ec2:CreateInternetGateway",
    "AWS::EC2::LaunchTemplate": "ec2:CreateLaunchTemplate",
    "AWS::EC2::NatGateway": "ec2:CreateNatGateway",
    "AWS::EC2::PlacementGroup": "ec2:CreatePlacementGroup",
    "AWS::EC2::Route": "ec2:CreateRoute",
    "AWS::EC2::RouteTable": "ec2:CreateRouteTable",
    "AWS::EC2::SecurityGroup": "ec2:CreateSecurityGroup",
    "AWS::EC2::SecurityGroupEgress": "ec2:AuthorizeSecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress": "ec2:AuthorizeSecurityGroupIngress",
    "AWS::EC2::Subnet": "ec2:CreateSubnet",
    "AWS::EC2::SubnetRouteTableAssociation": "ec2:AssociateRouteTable",
    "AWS::EC2::VPC": "ec2:CreateVpc",
    "AWS::EC2::VPCEndpoint": "ec2:CreateVpcEndpoint",
    "AWS::EC2::VPCGatewayAttachment": "ec2:AttachInternetGateway",
    "AWS::EC2::Volume": "ec2:CreateVolume",
    "AWS::EC2::VolumeAttachment": "ec2:AttachVolume",
    "AWS::EFS::FileSystem": "elasticfilesystem:CreateFileSystem",
    "AWS::EFS::MountTarget": "elasticfilesystem:CreateMountTarget",
    "AWS::Events::EventBus": "events:CreateEventBus",
    "AWS::Events::Rule": "events:PutRule",
    "AWS::FSx::DataRepositoryAssociation": "fsx:CreateDataRepositoryAssociation",
    "AWS::FSx::FileSystem": "fsx:CreateFileSystem",
    "AWS::IAM::InstanceProfile": "iam:CreateInstanceProfile",
    "AWS::IAM::ManagedPolicy": "iam:CreatePolicy",
    "AWS::IAM::Policy": "iam:PutRolePolicy",
    "AWS::IAM::Role": "iam:CreateRole",
    "AWS::Lambda::EventSourceMapping": "lambda:CreateEventSourceMapping",
    "AWS::Lambda::Function": "lambda:CreateFunction",
    "AWS::Lambda::Permission": "lambda:AddPermission",
    "AWS::Logs::LogGroup": "logs:CreateLogGroup",
    "AWS::Route53::HostedZone": "route53:CreateHostedZone",
    "AWS::Route53::RecordSet": "route53:ChangeResourceRecordSets",
    "AWS::S3::Bucket": "s3:CreateBucket",
    "AWS::S3::BucketPolicy": "s3:PutBucketPolicy",
    "AWS::SNS::Subscription": "sns:Subscribe",
    "AWS::SNS::Topic": "sns:CreateTopic",
    "AWS::SNS::TopicPolicy": "sns:SetTopicAttributes",
    "AWS::SQS::Queue": "sqs:CreateQueue",
    "AWS::SQS::QueuePolicy": "sqs:SetQueueAttributes",
    "AWS::SSM::Parameter": "ssm:PutParameter",
    "AWS::Scheduler::Schedule": "scheduler:CreateSchedule",
    "AWS::Scheduler::ScheduleGroup": "scheduler:CreateScheduleGroup",
    "AWS::SecretsManager::Secret": "secretsmanager:CreateSecret",
}
# The same of the stack that bakes images, beside networks, roles and the like.
CREATES_IMAGES = {
    "AWS::ImageBuilder::Component": "imagebuilder:CreateComponent",
    "AWS::ImageBuilder::DistributionConfiguration": "imagebuilder:CreateDistributionConfiguration",
    "AWS::ImageBuilder::ImagePipeline": "imagebuilder:CreateImagePipeline",
    "AWS::ImageBuilder::ImageRecipe": "imagebuilder:CreateImageRecipe",
    "AWS::ImageBuilder::InfrastructureConfiguration": (
        "imagebuilder:CreateInfrastructureConfiguration"
    ),
    "AWS::ImageBuilder::LifecyclePolicy": "imagebuilder:CreateLifecyclePolicy",
}
# Roles are handed to functions and machines; EFS, AWS Backup and EC2 Instance Connect have
# service-linked roles made for them at their first use in an account.
ALSO = ("iam:PassRole", "iam:CreateServiceLinkedRole")
# FSx makes a service-linked role for each file system that is linked to a bucket, as whoever links
# it, who must have the rights on the bucket as well. Sources: FSx for Lustre user guide, "Setting
# up" and "Unable to validate access to an S3 bucket when creating a data repository association".
LINKS = ("iam:AttachRolePolicy",)
LINKS_BUCKET = ("s3:GetBucketAcl", "s3:ListBucket")
LINKS_OBJECTS = ("s3:GetObject", "s3:PutObject")
DEPLOYS = tuple(sorted({*CREATES.values(), *ALSO}))

# The commands that ask a cluster (docs/commands.md), and a launch by `tidegate probe`.
ASKS = (
    "cloudwatch:DescribeAlarms",
    "dynamodb:GetItem",
    "dynamodb:Query",
    "ec2:DescribeInstances",
    "ec2:GetConsoleOutput",
    "lambda:GetFunctionConfiguration",
    "s3:GetObject",
    "s3:ListBucket",
)
LAUNCHES = (
    "cloudwatch:SetAlarmState",
    "ec2:TerminateInstances",
    "lambda:InvokeFunction",
    "logs:FilterLogEvents",
    "sns:ListSubscriptionsByTopic",
    "ssm:StartSession",
)

# What the roles of functions and machines do; a boundary may take any of it from them.
ROLES_DO = (
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
    "ec2:CreateFleet",
    "ec2:CreateTags",
    "ec2:DescribeInstances",
    "ec2:RunInstances",
    "ec2:StartInstances",
    "ec2:StopInstances",
    "ec2:TerminateInstances",
    "elasticfilesystem:ClientMount",
    "elasticfilesystem:ClientRootAccess",
    "elasticfilesystem:ClientWrite",
    "events:PutEvents",
    "iam:CreateServiceLinkedRole",
    "iam:PassRole",
    "lambda:InvokeFunction",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "s3:GetObject",
    "s3:ListBucket",
    "s3:PutObject",
    "secretsmanager:GetSecretValue",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
    "ssm:GetParameter",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
# With a key of the account's own, and where machines or the network write logs.
_WITH_KEY = (
    *("kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey"),
    *("kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"),
)
_WITH_GROUPS = (
    *("cloudformation:DescribeStacks", "cloudformation:ListStackResources"),
    *("resource-groups:ListGroupResources", "tag:GetResources"),
)
_WITH_LOGS = ("logs:DescribeLogGroups", "logs:DescribeLogStreams")

# Of who builds images, and of who ends old ones.
_WITH_IMAGES = (
    *("ec2:DeleteSnapshot", "ec2:DeregisterImage", "ec2:DescribeImageAttribute"),
    *("ec2:DescribeImages", "imagebuilder:DeleteImage", "imagebuilder:GetComponent"),
    *("ec2messages:AcknowledgeMessage", "ec2messages:DeleteMessage", "ec2messages:FailMessage"),
    *("ec2messages:GetEndpoint", "ec2messages:GetMessages", "ec2messages:SendReply"),
    "tag:GetResources",
)

# Not by name: a report is shown to others.
WHO_ASKS = "who asks"


def bootstrapped(file: ClusterFile, account: Account) -> Found:
    """The account and region are bootstrapped for the CDK."""
    del file
    version = account.parameter(BOOTSTRAP)
    command = "run `npx cdk bootstrap` (docs/deploying.md)"
    if version is None:
        yield Problem((), f"there is no parameter {BOOTSTRAP}: {command}")
    elif not version.isdecimal() or int(version) < BOOTSTRAP_VERSION:
        text = f"the bootstrap stack has version {version}, {BOOTSTRAP_VERSION} is needed"
        yield Problem((), f"{text}: {command} again")


def rights_to_deploy(file: ClusterFile, account: Account) -> Found:
    """Who asks may assume the roles under which `cdk deploy` works."""
    principals = Principals(account.clients)
    caller = principals.caller()
    if not caller.principal:
        yield _root_user()
        return
    for kind in ASSUMED:
        role = caller.role(_ROLE.format(kind, caller.account, file.region))
        found = principals.of_principal(caller.principal, ["sts:AssumeRole"], role)
        yield from _told(found, WHO_ASKS, f" {_name(role)}")


def rights_of_cloudformation(file: ClusterFile, account: Account) -> Found:
    """CloudFormation's role may make what the stacks hold."""
    principals = Principals(account.clients)
    caller = principals.caller()
    role = caller.role(_ROLE.format(EXECUTION, caller.account, file.region))
    images = CREATES_IMAGES.values() if file.images else ()
    repositories = file.lustre.data_repositories if file.lustre else ()
    links = LINKS if repositories else ()
    yield from _told(principals.of_principal(role, (*DEPLOYS, *images, *links)), _name(role))
    for each in repositories:
        bucket, _, prefix = each.s3.rstrip("/").partition("/")
        arn = f"arn:{caller.partition}:s3:::{bucket}"
        below = f"{arn}/{prefix}/*" if prefix else f"{arn}/*"
        for actions, on in ((LINKS_BUCKET, arn), (LINKS_OBJECTS, below)):
            yield from _told(principals.of_principal(role, actions, on), _name(role), f" {on}")


def rights_to_ask(file: ClusterFile, account: Account) -> Found:
    """Who asks may use the other commands and a launch of this one."""
    del file
    principals = Principals(account.clients)
    caller = principals.caller()
    if not caller.principal:
        yield _root_user()
        return
    found = principals.of_principal(caller.principal, (*ASKS, *LAUNCHES))
    yield from _told(found, WHO_ASKS)


def permissions_boundary(file: ClusterFile, account: Account) -> Found:
    """The boundary of the file lets the roles of functions and machines do their work."""
    if file.permissions_boundary is None:
        yield Needless("the file names no permissions_boundary")
        return
    name = file.permissions_boundary
    found = Principals(account.clients).of_boundary(name, roles_do(file))
    if found.denied:
        text = f"{_name(name)} does not allow {', '.join(found.denied)}"
        yield Problem(("permissions_boundary",), f"{text}: roles that have it may not either")
    yield from _unsure(found)


def roles_do(file: ClusterFile) -> tuple[str, ...]:
    """What the roles of this file's functions and machines do."""
    writes_logs = file.ships_logs or file.network.flow_logs is not FlowLogs.NONE
    with_key = _WITH_KEY if file.kms_key else ()
    prices = price_rights(file.cluster, file.region)
    logs, images = _WITH_LOGS if writes_logs else (), _WITH_IMAGES if file.images else ()
    more = (*_of_reservations(file), *_of_machines(file), *_of_telling(file))
    return tuple(dict.fromkeys((*ROLES_DO, *with_key, *prices, *logs, *images, *more)))


def _of_telling(file: ClusterFile) -> Iterator[str]:
    """What the planner tells people, and hears of the site's own alarms."""
    if file.notifications:
        yield "sns:Publish"
    if file.notifications and file.notifications.owners:
        yield from ("ses:SendEmail", "ses:GetSuppressedDestination")
    if file.cluster.alarms:
        yield "cloudwatch:DescribeAlarms"


def _of_reservations(file: ClusterFile) -> Iterator[str]:
    """As `cdk/reservation_rights.py` grants it."""
    cluster = file.cluster
    if cluster.reservations or cluster.reservation_groups:
        yield "ec2:DescribeCapacityReservations"
    if any(each.market is Market.CAPACITY_BLOCK for each in cluster.reservations):
        yield "ec2:DescribeCapacityBlockExtensionHistory"
    if cluster.reservation_groups:
        yield from _WITH_GROUPS


def _of_machines(file: ClusterFile) -> Iterator[str]:
    """What head and nodes do only where the file asks for it."""
    write = file.monitoring.remote_write
    if file.job_roles or (write and write.role):
        yield "sts:AssumeRole"
    if write and not write.role:
        yield "aps:RemoteWrite"
    if file.slurm.topology:
        yield "ec2:DescribeInstanceTopology"
    of_s3 = [each for each in file.file_systems if each.kind == "s3files"]
    if of_s3:
        yield "s3files:ClientMount"
    if any(not each.is_read_only for each in of_s3):
        yield "s3files:ClientWrite"
    if any(each.bucket for each in of_s3):
        yield "s3:GetObjectVersion"


def _told(found: Simulated, who: str, on: str = "") -> Iterator[Problem | Unasked]:
    """One line for all actions that are denied for the same reason."""
    for why in dict.fromkeys(found.denied.values()):
        actions = [action for action, said in found.denied.items() if said == why]
        yield Problem((), f"{who} may not {_listed(actions)}{on}: {why}")
    yield from _unsure(found)


def _unsure(found: Simulated) -> Iterator[Unasked]:
    if found.unsure:
        text = f"{_listed(found.unsure)}: the answer hangs on conditions of the policies"
        yield Unasked(f"{text}, which a simulation does not know")


def _root_user() -> Unasked:
    return Unasked("IAM simulates no root user; ask as a user or role")


def _listed(actions: Sequence[str]) -> str:
    return ", ".join(actions)


def _name(arn: str) -> str:
    """`role/cdk-...` of an ARN."""
    return arn.split(":", 5)[-1]
