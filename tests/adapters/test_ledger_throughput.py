"""What a partition of DynamoDB takes in a second, and what the ledger does beyond it."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bench.ledger import Counting
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.contracts.test_ledger_contract import launch
from tests.make import NOW_S, record
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import LaunchStatus, NodeRecord, Phase, Stretch
from tidegate.ports import Finished
from tidegate.sim.clock import SimClock

CALL_S = 0.03
UNITS_A_SECOND = 1000
NAMES = [f"i-{number:017x}" for number in range(3)]


@dataclass
class Partition(Counting):
    """Cancels transactions that come faster than a partition takes them.

    Sources: DynamoDB developer guide, "Best practices for designing and using partition keys"
    (1,000 write units a second, whatever the table has); API reference, TransactWriteItems
    (ThrottlingError among the reasons of a cancellation). No burst is counted on.
    """

    room: float = UNITS_A_SECOND
    throttled: int = 0

    def passes(self, seconds: float) -> None:
        self.room = min(UNITS_A_SECOND, self.room + seconds * UNITS_A_SECOND)

    def transact_write_items(self, **asked: Any) -> Any:
        self.passes(CALL_S)
        # The items are weighed once they are written, so that the call before is what counts.
        if self.room <= 0:
            self.throttled += 1
            reasons = [{"Code": "ThrottlingError", "Message": "Throughput exceeds the limit"}]
            reasons += [{"Code": "None"}] * (len(asked["TransactItems"]) - 1)
            error: Any = {
                "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                "CancellationReasons": reasons,
            }
            raise ClientError(error, "TransactWriteItems")
        before = self.written
        answer = super().transact_write_items(**asked)
        self.room -= self.written - before
        return answer


@pytest.fixture
def partition(cloud: LocalCloud, names: CloudNames) -> Partition:
    return Partition(cloud.client("dynamodb"))


@pytest.fixture
def ledger(partition: Partition, names: CloudNames) -> DynamoLedger:
    client: Any = partition
    return DynamoLedger(client, names.table, SimClock(NOW_S), pause=partition.passes)


def nodes() -> list[NodeRecord]:
    return [record(name) for name in NAMES]


def spend(partition: Partition) -> None:
    """As the transactions of a thousand nodes before this one did."""
    partition.room = -500.0


def test_a_large_launch_is_noted_whole_though_it_comes_too_fast(
    ledger: DynamoLedger, partition: Partition
) -> None:
    epoch, one = ledger.view().epoch, launch()

    spend(partition)
    assert ledger.commit(epoch, [one])
    spend(partition)
    ledger.finish_launches(Finished(one.launch.launch_id, LaunchStatus.DONE, nodes()))

    assert partition.throttled == 4
    view = ledger.view()
    assert ([each.instance_id for each in view.nodes], view.launches) == (NAMES, ())


def test_a_storm_and_its_bill_are_noted_whole_though_they_come_too_fast(
    ledger: DynamoLedger, partition: Partition
) -> None:
    ledger.finish_launches(Finished("none", LaunchStatus.DONE, nodes()))

    spend(partition)
    assert ledger.interrupt_nodes(dict.fromkeys(NAMES, NOW_S + 120)) == set(NAMES)
    spend(partition)
    ledger.charge([Stretch(name, NOW_S + 60, ()) for name in NAMES])

    assert partition.throttled == 4
    noted = ledger.nodes(NAMES)
    assert {each.phase for each in noted} == {Phase.INTERRUPTED}
    assert {each.ended_at_s for each in noted} == {NOW_S + 60}


def test_a_partition_that_stays_too_busy_is_trouble_that_passes(
    ledger: DynamoLedger, partition: Partition
) -> None:
    stuck = replace(ledger, pause=lambda seconds: None)
    spend(partition)

    with pytest.raises(Throttled, match="ThrottlingError"):
        stuck.finish_launches(Finished("none", LaunchStatus.DONE, nodes()))
