"""A sick node that is paid for in advance is rebooted once before it is replaced."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import NOW_S, T4, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.explain.node_report import node_reports, prospects
from tidegate.core.fleet.drains import told_by
from tidegate.core.fleet.ladder import REBOOT_WITHIN_S
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.finding import is_reset
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.orders import (
    Order,
    OrderKind,
    OrderOutcome,
    OrderResult,
    PendingOrder,
)
from tidegate.core.model.plan import Learn, Plan
from tidegate.core.model.slurm import Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

XID = "tidegate-health: xid: Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)"
ERRS = (
    "tidegate-health: xid: Xid 48: Double bit ECC error"
    " (fatal; NVIDIA's remedy: reset, then a test; below nn-0a1b)"
)
DRAINED = "IDLE+DRAIN+DYNAMIC_NORM"
OFF = "DOWN+DRAIN+DYNAMIC_NORM+REBOOT_ISSUED"
WAITS = "IDLE+DRAIN+DYNAMIC_NORM+REBOOT_REQUESTED"


def sick(reason: str = XID, *, state: str = DRAINED, gpus_alloc: int = 0) -> Node:
    return node("i-1", state=state, reason=reason, set_by=SetBy.ROOT, gpus_alloc=gpus_alloc)


def seen(
    found: Node, market: Market = Market.RESERVED, *, ends_in_s: float | None = None
) -> Snapshot:
    """One node of a pool that has a reservation, or a block, for two."""
    place = offering(T4, market)
    sells = pool(types=(T4,), markets=(market, Market.ON_DEMAND), idle_s=1e6)
    of = cluster(pool(types=(T4,), markets=(Market.ON_DEMAND,), idle_s=1e6))
    of = replace(of, pools=(sells,), prices={**of.prices, place: 0.0})
    if market.is_prepaid:
        ends_at_s = None if ends_in_s is None else NOW_S + ends_in_s
        held = Reservation("cr-1", T4.name, place.zone, 2, market, NOW_S - 9e5, ends_at_s)
        of = replace(of, reservations=(held,))
    known = replace(record("i-1", offering(T4), age_s=900), offering=place, usd_per_hour=0.0)
    shown = replace(instance("i-1", place, age_s=900), capacity_reservation_id="cr-1")
    return snapshot((), (found,), of=of, records=(known,), instances=(shown,))


def later(before: Snapshot, made: Plan, found: Node, after_s: float = 60.0) -> Snapshot:
    """Once the plan was carried out, with what Slurm shows then."""
    learns = {e.pool_history.pool: e.pool_history for e in made.actions if isinstance(e, Learn)}
    assert before.digest is not None
    reading = replace(before.digest.reading, nodes=(found,))
    now_s = before.now_s + after_s
    digest = replace(before.digest, reading=reading, written_at_s=now_s)
    known = {h.pool: h for h in before.pool_history} | learns
    return replace(before, now_s=now_s, digest=digest, pool_history=tuple(known.values()))


def ordered(made: Plan) -> list[OrderKind]:
    about = (OrderKind.REBOOT, OrderKind.RELEASE, OrderKind.DRAIN, OrderKind.DELETE)
    return [kind for kind in about for _ in orders(made, kind)]


def the_order(made: Plan) -> Order:
    (found,) = orders(made, OrderKind.REBOOT)
    return found


@pytest.mark.parametrize("market", [Market.RESERVED, Market.CAPACITY_BLOCK])
def test_what_is_paid_for_in_advance_is_rebooted_and_the_order_says_why(market: Market) -> None:
    found = sick()

    order = the_order(plan(seen(found, market)))

    assert order.names == ("i-1",)
    assert order.despite == told_by(found)
    assert f"found unhealthy: {XID}; it is rebooted before it is replaced" in order.text


@pytest.mark.parametrize("market", [Market.ON_DEMAND, Market.SPOT])
def test_what_is_bought_by_the_hour_is_left_at_once(market: Market) -> None:
    assert ordered(plan(seen(sick(), market))) == [OrderKind.RELEASE]


@pytest.mark.parametrize(
    "reason",
    [
        "tidegate-health: rows: rows of memory could not be remapped (degraded; remedy: replace)",
        "tidegate-health: disk: 0 GiB free on the root disk (degraded; remedy: replace)",
        "tidegate-health: xid: Xid 54: no power (fatal; NVIDIA's remedy: replace)",
        "tidegate-health: neuron: Neuron DMA_ERROR: it has aborted (fatal; AWS's remedy: replace)",
        "tidegate-health: nvme: nvme1 (instance store): medium error (degraded; remedy: replace)",
        "tidegate-health: scratch: /scratch cannot be read (degraded; remedy: replace)",
        "NHC: check_fs: /scratch is gone (remedy: replace)",
        # Of a node that booted before its reasons told the remedy.
        "tidegate-health: rows: rows of memory could not be remapped (per GPU: 1)",
        "SlurmdSpoolDir is full",
    ],
)
def test_what_no_reboot_mends_is_replaced(reason: str) -> None:
    assert ordered(plan(seen(sick(reason)))) == [OrderKind.RELEASE]


@pytest.mark.parametrize(
    "reason",
    [
        "Kill task failed (JobId=7)",
        "NHC: check_hw: eth0",
        "tidegate-health: efa: rdmap0s29: Admin queue is closed (degraded; remedy: reboot)",
        "tidegate-health: nvme: nvme0 (disk of the system): read-only (degraded; remedy: reboot)",
    ],
)
def test_what_others_find_is_worth_a_reboot(reason: str) -> None:
    assert ordered(plan(seen(sick(reason)))) == [OrderKind.REBOOT]


def test_a_node_with_a_job_is_waited_for() -> None:
    busy = sick(state="MIXED+DRAIN+DYNAMIC_NORM", gpus_alloc=1)
    first = seen(busy)

    made = plan(first)
    after = plan(later(first, made, sick(), after_s=7_200.0))

    assert ordered(made) == []
    assert ordered(after) == [OrderKind.REBOOT]


def test_a_node_that_reboots_is_neither_let_go_nor_bought_a_second_time() -> None:
    first = seen(sick())
    off = later(first, plan(first), sick(f"{XID} : reboot issued", state=OFF))
    assert off.digest is not None
    waiting = replace(off.digest, reading=replace(off.digest.reading, jobs=(job(1),)))

    made = plan(replace(off, digest=waiting))

    assert ordered(made) == []
    assert launches(made) == []
    (served,) = made.served
    assert served.by == ("i-1",)


def test_slurm_is_asked_once_and_left_to_begin() -> None:
    first = seen(sick())

    made = plan(later(first, plan(first), sick(state=WAITS)))

    assert ordered(made) == []


def test_a_node_that_is_sick_again_after_its_reboot_is_replaced_and_that_is_said() -> None:
    first = seen(sick())
    off = later(first, plan(first), sick(f"{XID} : reboot issued", state=OFF))
    again = later(off, plan(off), sick())

    (order,) = orders(plan(again), OrderKind.RELEASE)

    assert order.text.startswith("tidegate: found unhealthy: ")
    assert "a reboot has not mended it" in order.text


def test_a_node_that_was_well_between_two_looks_of_its_reboot_is_not_rebooted_twice() -> None:
    first = seen(sick())
    back = later(first, plan(first), node("i-1"))
    again = later(back, plan(back), sick())

    assert ordered(plan(back)) == []
    assert ordered(plan(again)) == [OrderKind.RELEASE]


@pytest.mark.parametrize("is_noted", [True, False])
@pytest.mark.parametrize(("state", "then"), [(DRAINED, [OrderKind.RELEASE]), (WAITS, [])])
def test_one_that_slurm_said_it_reboots_and_that_is_sick_again_is_replaced(
    state: str, then: list[OrderKind], *, is_noted: bool
) -> None:
    """It was off and back between two looks; the planner that asked may have died before it noted
    that.
    """
    first = seen(sick())
    made = plan(first)
    again = later(first, made, sick("tidegate-health: ecc: 2 uncorrected ECC errors", state=state))
    asked = the_order(made)
    (known,) = again.nodes
    noted = PendingOrder(asked.order_id, asked.kind, asked.not_after_s, "")
    pending = noted if is_noted else None
    said = OrderResult(asked.order_id, asked.kind, "i-1", OrderOutcome.DONE)
    assert again.digest is not None
    heard = replace(again.digest, results=(said,))

    made = plan(replace(again, nodes=(replace(known, order=pending),), digest=heard))

    assert ordered(made) == then


def test_an_order_that_was_lost_is_given_again_and_not_for_ever() -> None:
    first = seen(sick())
    made = plan(first)

    assert ordered(plan(later(first, made, sick(), after_s=300.0))) == [OrderKind.REBOOT]
    late = later(first, made, sick(), after_s=REBOOT_WITHIN_S + 1)
    assert ordered(plan(late)) == [OrderKind.RELEASE]


def test_one_whose_reservation_has_ended_meanwhile_is_left() -> None:
    first = seen(sick())
    after = later(first, plan(first), sick(), after_s=300.0)
    by_the_hour = offering(T4, Market.ON_DEMAND)
    shown = tuple(replace(each, offering=by_the_hour) for each in after.instances)

    assert ordered(plan(replace(after, instances=shown))) == [OrderKind.RELEASE]


# Before 23.11.6 Slurm opens what it gives up; since then it leaves it drained.
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("DOWN+DYNAMIC_NORM", "reboot timed out"),
        ("DOWN+DRAIN+DYNAMIC_NORM", "reboot issued : reboot timed out"),
    ],
)
def test_one_that_slurm_gives_up_is_replaced(state: str, words: str) -> None:
    first = seen(sick())
    gone = node("i-1", state=state, reason=f"{XID} : {words}")

    made = plan(later(first, plan(first), gone, after_s=2_000.0))

    assert ordered(made) == [OrderKind.RELEASE]


def test_a_block_that_ends_before_a_boot_would_is_not_rebooted_in() -> None:
    short = seen(sick(), Market.CAPACITY_BLOCK, ends_in_s=2_400.0 + 300.0)

    assert ordered(plan(short)) == [OrderKind.RELEASE]


def test_a_cluster_that_stops_reboots_nothing() -> None:
    evening = Wanted(is_up=False, sentence="stopped until 8:00")

    assert OrderKind.REBOOT not in ordered(plan(replace(seen(sick()), wanted=evening)))


def test_what_aws_takes_away_is_not_rebooted() -> None:
    going = seen(sick())
    (known,) = going.nodes
    known = replace(known, cordon=Cordon("AWS retires the host", NOW_S))

    assert ordered(plan(replace(going, nodes=(known,)))) == [OrderKind.RELEASE]


def test_a_person_s_own_reboot_keeps_the_node_too() -> None:
    """`scontrol reboot` of a healthy node by whoever may."""
    off = node("i-1", state=OFF, reason="Reboot ASAP : reboot issued", set_by=SetBy.USER)

    assert ordered(plan(seen(off))) == []
    assert ordered(plan(seen(off, Market.ON_DEMAND))) == []


def test_who_looks_at_the_nodes_hears_of_it() -> None:
    first = seen(sick())
    waits = prospects(later(first, plan(first), sick(state=WAITS)))["i-1"]
    off = later(first, plan(first), sick(f"{XID} : reboot issued", state=OFF))
    (report,) = node_reports(off)

    assert waits.goes == f"found unhealthy: {XID}; Slurm is to reboot it"
    assert prospects(off)["i-1"].held == "it reboots"
    assert report.ends.startswith("reboots, and is replaced if it does not come back: tidegate-")


# -- a reset of the GPUs, which the node tries before, within the same order ---------------


def told(made: Plan) -> list[str]:
    return [each.reason for each in made.actions if isinstance(each, Learn)]


def says(after: Snapshot, said: str) -> Snapshot:
    """What the node told of its reset is in its record."""
    (known,) = after.nodes
    return replace(after, nodes=(replace(known, reset_said=said),))


RESET = "its GPUs were reset in 21 s, and it takes jobs again"
FAILED = "a reset has not mended its GPUs, and it reboots: Unknown Error"


def test_the_order_says_that_a_reset_comes_before_a_reboot_where_one_is_asked_for() -> None:
    order = the_order(plan(seen(sick(ERRS))))

    assert "; its GPUs are reset, or it is rebooted, before it is replaced" in order.text


def test_who_looks_at_a_node_hears_that_it_may_be_a_reset() -> None:
    first = seen(sick(ERRS))
    waits = prospects(later(first, plan(first), sick(ERRS, state=WAITS)))["i-1"]
    off = later(first, plan(first), sick(f"{ERRS} : reboot issued", state=OFF))
    (report,) = node_reports(off)

    assert waits.goes.endswith("; Slurm is to have it reset its GPUs, or reboot it")
    assert prospects(off)["i-1"].held == "it resets its GPUs, or reboots"
    assert report.ends.startswith("resets its GPUs or reboots, and is replaced if it does not")


@pytest.mark.parametrize("said", [RESET, FAILED])
def test_an_event_says_what_became_of_it_once_and_has_its_code(said: str) -> None:
    first = seen(sick(ERRS))
    off = later(first, plan(first), sick(f"{ERRS} : reboot issued", state=OFF))
    back = says(later(off, plan(off), node("i-1")), said)

    made = plan(back)
    again = plan(says(later(back, made, node("i-1")), said))

    (learn,) = [each for each in made.actions if isinstance(each, Learn)]
    assert (learn.reason, learn.code) == (f"pool t4: i-1: {said}", "gpu-reset")
    assert not any(said in each for each in told(again))


def test_a_node_that_is_sick_again_after_a_reset_is_replaced() -> None:
    first = seen(sick(ERRS))
    off = later(first, plan(first), sick(f"{ERRS} : reboot issued", state=OFF))
    again = says(later(off, plan(off), sick()), RESET)

    (order,) = orders(plan(again), OrderKind.RELEASE)

    assert "a reset or a reboot has not mended it" in order.text


def test_what_a_node_said_a_week_ago_is_no_news_of_what_is_found_now() -> None:
    made = plan(says(seen(sick(ERRS)), RESET))

    assert not any(RESET in each for each in told(made))


@pytest.mark.parametrize(
    ("reason", "is_so"),
    [
        (ERRS, True),
        (f"{ERRS} : reboot issued", True),
        ("NHC: gpu: bad (remedy: reset)", True),
        (XID, False),
        ("the remedy: reset it", False),
    ],
)
def test_a_reason_says_whether_a_reset_is_tried(reason: str, *, is_so: bool) -> None:
    assert is_reset(reason) is is_so
