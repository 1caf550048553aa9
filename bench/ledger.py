"""What a look reads of the ledger at a thousand nodes a day, on the local DynamoDB.

python -m bench.ledger

A day is written by the adapter: launches of ten nodes, which join, are released, charged and end,
but for those that are up. Bytes are counted by DynamoDB's own rule for sizes, pages by its limit.
Sources: DynamoDB developer guide, "DynamoDB item sizes and formats"; API reference, Query (1 MB).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.figures import Figure, table
from bench.workload import NOW_S
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_resources
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ledger_items import PARTITION
from tidegate.cli import cost
from tidegate.core.model.ec2 import FleetRequest, Market, Offering, Override
from tidegate.core.model.ledger import (
    Charge,
    Launch,
    LaunchRecord,
    LaunchStatus,
    NodeRecord,
    Phase,
    Stretch,
)
from tidegate.core.model.resting import Resting
from tidegate.core.offers.spend import bill
from tidegate.ports import Finished
from tidegate.sim.clock import SimClock
from tidegate.wire.records import OPEN

NODES_A_DAY, NODES_UP, OF_A_LAUNCH = 1000, 100, 10
JOBS_OF_A_LAUNCH = 20
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
TYPES = ("g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g6.xlarge", "g6.2xlarge", "g6.4xlarge")
RESTING = 20

READ_KB_MAX, PAGES_MAX = 200, 2
ALONE, WRITES_MAX = 20, cost.WRITES_PER_NODE
PAGE_BYTES = 2**20
WRITE_UNIT_BYTES = 1024
KB = 1000


@dataclass
class Read:
    """What the queries of a view bring, and what the whole partition has."""

    items: int = 0
    bytes: int = 0
    pages: int = 0


@dataclass
class Counting:
    """DynamoDB's client, whose queries and writes are weighed. `written`: in write units."""

    client: Any
    read: Read = field(default_factory=Read)
    written: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def get_paginator(self, name: str) -> "Counting":
        assert name == "query", name
        return self

    def transact_write_items(self, **asked: Any) -> Any:
        answer = self.client.transact_write_items(**asked)
        parts = [part for each in asked["TransactItems"] for part in each.values()]
        self.written += sum(2 * self._units(part) for part in parts)
        return answer

    def put_item(self, **asked: Any) -> Any:
        answer = self.client.put_item(**asked)
        self.written += self._units(asked)
        return answer

    def update_item(self, **asked: Any) -> Any:
        answer = self.client.update_item(**asked)
        self.written += self._units(asked)
        return answer

    def _units(self, part: Mapping[str, Any]) -> int:
        """Of an item as it is written, and again for its entry in the index, or that entry's end.

        Source: DynamoDB developer guide, "Local secondary indexes", write capacity.
        """
        key = part.get("Key") or {name: part["Item"][name] for name in ("pk", "sk")}
        item = self.client.get_item(TableName=part["TableName"], Key=key)["Item"]
        is_listed = OPEN in item or "REMOVE #open" in part.get("UpdateExpression", "")
        return -(-size_of_item(item) // WRITE_UNIT_BYTES) * (2 if is_listed else 1)

    def paginate(self, **asked: Any) -> Iterator[Mapping[str, Any]]:
        for page in self.client.get_paginator("query").paginate(**asked):
            size = sum(map(size_of_item, page["Items"]))
            self.read.items += len(page["Items"])
            self.read.bytes += size
            self.read.pages += max(1, -(-size // PAGE_BYTES))
            yield page


def size_of_item(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + size_of(value) for name, value in item.items())


def size_of(value: Mapping[str, Any]) -> int:
    """A number has a byte for two digits and one more, a text its bytes in UTF-8."""
    ((kind, content),) = value.items()
    if kind == "N":
        digits = content.replace(".", "").lstrip("-").strip("0")
        return -(-len(digits) // 2) + 1
    assert kind in ("S", "B"), kind
    return len(content.encode())


def write_day(ledger: DynamoLedger, nodes: int, up: int, of_a_launch: int = OF_A_LAUNCH) -> None:
    """`nodes` are launched, and the last `up` of them are still there at its end."""
    epoch = ledger.view().epoch
    for number in range(nodes // of_a_launch):
        launch = _launch(number)
        made = [_node(launch, number * of_a_launch + n) for n in range(of_a_launch)]
        assert ledger.commit(replace(epoch, number=epoch.number + number), [launch])
        ledger.finish_launches(Finished(launch.launch.launch_id, LaunchStatus.DONE, made))
        ledger.advance_nodes({each.instance_id: Phase.JOINED for each in made})
        if (number + 1) * of_a_launch <= nodes - up:
            ledger.charge([_stretch(each) for each in made])
            ledger.advance_nodes({each.instance_id: Phase.TERMINATED for each in made})
    for number in range(RESTING):
        ledger.rest(_resting(number))


def figures(nodes: int = NODES_A_DAY, up: int = NODES_UP) -> Iterator[Figure]:
    with LocalCloud() as cloud:
        names = create_resources(cloud, "ledger")
        client = Counting(cloud.client("dynamodb"))
        ledger: Any = DynamoLedger(client, names.table, SimClock(NOW_S))  # type: ignore[arg-type]
        write_day(ledger, nodes, up)
        client.read = Read()
        ledger.view()
        told = f"ledger at {nodes:,} nodes a day, {up} of them up"
        yield Figure(f"{told}: a look reads", client.read.bytes / KB, "KB", READ_KB_MAX)
        yield Figure(f"{told}: in pages", client.read.pages, "", PAGES_MAX)
        yield Figure(f"{told}: the day's records", _whole(client, names) / KB, "KB")
        units = _units_of_a_node(cloud)
        yield Figure("ledger: write units of a node alone in its launch", units, "", WRITES_MAX)


def _units_of_a_node(cloud: LocalCloud) -> float:
    """From its launch to its end."""
    client = Counting(cloud.client("dynamodb"))
    names = create_resources(cloud, "alone")
    ledger: Any = DynamoLedger(client, names.table, SimClock(NOW_S))  # type: ignore[arg-type]
    write_day(ledger, ALONE, up=0, of_a_launch=1)
    return client.written / ALONE


def _whole(client: Counting, names: CloudNames) -> int:
    """All that is kept of the day, which looks would read without the index."""
    client.read = Read()
    asked = {"KeyConditionExpression": "pk = :pk"}
    values = {":pk": {"S": PARTITION}}
    list(client.paginate(TableName=names.table, **asked, ExpressionAttributeValues=values))
    return client.read.bytes


def _launch(number: int) -> LaunchRecord:
    offerings = tuple(
        Offering(name, zone, market)
        for market in (Market.SPOT,)
        for name in TYPES
        for zone in ZONES
    )
    overrides = tuple(
        Override(each.instance_type, each.zone, f"subnet-0a1b2c3d4e5f6a7b{at:x}", at)
        for at, each in enumerate(offerings)
    )
    name = f"l-{number:012x}"
    request = FleetRequest(
        client_token=name,
        launch_template_id="lt-0a1b2c3d4e5f6a7b8",
        launch_template_version="3",
        market=Market.SPOT,
        count=OF_A_LAUNCH,
        min_count=0,
        overrides=overrides,
        tags=(("tidegate:cluster", "research"), ("tidegate:launch", name)),
    )
    jobs = tuple(str(1_000_000 + number * JOBS_OF_A_LAUNCH + n) for n in range(JOBS_OF_A_LAUNCH))
    planned = Launch(
        launch_id=name,
        pool="a10g",
        offerings=offerings,
        count=OF_A_LAUNCH,
        min_count=0,
        for_jobs=jobs,
        usd_per_hour_each=1.6,
        gated_for="",
        reason=f"{JOBS_OF_A_LAUNCH} jobs wait, of user ada and others: no node that is up has room",
        account="vision",
        user="ada",
    )
    return LaunchRecord(planned, NOW_S, request)


def _node(launch: LaunchRecord, number: int) -> NodeRecord:
    return NodeRecord(
        instance_id=f"i-{number:017x}",
        launch_id=launch.launch.launch_id,
        pool=launch.launch.pool,
        offering=launch.launch.offerings[number % len(launch.launch.offerings)],
        launched_at_s=NOW_S,
        usd_per_hour=0.6036,
        account="vision",
        template="sha256:0a1b2c3d4e5f6a7b",
        for_jobs=launch.launch.for_jobs,
    )


def _stretch(node: NodeRecord) -> Stretch:
    scopes = ("cluster", "pool a10g", "account vision")
    days = ("2026-11-21", "2026-11-22", "2026-11")
    charges = tuple(Charge(day, scope, 0.73) for day in days for scope in scopes)
    line = bill(node, NOW_S + 3600)
    return Stretch(node.instance_id, NOW_S + 3600, charges, bill=line)


def _resting(number: int) -> Resting:
    offering = Offering(TYPES[number % len(TYPES)], ZONES[number % len(ZONES)], Market.SPOT)
    words = "We currently do not have sufficient capacity in the Availability Zone you requested."
    return Resting(offering, NOW_S + 1800, 3, "InsufficientInstanceCapacity", words)


def main() -> None:
    print(table(list(figures())))


if __name__ == "__main__":
    main()
