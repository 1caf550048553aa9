"""What a cluster costs beside its nodes, idle or at work: from its synthesized templates.

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
from tidegate.wire.metrics import ALWAYS, MINIMAL

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


@frozen(kw_only=True)
class Pace:
    """How often things happen in a month. `launches`: of nodes; `looks`: of the planner.

    `invocation_s`: a function's time, with its share of cold starts.
    """

    digests: float
    looks: float
    reconciles: float
    launches: float
    invocation_s: float
    reads_per_look: float
    writes: float
    log_bytes_per_invocation: int
    metrics: int

    @property
    def invocations(self) -> float:
        """Of planner and reconcile, and of the interruption function for each node's states."""
        return self.looks + self.reconciles + NOTICES_PER_NODE * self.launches


DAYS = HOURS / 24
# What a node's life brings at most, where none of it comes together with another's: a report of
# the head for job submitted, node joined, job begun and ended, node drained and gone; its own
# words when it is up; and EC2's notice of its end.
DIGESTS_PER_NODE = 6
EVENTS_PER_NODE = 1
NOTICES_PER_NODE = 1
ORDERS_PER_NODE = 4
# `python -m bench.ledger` measures both: KB that a look reads for a node that is up, and write
# units of a node that is alone in its launch, with those of the index and of transactions; orders
# that are noted and settled are beside them.
LEDGER_KB_PER_NODE_UP = 0.72
WRITES_PER_NODE = 80
READ_UNIT_KB = 4
HOURS_UP = 2.4
ROUNDS_PER_LOOK = 2

# Reconcile comes every five minutes, as the agent's heartbeat does while queue and fleet are
# empty; else that comes every minute.
RECONCILES = MINUTES / 5
IDLE = Pace(
    digests=MINUTES / 5,
    looks=MINUTES / 5 + RECONCILES,
    reconciles=RECONCILES,
    launches=0,
    invocation_s=0.6,
    reads_per_look=6,
    # The digest that was seen, and its copy in the index.
    writes=2 * (MINUTES / 5 + RECONCILES),
    log_bytes_per_invocation=2_000,
    metrics=len(ALWAYS),
)


def busy(nodes_a_day: int) -> Pace:
    """With so many node launches a day; the head works all day, a node is up for 2.4 hours."""
    launches = nodes_a_day * DAYS
    up = nodes_a_day * HOURS_UP / 24
    digests = MINUTES + DIGESTS_PER_NODE * launches
    looks = digests + RECONCILES + EVENTS_PER_NODE * launches
    return Pace(
        digests=digests,
        looks=looks,
        reconciles=RECONCILES,
        launches=launches,
        invocation_s=1.5,
        reads_per_look=ROUNDS_PER_LOOK
        * (IDLE.reads_per_look + up * LEDGER_KB_PER_NODE_UP / READ_UNIT_KB),
        writes=2 * looks + WRITES_PER_NODE * launches,
        log_bytes_per_invocation=4_000,
        metrics=len(MINIMAL),
    )


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


def bill(
    file: ClusterFile, templates: Sequence[Mapping[str, Any]], pace: Pace = IDLE
) -> list[Item]:
    """What the resources of these templates cost per month, without the nodes themselves."""
    resources = [each for template in templates for each in template["Resources"].values()]
    kinds = Counter(str(each["Type"]) for each in resources)
    return [
        *_control(kinds, pace),
        *_observability(kinds, pace),
        *_beside(file, resources, kinds),
    ]


def total(items: Sequence[Item], part: Part) -> float:
    return sum(each.usd or 0.0 for each in items if each.part is part)


def _control(kinds: Counter[str], pace: Pace) -> Iterator[Item]:
    calls, looks = pace.invocations, pace.looks
    pollers = kinds["AWS::Lambda::EventSourceMapping"]
    lambda_usd = calls * (USD_PER_LAMBDA_CALL + pace.invocation_s * 0.5 * USD_PER_LAMBDA_GIB_S)
    orders = ORDERS_PER_NODE * pace.launches
    queue_usd = (
        pollers * POLLS_PER_QUEUE * USD_PER_SQS_FIFO_CALL
        + AGENT_POLLS * USD_PER_SQS_CALL
        + 3 * looks * USD_PER_SQS_FIFO_CALL
        + 3 * orders * USD_PER_SQS_CALL
    )
    table_usd = looks * pace.reads_per_look * USD_PER_TABLE_READ + pace.writes * USD_PER_TABLE_WRITE
    bucket_usd = (pace.digests + looks) * USD_PER_S3_PUT + 2 * looks * USD_PER_S3_GET
    events = pace.digests + EVENTS_PER_NODE * pace.launches
    event_usd = events * USD_PER_EVENT + pace.reconciles * USD_PER_SCHEDULE
    secrets = kinds["AWS::SecretsManager::Secret"]
    reads = f"{looks:,.0f} looks, {pace.reads_per_look:.0f} read units each"
    for name, usd, how in (
        ("Lambda", lambda_usd, f"{calls:,.0f} invocations of {pace.invocation_s} s at 512 MB"),
        ("SQS", queue_usd, f"{pollers} queues polled by Lambda, 2 by the agent"),
        ("DynamoDB", table_usd, f"{reads}, {pace.writes:,.0f} write units"),
        ("S3", bucket_usd, f"{pace.digests:,.0f} digests, {looks:,.0f} verdicts"),
        ("EventBridge", event_usd, f"{events:,.0f} events, {pace.reconciles:,.0f} schedules"),
        ("Secrets Manager", secrets * USD_PER_SECRET, f"{secrets} secret"),
    ):
        yield Item(Part.CONTROL, name, usd, how)


def _observability(kinds: Counter[str], pace: Pace) -> Iterator[Item]:
    alarms = kinds["AWS::CloudWatch::Alarm"]
    yield Item(Part.OBSERVABILITY, "alarms", alarms * USD_PER_ALARM, f"{alarms} alarms")
    usd = pace.metrics * USD_PER_METRIC
    how = f"{pace.metrics} have a value when idle; all others cost 0.30 USD a month for the hours "
    how += "in which something happens"
    if pace.launches:
        how = f"{pace.metrics} that alarms need; with metrics: full each pool has more"
    yield Item(Part.OBSERVABILITY, "metrics", usd, how)
    if dashboards := kinds["AWS::CloudWatch::Dashboard"]:
        usd = dashboards * USD_PER_DASHBOARD
        yield Item(Part.OBSERVABILITY, "dashboard", usd, "metrics: full has it, minimal has not")
    gib = pace.invocations * pace.log_bytes_per_invocation / 2**30
    yield Item(Part.OBSERVABILITY, "logs", gib * USD_PER_LOG_GIB, f"{gib:.2f} GiB written")


def _beside(
    file: ClusterFile, resources: Sequence[Mapping[str, Any]], kinds: Counter[str]
) -> Iterator[Item]:
    if kinds["AWS::EC2::Instance"]:
        yield _machine("head", file.head.instance_type, 1)
    for kind in file.login_kinds:
        yield _machine(kind.words, kind.model.instance_type, kind.model.count)
    if kinds["AWS::EC2::Subnet"] and not file.network.is_private:
        usd = USD_PER_PUBLIC_ADDRESS_HOUR * HOURS * kinds["AWS::EC2::Instance"]
        whose = (
            "head and login nodes, while they run" if file.login_kinds else "the head while it runs"
        )
        yield Item(Part.BESIDE, "public address", usd, f"of {whose}")
    gib = _volume_gib(resources)
    yield Item(Part.BESIDE, "EBS", gib * USD_PER_GP3_GIB, f"{gib} GiB gp3")
    if kinds["AWS::EFS::FileSystem"]:
        # Source: AWS's price list of EFS, us-east-1: elastic throughput.
        how = "by use: 0.30 USD per GB and month, 0.03 per GB read, 0.06 per GB written"
        yield Item(Part.BESIDE, "EFS", None, how)
    for each in resources:
        if each["Type"] == "AWS::FSx::FileSystem":
            yield _lustre(each["Properties"])
    if links := kinds["AWS::FSx::DataRepositoryAssociation"]:
        # Sources: FSx for Lustre pricing, which asks nothing for links; S3's prices in us-east-1.
        how = f"{links}; by use: S3's requests, from 0.0004 USD per 1,000 read, 0.005 written"
        yield Item(Part.BESIDE, "data repositories", None, how)
    if file.monitoring.remote_write:
        how = "by use: 0.90 USD per 10 million samples at first; see docs/monitoring.md"
        yield Item(Part.BESIDE, "metrics elsewhere", None, how)
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


def _machine(what: str, name: str, count: int) -> Item:
    price = HEAD_USD_PER_HOUR.get(name) or load_list_prices().get(name)
    usd = price * HOURS * count if price else None
    many = f"{count} x " if count > 1 else ""
    how = f"{many}{name} on demand, all day" if price else f"the price of {name} is not known here"
    return Item(Part.BESIDE, what, usd, how)


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
