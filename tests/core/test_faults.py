"""A job whose nodes fail again and again is not requeued for ever."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import A10G, NOW_S, cluster, job, offering, pool, record, snapshot
from tidegate.core.fleet.resume import faults
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Fault, Job, Node, NodeState, Reading
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import Why
from tidegate.core.passes.faults import GOOD_RUN_S, RETRIES_MAX
from tidegate.core.planner import plan

SAID = "node i-2 failed: Not responding"


def fallen(restarts: int = 1, **more: object) -> Job:
    fault = Fault(SAID, ("i-2",), restarts)
    asked: dict[str, object] = {"restarts": restarts, "fault": fault} | more
    return job(9, nodes=2, gpus=4, gpu_type="a10g", **asked)  # type: ignore[arg-type]


def known(faults: int, **more: object) -> Stuck:
    made = Stuck("9", "asked", 0.0, faults=faults, fault_restarts=faults, faulted_at_s=NOW_S - 60)
    made = replace(made, fault=SAID)
    return replace(made, **more)  # type: ignore[arg-type]


def planned(of: Job, *before: Stuck) -> Plan:
    seen = snapshot([of], of=cluster(pool("a10g", (A10G,))))
    return plan(replace(seen, stuck=before))


def noted(made: Plan) -> list[Stuck]:
    return [each.stuck for each in made.actions if isinstance(each, Watch)]


def test_each_fault_is_counted_once_and_the_job_goes_on() -> None:
    first = planned(fallen(1))
    again = planned(fallen(1), *noted(first))
    second = planned(fallen(2), *noted(first))

    assert [(each.faults, each.fault) for each in noted(first)] == [(1, SAID)]
    assert noted(again) == []
    assert [each.faults for each in noted(second)] == [2]
    assert [each.count for each in launches(second)] == [2]
    assert orders(second, OrderKind.HOLD) == []


def test_after_three_retries_it_is_held_and_told_why_and_nothing_is_bought() -> None:
    made = planned(fallen(RETRIES_MAX + 1), known(RETRIES_MAX))

    (order,) = orders(made, OrderKind.HOLD)
    assert (order.names, order.only_if) == (("9",), ("EXPEDITING", "PENDING"))
    assert launches(made) == []
    (unmet,) = made.unmet
    assert SAID in unmet.reason
    assert "scontrol release 9" in unmet.reason
    assert [each.kind for each in unmet.why_nots] == [Why.FAULTS]


def test_the_order_is_repeated_until_slurm_says_that_it_is_held() -> None:
    held = known(4, held_at_s=NOW_S - 5)

    asked = planned(fallen(4), held)
    done = planned(fallen(4, reason="JobHeldAdmin"), held)

    assert len(orders(asked, OrderKind.HOLD)) == 1
    assert orders(done, OrderKind.HOLD) == []
    assert SAID in done.unmet[0].reason
    assert launches(asked) == launches(done) == []


def test_whoever_releases_it_gives_it_new_tries() -> None:
    made = planned(fallen(4), known(4, held_at_s=NOW_S - 600))

    assert [(each.faults, each.held_at_s) for each in noted(made)] == [(0, 0.0)]
    assert orders(made, OrderKind.HOLD) == []
    assert [each.count for each in launches(made)] == [2]


def test_what_was_done_says_how_long_the_run_was_that_ended() -> None:
    made = planned(fallen(fault=Fault(SAID, ("i-2",), 1, ran_s=9_000.0)))

    said = [each.reason for each in made.actions if isinstance(each, Watch)]
    assert said == [f"job 9 was requeued after a run of 2.5 h (20.0 GPU-hours): {SAID} (fault 1)"]


@pytest.mark.parametrize(("ran_s", "counts"), [(GOOD_RUN_S - 1, 4), (GOOD_RUN_S, 1), (None, 4)])
def test_an_hour_of_good_running_begins_the_count_anew(ran_s: float | None, counts: int) -> None:
    fault = Fault(SAID, ("i-2",), 4, ran_s=ran_s)

    made = planned(fallen(4, fault=fault), known(3))

    assert [each.faults for each in noted(made)] == [counts]


@pytest.mark.parametrize(("market", "counts"), [(Market.SPOT, 0), (Market.ON_DEMAND, 1)])
def test_a_spot_node_that_is_gone_was_taken_back_and_is_no_fault(
    market: Market, counts: int
) -> None:
    gone = Fault("node i-2 is gone", ("i-2",), 1, is_gone=True)
    on = record("i-2", offering(A10G, market), pool="a10g", phase=Phase.RELEASED)
    seen = snapshot([fallen(fault=gone)], of=cluster(pool("a10g", (A10G,))), records=[on])

    assert len(noted(plan(seen))) == counts


# -- what the agent sees ---------------------------------------------------------------------


def up(name: str, words: str = "ALLOCATED", reason: str = "") -> Node:
    return Node(name, NodeState.parse(words), 8, 1_000, 4, "t4", reason=reason)


def read(of: Job, *nodes: Node) -> Reading:
    return Reading("22.05", (of,), nodes)


RAN = job(9, nodes=2, on=["i-1", "i-2"], started_at_s=NOW_S - 500)
BEFORE = read(RAN, up("i-1"), up("i-2"))
WAITS = replace(RAN, state="PENDING", node_names=(), restarts=1)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (up("i-2", "DOWN", "Not responding"), SAID),
        (
            up("i-2", "IDLE+DRAIN", "tidegate-health: xid: Xid 79: bus (fatal; remedy: reboot)"),
            "Xid 79",
        ),
        (up("i-3"), "node i-2 is gone"),
    ],
)
def test_a_run_that_ended_as_its_node_failed_has_a_fault(now: Node, said: str) -> None:
    found = faults(BEFORE, read(WAITS, up("i-1", "IDLE"), now), NOW_S)

    assert said in found["9"].said
    assert (found["9"].names, found["9"].restarts, found["9"].ran_s) == (("i-2",), 1, 500.0)


@pytest.mark.parametrize("code", [DrainCode.RECLAIM, DrainCode.SAVING, DrainCode.STOPPED])
def test_a_run_that_was_ended_by_aws_or_for_the_night_has_none(code: DrainCode) -> None:
    told = up("i-2", "ALLOCATED+DRAIN", str(DrainReason(code, "it goes")))

    assert faults(read(RAN, up("i-1"), told), read(WAITS, up("i-1", "IDLE")), NOW_S) == {}


def test_a_job_that_a_person_requeued_has_none() -> None:
    assert faults(BEFORE, read(WAITS, up("i-1", "IDLE"), up("i-2", "IDLE")), NOW_S) == {}
