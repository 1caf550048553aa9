"""What a cluster costs while it has no job and no node: from its synthesized templates.

Prices are list prices in `LIST_PRICE_REGION`, without any free tier, per month of 730 hours, of
November 2026. Sources: the pricing pages of each service.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.wire.beside import (
    HOURS_A_MONTH,
    USD_PER_GP3_GIB,
    USD_PER_NAT_GB,
    USD_PER_PUBLIC_ADDRESS_HOUR,
)
from tidegate.wire.catalogue import load_list_prices
from tidegate.wire.config import ClusterFile
from tidegate.wire.metrics import ALWAYS

HOURS = HOURS_A_MONTH
MINUTES = HOURS * 60

USD_PER_ALARM = 0.10
USD_PER_METRIC = 0.30
USD_PER_DASHBOARD = 3.00
USD_PER_SECRET = 0.40
USD_PER_HOSTED_ZONE = 0.50
USD_PER_NAT_HOUR = 0.045
USD_PER_ENDPOINT_HOUR = 0.01
USD_PER_LOG_GIB = 0.50
USD_PER_LAMBDA_CALL = 0.20e-6
USD_PER_LAMBDA_GIB_S = 13.3334e-6  # arm64
USD_PER_SQS_CALL = 0.40e-6
USD_PER_SQS_FIFO_CALL = 0.50e-6
USD_PER_EVENT = 1.00e-6
USD_PER_SCHEDULE = 1.00e-6
USD_PER_S3_PUT = 5.0e-6
USD_PER_S3_GET = 0.4e-6
USD_PER_TABLE_READ = 0.125e-6
USD_PER_TABLE_WRITE = 0.625e-6

# The agent's heartbeat while queue and fleet are empty, and reconcile's rate.
DIGESTS = RECONCILES = MINUTES / 5
LOOKS = DIGESTS + RECONCILES
# A function's time for a look at nothing, with its share of cold starts.
INVOCATION_S = 0.6
TABLE_READS_PER_LOOK = 6
TABLE_WRITES_PER_LOOK = 1
LOG_BYTES_PER_INVOCATION = 2_000
# Each of Lambda's five pollers of a queue, and the agent on each of its two, ask every 20 s.
POLLS_PER_QUEUE = 5 * MINUTES * 3
AGENT_POLLS = 2 * MINUTES * 3

# A GiB and month on SSD; persistent ones with 125 MB/s for each TiB. FSx pricing, us-east-1.
USD_PER_LUSTRE_GIB = {"SCRATCH_2": 0.140, "PERSISTENT_2": 0.145}

# Beside the catalogue of instance types with a GPU: what heads usually are.
HEAD_USD_PER_HOUR = {
    "t3.medium": 0.0416,
    "t3.large": 0.0832,
    "m6i.large": 0.096,
    "m6i.xlarge": 0.192,
    "m6i.2xlarge": 0.384,
    "m7i.large": 0.1008,
    "m7i.xlarge": 0.2016,
    "m7i.2xlarge": 0.4032,
    "c7i.large": 0.08925,
    "c7i.xlarge": 0.1785,
}


class Part(StrEnum):
    """What a figure belongs to. The first two have bounds, the last is a choice of the file."""

    CONTROL = "control plane"
    OBSERVABILITY = "observability"
    BESIDE = "beside it"


@frozen
class Item:
    """One line of the bill. `usd` None: by use, or not known."""

    part: Part
    name: str
    usd: float | None
    how: str


def idle_items(file: ClusterFile, templates: Sequence[Mapping[str, Any]]) -> list[Item]:
    """What the resources of these templates cost per month while nothing happens."""
    resources = [each for template in templates for each in template["Resources"].values()]
    kinds = Counter(str(each["Type"]) for each in resources)
    return [
        *_control(kinds),
        *_observability(file, kinds),
        *_beside(file, resources, kinds),
    ]


def total(items: Sequence[Item], part: Part) -> float:
    return sum(each.usd or 0.0 for each in items if each.part is part)


def _control(kinds: Counter[str]) -> Iterator[Item]:
    calls = LOOKS + RECONCILES
    pollers = kinds["AWS::Lambda::EventSourceMapping"]
    lambda_usd = calls * (USD_PER_LAMBDA_CALL + INVOCATION_S * 0.5 * USD_PER_LAMBDA_GIB_S)
    queue_usd = (
        pollers * POLLS_PER_QUEUE * USD_PER_SQS_FIFO_CALL
        + AGENT_POLLS * USD_PER_SQS_CALL
        + 3 * LOOKS * USD_PER_SQS_FIFO_CALL
    )
    table_usd = LOOKS * (
        TABLE_READS_PER_LOOK * USD_PER_TABLE_READ + TABLE_WRITES_PER_LOOK * USD_PER_TABLE_WRITE
    )
    bucket_usd = (DIGESTS + LOOKS) * USD_PER_S3_PUT + 2 * LOOKS * USD_PER_S3_GET
    event_usd = DIGESTS * USD_PER_EVENT + RECONCILES * USD_PER_SCHEDULE
    secrets = kinds["AWS::SecretsManager::Secret"]
    for name, usd, how in (
        ("Lambda", lambda_usd, f"{calls:,.0f} invocations of {INVOCATION_S} s at 512 MB"),
        ("SQS", queue_usd, f"{pollers} queues polled by Lambda, 2 by the agent"),
        ("DynamoDB", table_usd, f"{LOOKS:,.0f} looks"),
        ("S3", bucket_usd, f"{DIGESTS:,.0f} digests, {LOOKS:,.0f} verdicts"),
        ("EventBridge", event_usd, f"{DIGESTS:,.0f} events, {RECONCILES:,.0f} schedules"),
        ("Secrets Manager", secrets * USD_PER_SECRET, f"{secrets} secret"),
    ):
        yield Item(Part.CONTROL, name, usd, how)


def _observability(file: ClusterFile, kinds: Counter[str]) -> Iterator[Item]:
    alarms = kinds["AWS::CloudWatch::Alarm"]
    yield Item(Part.OBSERVABILITY, "alarms", alarms * USD_PER_ALARM, f"{alarms} alarms")
    metrics = len(ALWAYS)
    usd = metrics * USD_PER_METRIC
    more = "; all others cost 0.30 USD a month for the hours in which something happens"
    yield Item(Part.OBSERVABILITY, "metrics", usd, f"{metrics} have a value when idle{more}")
    if dashboards := kinds["AWS::CloudWatch::Dashboard"]:
        usd = dashboards * USD_PER_DASHBOARD
        yield Item(Part.OBSERVABILITY, "dashboard", usd, "metrics: full has it, minimal has not")
    gib = (LOOKS + RECONCILES) * LOG_BYTES_PER_INVOCATION / 2**30
    yield Item(Part.OBSERVABILITY, "logs", gib * USD_PER_LOG_GIB, f"{gib:.2f} GiB written")


def _beside(
    file: ClusterFile, resources: Sequence[Mapping[str, Any]], kinds: Counter[str]
) -> Iterator[Item]:
    if kinds["AWS::EC2::Instance"]:
        yield _head(file)
    if kinds["AWS::EC2::Subnet"] and not file.network.is_private:
        usd = USD_PER_PUBLIC_ADDRESS_HOUR * HOURS
        yield Item(Part.BESIDE, "public address", usd, "of the head while it runs")
    gib = _volume_gib(resources)
    yield Item(Part.BESIDE, "EBS", gib * USD_PER_GP3_GIB, f"{gib} GiB gp3")
    if kinds["AWS::EFS::FileSystem"]:
        yield Item(Part.BESIDE, "EFS", None, "by use: 0.30 USD per GB and month, more for transfer")
    for each in resources:
        if each["Type"] == "AWS::FSx::FileSystem":
            yield _lustre(each["Properties"])
    if kinds["AWS::EC2::FlowLog"]:
        yield Item(Part.BESIDE, "flow logs", None, "by use: 0.50 USD per GB")
    if kinds["AWS::Backup::BackupPlan"]:
        yield Item(Part.BESIDE, "backups", None, "by use: 0.05 USD per GB and month")
    if zones := kinds["AWS::Route53::HostedZone"]:
        usd = zones * USD_PER_HOSTED_ZONE
        yield Item(Part.BESIDE, "Route 53", usd, f"{zones} hosted zone")
    if nats := kinds["AWS::EC2::NatGateway"]:
        usd = nats * (USD_PER_NAT_HOUR + USD_PER_PUBLIC_ADDRESS_HOUR) * HOURS
        yield Item(
            Part.BESIDE, "NAT gateway", usd, f"{nats}; {USD_PER_NAT_GB} USD per GB beside it"
        )
    zones_of_endpoints = sum(
        len(each["Properties"].get("SubnetIds", ()))
        for each in resources
        if each["Type"] == "AWS::EC2::VPCEndpoint"
    )
    if zones_of_endpoints:
        usd = zones_of_endpoints * USD_PER_ENDPOINT_HOUR * HOURS
        how = f"{zones_of_endpoints}; 0.01 USD per GB beside it"
        yield Item(Part.BESIDE, "interface endpoints", usd, how)


def _lustre(properties: Mapping[str, Any]) -> Item:
    gib = int(properties["StorageCapacity"])
    kind = properties["LustreConfiguration"]["DeploymentType"]
    return Item(Part.BESIDE, "FSx for Lustre", gib * USD_PER_LUSTRE_GIB[kind], f"{gib} GiB {kind}")


def _head(file: ClusterFile) -> Item:
    name = file.head.instance_type
    price = HEAD_USD_PER_HOUR.get(name) or load_list_prices().get(name)
    usd = price * HOURS if price else None
    how = f"{name} on demand, all day" if price else f"the price of {name} is not known here"
    return Item(Part.BESIDE, "head", usd, how)


def _volume_gib(resources: Sequence[Mapping[str, Any]]) -> int:
    """Data volumes, and the root volumes of instances."""
    gib = 0
    for each in resources:
        properties = each.get("Properties", {})
        if each["Type"] == "AWS::EC2::Volume":
            gib += int(properties["Size"])
        if each["Type"] == "AWS::EC2::Instance":
            mappings = properties["BlockDeviceMappings"]
            gib += sum(int(mapping["Ebs"]["VolumeSize"]) for mapping in mappings)
    return gib
