"""Where an adapter finds its queues, table and bucket, without a whole deployed stack."""

import json
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.clients import REGION
from local.cloud import IMAGE_ID, ZONES, LocalCloud
from tidegate.wire.events import DIGEST_DETAIL_TYPE, DIGEST_SOURCE
from tidegate.wire.records import OPEN, OPEN_INDEX

MUNGE_KEY_BYTES = 1024

# The planner lives at most 45 s; its look must stay hidden for longer than that.
LOOK_VISIBILITY_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNames:
    """Where to find what a cluster owns. `subnets`: zone -> subnet id."""

    cluster: str
    region: str
    account: str
    vpc_id: str
    subnets: Mapping[str, str]
    table: str
    bucket: str
    event_bus: str
    look_queue_url: str
    urgent_queue_url: str
    routine_queue_url: str
    dead_look_queue_url: str
    munge_secret: str


def create_resources(
    cloud: LocalCloud, cluster: str, *, zones: Sequence[str] = ZONES
) -> CloudNames:
    """Create everything, empty. The subnets are those of the account's default VPC.

    As an observer, for two thirds of the processor time: each test has resources of its own.
    """
    client = cloud.observer
    name = f"tidegate-{cluster}"
    account = str(client("sts").get_caller_identity()["Account"])
    vpc_id, subnets = _default_subnets(client("ec2"), zones)
    _create_table(client("dynamodb"), name)
    client("s3").create_bucket(Bucket=f"{name}-{account}")
    queues = _Queues(client("sqs"), name)
    looks = queues.create("looks.fifo", visibility_s=LOOK_VISIBILITY_S)
    events = client("events")
    events.create_event_bus(Name=name)
    _route(
        events,
        f"{name}-digest",
        bus=name,
        pattern={"source": [DIGEST_SOURCE], "detail-type": [DIGEST_DETAIL_TYPE]},
        target={"Arn": queues.arn(looks), "SqsParameters": {"MessageGroupId": cluster}},
    )
    return CloudNames(
        cluster=cluster,
        region=REGION,
        account=account,
        vpc_id=vpc_id,
        subnets=subnets,
        table=name,
        bucket=f"{name}-{account}",
        event_bus=name,
        look_queue_url=looks,
        urgent_queue_url=queues.create("urgent"),
        routine_queue_url=queues.create("routine"),
        dead_look_queue_url=queues.create("looks-dead.fifo"),
        munge_secret=_create_munge_secret(client("secretsmanager"), f"{name}/munge"),
    )


def create_launch_template(cloud: LocalCloud, name: str, user_data: str) -> str:
    """The id of a new launch template whose instances boot with `user_data`."""
    data = {
        "ImageId": IMAGE_ID,
        "UserData": b64encode(user_data.encode()).decode(),
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
    }
    ec2 = cloud.client("ec2")
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


@dataclass(frozen=True, slots=True)
class _Queues:
    sqs: Any
    prefix: str

    def create(self, name: str, *, visibility_s: int = 30) -> str:
        """The URL of a new queue; names ending in `.fifo` make FIFO queues, as in SQS."""
        attributes = {"VisibilityTimeout": str(visibility_s)}
        if name.endswith(".fifo"):
            attributes |= {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        queue_name = f"{self.prefix}-{name}"
        return str(self.sqs.create_queue(QueueName=queue_name, Attributes=attributes)["QueueUrl"])

    def arn(self, url: str) -> str:
        got = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(got["Attributes"]["QueueArn"])


def _default_subnets(ec2: Any, zones: Sequence[str]) -> tuple[str, dict[str, str]]:
    described = ec2.describe_subnets(
        Filters=[
            {"Name": "default-for-az", "Values": ["true"]},
            {"Name": "availability-zone", "Values": list(zones)},
        ]
    )["Subnets"]
    subnets = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in described}
    return described[0]["VpcId"], {zone: subnets[zone] for zone in zones}


def _create_table(dynamodb: Any, name: str) -> None:
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
            {"AttributeName": OPEN, "AttributeType": "N"},
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": OPEN_INDEX,
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": OPEN, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    dynamodb.update_time_to_live(
        TableName=name,
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"},
    )


def _route(
    events: Any,
    name: str,
    *,
    bus: str,
    pattern: Mapping[str, Sequence[str]],
    target: Mapping[str, Any],
) -> None:
    """A rule that sends the events of a bus that match `pattern` to one target."""
    events.put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=name, EventBusName=bus, Targets=[{"Id": "target", **target}])


def _create_munge_secret(secretsmanager: Any, name: str) -> str:
    secretsmanager.create_secret(Name=name, SecretBinary=secrets.token_bytes(MUNGE_KEY_BYTES))
    return name
