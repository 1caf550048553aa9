"""What every `Ledger` promises: run on the simulated one and on DynamoDB as moto plays it."""

from dataclasses import replace
from itertools import product

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.make import NOW_S, offering
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.core.buy.launches import LAUNCHES_MAX
from tidegate.core.model.ec2 import FleetRequest, Market, Override
from tidegate.core.model.ledger import (
    JOBS_KEPT_MAX,
    Cordon,
    Launch,
    LaunchRecord,
    LaunchStatus,
    NodeRecord,
    Phase,
)
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.ports import COMMIT_MAX, Finished, Ledger
from tidegate.sim.clock import SimClock

HOUR_S = 3600.0
DRAIN = PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 60)


def launch(launch_id: str = "l-1", reason: str = "job 7 waits") -> LaunchRecord:
    asked = FleetRequest(
        client_token=launch_id,
        launch_template_id="lt-1",
        launch_template_version="3",
        market=Market.SPOT,
        count=2,
        min_count=2,
        overrides=(Override("g4dn.xlarge", "us-east-1a", "subnet-a", 0),),
        tags=(("tidegate:launch", launch_id),),
    )
    planned = Launch(
        launch_id=launch_id,
        pool="t4",
        offerings=(offering(),),
        count=2,
        min_count=2,
        for_jobs=("7",),
        usd_per_hour_each=0.526,
        gated_for="7",
        reason=reason,
    )
    return LaunchRecord(planned, NOW_S, asked)


def node(instance_id: str = "i-1", phase: Phase = Phase.LAUNCHED) -> NodeRecord:
    return NodeRecord(
        instance_id, "l-1", "t4", offering(), NOW_S - 1 / 3, 0.2, phase, gated_for="7"
    )


def with_node(ledger: Ledger, phase: Phase = Phase.LAUNCHED) -> None:
    """The ledger after launch l-1 brought node i-1, which then went on to `phase`."""
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node()]))
    if phase is Phase.INTERRUPTED:
        ledger.interrupt_nodes({"i-1": NOW_S + 120})
    elif phase:
        ledger.advance_nodes({"i-1": phase})


def the_node(ledger: Ledger) -> NodeRecord:
    (found,) = ledger.view().nodes
    return found


def test_a_new_ledger_is_empty_and_keeps_its_lineage(ledger: Ledger) -> None:
    first, second = ledger.view(), ledger.view()

    assert first == second
    assert (first.epoch.number, first.digest_seen) == (0, None)
    assert (first.nodes, first.launches, first.resting) == ((), (), ())


def test_a_commit_moves_the_epoch_and_records_the_launches(ledger: Ledger) -> None:
    epoch = ledger.view().epoch
    records = [launch("l-1"), launch("l-2")]

    assert ledger.commit(epoch, records)

    seen = ledger.view()
    assert seen.epoch == replace(epoch, number=epoch.number + 1)
    assert sorted(seen.launches, key=lambda one: one.launch.launch_id) == records


def test_launches_for_very_many_jobs_are_recorded_with_the_first(ledger: Ledger) -> None:
    """DynamoDB takes 400 KB in an item and 4 MB in a transaction."""
    jobs = tuple(f"{1_000_000 + number}_{number}" for number in range(100_000))
    records = [launch(f"l-{number:02}") for number in range(LAUNCHES_MAX)]
    large = [replace(each, launch=replace(each.launch, for_jobs=jobs)) for each in records]

    assert ledger.commit(ledger.view().epoch, large)
    assert {e.launch.for_jobs for e in ledger.view().launches} == {jobs[:JOBS_KEPT_MAX]}


def test_a_commit_without_launches_also_moves_the_epoch(ledger: Ledger) -> None:
    epoch = ledger.view().epoch

    assert ledger.commit(epoch, [])

    assert ledger.view().epoch.number == epoch.number + 1


def test_whoever_reads_the_next_epoch_sees_the_orders_of_the_one_before(ledger: Ledger) -> None:
    with_node(ledger)
    epoch = ledger.view().epoch

    assert ledger.commit(epoch, [launch("l-2")], {"i-1": DRAIN})

    assert the_node(ledger).order == DRAIN
    assert [one.launch.launch_id for one in ledger.view().launches] == ["l-2"]


def test_a_commit_that_loses_notes_no_order(ledger: Ledger) -> None:
    with_node(ledger)
    epoch = ledger.view().epoch
    ledger.commit(epoch, [])

    assert not ledger.commit(epoch, [], {"i-1": DRAIN})

    assert the_node(ledger).order is None


def test_as_many_orders_as_a_commit_may_hold_are_noted_with_it(ledger: Ledger) -> None:
    names = [f"i-{number}" for number in range(COMMIT_MAX)]
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))

    assert ledger.commit(ledger.view().epoch, [], dict.fromkeys(names, DRAIN))

    assert {one.order for one in ledger.view().nodes} == {DRAIN}


def test_of_two_commits_on_one_epoch_exactly_one_wins(ledger: Ledger) -> None:
    epoch = ledger.view().epoch

    won = [ledger.commit(epoch, [launch(name)]) for name in ("l-1", "l-2")]

    assert won == [True, False]
    assert [one.launch.launch_id for one in ledger.view().launches] == ["l-1"]
    assert ledger.view().epoch.number == epoch.number + 1


def test_a_commit_of_another_lineage_loses(ledger: Ledger) -> None:
    epoch = ledger.view().epoch

    assert not ledger.commit(replace(epoch, lineage="00000000"), [launch()])

    assert ledger.view().launches == ()


def test_a_launch_id_is_recorded_once_and_never_overwritten(ledger: Ledger) -> None:
    ledger.commit(ledger.view().epoch, [launch("l-1", "first")])

    assert not ledger.commit(ledger.view().epoch, [launch("l-1", "second"), launch("l-2")])

    assert [one.launch.reason for one in ledger.view().launches] == ["first"]


def test_a_commit_repeated_moves_the_epoch_once(ledger: Ledger) -> None:
    epoch = ledger.view().epoch
    ledger.commit(epoch, [launch()])

    ledger.commit(epoch, [launch()])

    assert ledger.view().epoch.number == epoch.number + 1
    assert ledger.view().launches == (launch(),)


def test_ninety_nine_launches_fit_in_a_commit(ledger: Ledger) -> None:
    records = [launch(f"l-{number:02}") for number in range(99)]

    assert ledger.commit(ledger.view().epoch, records)

    assert set(ledger.view().launches) == set(records)


def test_more_than_a_page_of_records_is_seen_whole(ledger: Ledger) -> None:
    records = [launch(f"l-{number}", reason="x" * 200_000) for number in range(12)]
    for record in records:
        ledger.commit(ledger.view().epoch, [record])

    seen = {one.launch.launch_id for one in ledger.view().launches}

    assert seen == {one.launch.launch_id for one in records}


def test_a_finished_launch_gives_way_to_its_nodes(ledger: Ledger) -> None:
    ledger.commit(ledger.view().epoch, [launch()])

    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node("i-1"), node("i-2")]))

    seen = ledger.view()
    assert seen.launches == ()
    assert sorted(seen.nodes, key=lambda one: one.instance_id) == [node("i-1"), node("i-2")]


def test_only_a_launch_that_is_in_doubt_can_be_taken_up(ledger: Ledger) -> None:
    ledger.commit(ledger.view().epoch, [launch()])

    taken = ledger.take_launch("l-1")

    (doubt,) = ledger.view().launches
    assert taken
    assert doubt.taken_at_s is not None
    assert replace(doubt, taken_at_s=None) == launch()
    ledger.finish_launches(Finished("l-1", LaunchStatus.FAILED))
    assert not ledger.take_launch("l-1")
    assert not ledger.take_launch("l-2")
    assert ledger.view().launches == ()


def test_finishing_again_adds_what_is_new_and_resets_nothing(ledger: Ledger) -> None:
    with_node(ledger, Phase.JOINED)

    ledger.finish_launches(Finished("l-1", LaunchStatus.FAILED, [node("i-1"), node("i-2")]))

    phases = {one.instance_id: one.phase for one in ledger.view().nodes}
    assert phases == {"i-1": Phase.JOINED, "i-2": Phase.LAUNCHED}
    assert ledger.view().launches == ()


def test_a_launch_with_very_many_nodes_is_written_whole(ledger: Ledger) -> None:
    ledger.commit(ledger.view().epoch, [launch()])

    ledger.finish_launches(
        Finished("l-1", LaunchStatus.DONE, [node(f"i-{number}") for number in range(250)])
    )

    assert len(ledger.view().nodes) == 250


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_a_node_only_moves_forward(ledger: Ledger, before: Phase, after: Phase) -> None:
    with_node(ledger, before)

    ledger.advance_nodes({"i-1": after})

    left = [one.phase for one in ledger.view().nodes]
    assert left == [phase for phase in [max(before, after)] if phase is not Phase.TERMINATED]


def test_an_interruption_beats_a_drain_and_is_not_undone_by_joining(ledger: Ledger) -> None:
    with_node(ledger, Phase.JOINED)
    ledger.set_orders({"i-1": DRAIN})

    assert ledger.interrupt_nodes({"i-1": NOW_S + 120}) == {"i-1"}

    ledger.advance_nodes({"i-1": Phase.JOINED})

    assert the_node(ledger).phase is Phase.INTERRUPTED
    assert the_node(ledger).reclaim_at_s == NOW_S + 120
    assert the_node(ledger).order == DRAIN


def test_a_repeated_interruption_changes_nothing(ledger: Ledger) -> None:
    with_node(ledger)
    ledger.interrupt_nodes({"i-1": NOW_S + 120})
    before = ledger.view()

    assert ledger.interrupt_nodes({"i-1": NOW_S + 120}) == {"i-1"}

    assert ledger.view() == before


def test_a_storm_is_noted_for_every_node_that_can_be(ledger: Ledger) -> None:
    names = [f"i-{number}" for number in range(130)]
    nodes = [replace(node(), instance_id=name) for name in names]
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, nodes))
    ledger.advance_nodes({"i-7": Phase.RELEASED})

    noted = ledger.interrupt_nodes(dict.fromkeys([*names, "i-unknown"], NOW_S + 120))

    assert noted == {*names} - {"i-7"}
    interrupted = {one.instance_id for one in ledger.view().nodes if one.reclaim_at_s is not None}
    assert interrupted == noted


def test_a_released_node_cannot_be_interrupted(ledger: Ledger) -> None:
    with_node(ledger, Phase.RELEASED)

    assert not ledger.interrupt_nodes({"i-1": NOW_S + 120})

    assert the_node(ledger).phase is Phase.RELEASED
    assert the_node(ledger).reclaim_at_s is None


def test_nothing_is_made_up_about_an_unknown_node(ledger: Ledger) -> None:
    ledger.advance_nodes({"i-9": Phase.JOINED})
    assert not ledger.interrupt_nodes({"i-9": NOW_S})
    ledger.set_orders({"i-9": DRAIN})
    ledger.ungate(["i-9"])

    assert ledger.view().nodes == ()


def test_an_order_is_remembered_until_it_is_settled(ledger: Ledger) -> None:
    with_node(ledger)

    ledger.set_orders({"i-1": DRAIN})
    assert the_node(ledger).order == DRAIN

    ledger.set_orders({"i-1": None})
    assert the_node(ledger).order is None


def test_an_ungated_node_waits_for_no_gang(ledger: Ledger) -> None:
    with_node(ledger)

    ledger.ungate(["i-1"])

    assert the_node(ledger) == replace(node(), gated_for="")


def test_of_many_nodes_each_is_written_whatever_the_others_are(ledger: Ledger) -> None:
    """More than a call takes, and in each call one that is further and one that is unknown."""
    names = [f"i-{number}" for number in range(130)]
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, [node(name) for name in names]))
    ledger.advance_nodes({"i-7": Phase.RELEASED, "i-107": Phase.RELEASED})

    asked = ["i-unknown-a", *names[:110], "i-unknown-b", *names[110:]]
    ledger.advance_nodes(dict.fromkeys(asked, Phase.JOINED))
    ledger.set_orders(dict.fromkeys(asked, DRAIN))
    ledger.ungate(asked)

    found = {one.instance_id: one for one in ledger.view().nodes}
    assert {name for name, one in found.items() if one.phase is Phase.JOINED} == {*names} - {
        "i-7",
        "i-107",
    }
    assert {(one.order, one.gated_for) for one in found.values()} == {(DRAIN, "")}
    assert len(found) == 130


def test_nodes_are_found_by_id_in_whatever_phase(ledger: Ledger) -> None:
    many = [node(f"i-{number}") for number in range(150)]
    ledger.commit(ledger.view().epoch, [launch()])
    ledger.finish_launches(Finished("l-1", LaunchStatus.DONE, many))
    ledger.advance_nodes({"i-3": Phase.TERMINATED})

    found = ledger.nodes([*(one.instance_id for one in many), "i-3", "i-foreign"])

    assert len(found) == 150
    assert {one.instance_id: one.phase for one in found}["i-3"] is Phase.TERMINATED
    assert ledger.nodes(["i-foreign"]) == ledger.nodes([]) == ()


def test_a_cordon_is_remembered_and_the_newest_counts(ledger: Ledger) -> None:
    with_node(ledger, Phase.JOINED)
    first, second = Cordon("rebalance", NOW_S), Cordon("maintenance", NOW_S + 1, NOW_S + 1 / 3)

    assert ledger.cordon_node("i-1", first)
    assert ledger.cordon_node("i-1", second)

    assert [one.cordon for one in ledger.view().nodes] == [second]
    assert [one.cordon for one in ledger.nodes(["i-1"])] == [second]


@pytest.mark.parametrize("phase", [Phase.RELEASED, Phase.TERMINATED])
def test_a_node_that_leaves_anyway_is_not_cordoned(ledger: Ledger, phase: Phase) -> None:
    with_node(ledger, phase)

    assert not ledger.cordon_node("i-1", Cordon("rebalance", NOW_S))
    assert not ledger.cordon_node("i-unknown", Cordon("rebalance", NOW_S))
    assert [one.cordon for one in ledger.nodes(["i-1"])] == [None]


def test_a_cordoned_node_can_still_be_interrupted(ledger: Ledger) -> None:
    with_node(ledger, Phase.JOINED)
    ledger.cordon_node("i-1", Cordon("rebalance", NOW_S))

    assert ledger.interrupt_nodes({"i-1": NOW_S + 120}) == {"i-1"}
    assert not ledger.cordon_node("i-1", Cordon("maintenance", NOW_S))


def test_a_node_written_before_there_were_cordons_can_be_read(
    cloud: LocalCloud, names: CloudNames, clock: SimClock
) -> None:
    ledger = DynamoLedger(cloud.client("dynamodb"), names.table, clock)
    with_node(ledger)
    cloud.client("dynamodb").update_item(
        TableName=names.table,
        Key={"pk": {"S": "ledger"}, "sk": {"S": "node#i-1"}},
        UpdateExpression="REMOVE cordon",
    )

    assert [one.cordon for one in ledger.view().nodes] == [None]
