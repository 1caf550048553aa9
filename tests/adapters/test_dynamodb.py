"""The ledger's commit where planners share a table: whose commit was it?"""

from dataclasses import replace
from typing import Any, cast

import pytest

from bench.ledger import Counting, Read, write_day
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.contracts.test_ledger_contract import launch
from tests.make import NOW_S, offering, record
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ledger_items import node_item, open_key, packed
from tidegate.core.model.ledger import InterruptionLoss, Phase
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.ports import Finished
from tidegate.sim.clock import SimClock
from tidegate.wire.records import INTERRUPTION_LOSS, POOL_HISTORY, RESTING, encode

# Spent: two days and a month.
COUNTERS = 3


@pytest.fixture
def planners(cloud: LocalCloud, names: CloudNames) -> tuple[DynamoLedger, DynamoLedger]:
    client, clock = cloud.client("dynamodb"), SimClock(NOW_S)
    return DynamoLedger(client, names.table, clock), DynamoLedger(client, names.table, clock)


type Planners = tuple[DynamoLedger, DynamoLedger]


def test_two_planners_on_a_new_table_agree_on_the_lineage(planners: Planners) -> None:
    one, other = planners

    assert one.view().epoch == other.view().epoch


def test_an_equal_plan_of_a_rival_loses(planners: Planners) -> None:
    one, other = planners
    epoch = one.view().epoch

    assert one.commit(epoch, [launch()])
    assert not other.commit(epoch, [launch()])


def test_equal_plans_without_launches_do_not_both_win(planners: Planners) -> None:
    one, other = planners
    epoch = one.view().epoch

    assert [one.commit(epoch, []), other.commit(epoch, [])] == [True, False]


def test_a_planner_that_lost_the_answer_learns_that_it_had_won(planners: Planners) -> None:
    # moto remembers no ClientRequestToken, as DynamoDB does not after ten minutes.
    one, _ = planners
    epoch = one.view().epoch
    one.commit(epoch, [launch()])

    assert one.commit(epoch, [launch()])


def test_another_plan_of_the_same_planner_does_not_pass_for_the_first(planners: Planners) -> None:
    one, _ = planners
    epoch = one.view().epoch
    one.commit(epoch, [launch("l-1")])

    assert not one.commit(epoch, [launch("l-2")])


def test_a_late_repeat_loses_once_the_rival_has_moved_on(planners: Planners) -> None:
    one, other = planners
    epoch = one.view().epoch
    one.commit(epoch, [launch()])
    other.commit(other.view().epoch, [])

    assert not one.commit(epoch, [launch()])
    assert other.view().launches == (launch(),)


def test_finished_records_are_left_to_the_time_to_live(
    planners: Planners, cloud: LocalCloud, names: CloudNames
) -> None:
    one, _ = planners
    one.commit(one.view().epoch, [launch()])
    one.finish_launches(Finished("l-1", launch().status.DONE))

    items = cloud.client("dynamodb").scan(TableName=names.table)["Items"]

    expiries = {item["sk"]["S"]: item.get("expires_at", {}).get("N") for item in items}
    assert expiries["launch#l-1"] == str(int(NOW_S) + 7 * 24 * 3600)
    assert expiries["epoch"] is None


def test_what_has_ended_costs_a_look_nothing(cloud: LocalCloud, names: CloudNames) -> None:
    client = Counting(cloud.client("dynamodb"))
    ledger = DynamoLedger(cast(Any, client), names.table, SimClock(NOW_S))
    write_day(ledger, nodes=60, up=20)

    client.read = Read()
    seen = ledger.view()

    assert (len(seen.nodes), seen.launches) == (20, ())
    assert client.read.items == 20 + len(seen.resting) + COUNTERS


def test_a_rest_that_version_0_1_wrote_is_read_replaced_and_lifted(
    planners: Planners, cloud: LocalCloud, names: CloudNames
) -> None:
    """Its key had no template; the newer of two counts."""
    one, _ = planners
    before = Resting(offering(), NOW_S + 60, 1, "x", "", pool="t4", template="lt-t4:1")
    after = replace(before, until_s=NOW_S + 600, failures=2)
    item = open_key(f"resting#{before.offering}#t4") | {"body": encode(RESTING, before)}
    cloud.client("dynamodb").put_item(TableName=names.table, Item=packed(item))
    read = one.view().resting
    one.rest(after)
    replaced = one.view().resting

    one.lift(after)

    assert (read, replaced, one.view().resting) == ((before,), (after,), ())


def test_what_version_0_1_learnt_of_a_pool_counts_until_there_is_something_newer(
    planners: Planners, cloud: LocalCloud, names: CloudNames
) -> None:
    one, _ = planners
    before = PoolHistory("t4", (FailedLaunch("l-1", NOW_S - 300, NOW_S - 60),))
    other = replace(before, pool="a10g")
    for each in (before, other):
        item = open_key(f"learnt#{each.pool}") | {"body": encode(POOL_HISTORY, each)}
        cloud.client("dynamodb").put_item(TableName=names.table, Item=packed(item))
    read = one.view().pool_history

    one.learn(PoolHistory("t4"))

    assert sorted(read, key=lambda each: each.pool) == [other, before]
    assert set(one.view().pool_history) == {PoolHistory("t4"), other}


def test_the_interruption_loss_that_version_0_1_noted_stays(
    planners: Planners, cloud: LocalCloud, names: CloudNames
) -> None:
    one, _ = planners
    noted = encode(INTERRUPTION_LOSS, InterruptionLoss(1.5, 2))
    item = node_item(record("i-1", phase=Phase.INTERRUPTED)) | {"toll": noted}
    cloud.client("dynamodb").put_item(TableName=names.table, Item=packed(item))

    one.interrupt_nodes({"i-1": NOW_S + 60}, {"i-1": InterruptionLoss(7.0, 7)})

    assert [each.interruption_loss for each in one.view().nodes] == [InterruptionLoss(1.5, 2)]
