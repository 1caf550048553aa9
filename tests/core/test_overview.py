"""The cluster at a glance, and the report of each node."""

from dataclasses import replace

import pytest

from tests.make import (
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import Overview, overview
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Limits
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.durations import span, span_s
from tidegate.core.model.ec2 import InstanceState, Market
from tidegate.core.model.ledger import Cordon, Phase
from tidegate.core.model.resting import Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan


def seen_as(snapshot: Snapshot) -> Overview:
    return overview(snapshot, verdicts_of(plan(snapshot), snapshot))


@pytest.mark.parametrize(("code", "leaves"), [(DrainCode.CLOSED, 0), (DrainCode.EXPIRED, 1)])
def test_a_node_that_is_kept_from_small_jobs_does_not_leave(code: DrainCode, leaves: int):
    closed = node("i-1", state="MIXED+DRAIN", gpus_alloc=1, reason=str(DrainReason(code, "why")))
    running = [job(1, on=["i-1"])]

    seen = snapshot(running, [closed], instances=[instance()], records=[record()])

    t4 = next(each for each in overview(seen, None).pools if each.name == "t4")
    assert (t4.up, t4.busy, t4.leaving) == (1 - leaves, 1 - leaves, leaves)


def test_nodes_are_counted_by_what_they_do_and_cost():
    seen = snapshot(
        [job(1, on=["i-1"])],
        [
            node("i-1", state="MIXED", gpus_alloc=1),
            node("i-2"),
            node("i-4", state="IDLE+DRAIN", reason="tidegate: idle"),
        ],
        of=cluster(pool(limits=Limits(gpus=8, usd_per_hour=2)), limits=Limits(nodes=9)),
        records=[record(name, age_s=100) for name in ("i-1", "i-2", "i-3", "i-4")],
        instances=[instance(name) for name in ("i-1", "i-2", "i-3", "i-4")],
    )

    found = seen_as(seen)

    (t4,) = found.pools
    assert (t4.up, t4.busy, t4.booting, t4.leaving) == (2, 1, 1, 1)
    assert t4.usd_per_hour == pytest.approx(0.8)
    assert {unit: used for unit, used, _ in t4.limits} == {"GPUs": 4.0, "USD/h": 0.8}
    assert found.limits == (("nodes", 4.0, 9.0),)
    assert found.needs_a_look == ()


def test_stopped_nodes_and_their_disks_are_told_apart():
    stood = replace(record("i-1", offering(T4, Market.ON_DEMAND)), phase=Phase.RELEASED)
    kept = replace(stood, stopped_at_s=NOW_S - 600, usd_per_hour=0.011)
    shown = instance("i-1", offering(T4, Market.ON_DEMAND), state=InstanceState.STOPPED)

    found = seen_as(snapshot(of=cluster(pool()), records=[kept], instances=[shown]))

    (t4,) = found.pools
    assert (t4.up, t4.booting, t4.leaving, t4.usd_per_hour) == (0, 0, 0, 0.0)
    assert (t4.stopped, t4.stopped_usd_per_hour) == (1, 0.011)


def test_an_instance_that_has_ended_costs_nothing_more():
    ended = instance("i-1", state=InstanceState.SHUTTING_DOWN)

    found = seen_as(snapshot(records=[record("i-1")], instances=[ended]))

    assert found.usd_per_hour == 0


def test_pending_tasks_are_counted_by_their_verdict():
    too_large = job(2, gpus=64, count=5, array_job_id="2")
    seen = snapshot([job(1, count=3, array_job_id="1"), too_large])
    judged = verdicts_of(plan(seen), seen)
    running = job(3, on=["i-1"])
    later = snapshot([job(1, count=3, array_job_id="1"), too_large, running, job(4)])

    found = overview(later, judged)

    assert (found.running, found.starting, found.waiting, found.not_judged) == (1, 3, 5, 1)
    ((reason, count),) = found.waits_because
    assert "the job asks 64" in reason
    assert count == 5


def test_an_array_that_runs_as_many_tasks_as_it_may_waits():
    """Its row counts those that could start: none."""
    capped = job(2, count=0, reason="JobArrayTaskLimit", array_job_id="2")

    seen = seen_as(snapshot([capped]))

    assert seen.waiting == 1
    ((reason, count),) = seen.waits_because
    assert (count, "%limit" in reason) == (1, True)


def test_what_rests_is_told_with_ec2_s_words_until_it_rests_no_more():
    rests = Resting(offering(), NOW_S + 60, 2, "InsufficientInstanceCapacity", "none")
    over = replace(rests, until_s=NOW_S - 1)

    (found,) = seen_as(snapshot(resting=[rests, over])).resting

    assert (found.until_s, found.message) == (NOW_S + 60, "none")


@pytest.mark.parametrize(
    ("state", "reason", "says"),
    [
        ("DOWN", "Not responding", "node i-1 is DOWN: Not responding"),
        (
            "IDLE+DRAIN",
            "bad fan",
            "node i-1 is drained by an operator: bad fan; give it back: "
            "scontrol update NodeName=i-1 State=RESUME",
        ),
        ("IDLE+DRAIN", "tidegate: idle", None),
    ],
)
def test_a_node_that_nobody_can_use_is_something_to_see_to(
    state: str, reason: str, says: str | None
) -> None:
    nodes = [node(state=state, reason=reason)]

    found = seen_as(snapshot([], nodes, records=[record()], instances=[instance()]))

    assert found.needs_a_look == ((says,) if says else ())


def test_a_silent_head_is_something_to_see_to_unless_the_cluster_is_stopped():
    night = Wanted(is_up=False, sentence="stopped until 8:00")

    (silent,) = overview(snapshot(age_s=400), None).needs_a_look

    assert silent.startswith("the head was last heard 400 s ago")
    assert overview(snapshot(age_s=400, wanted=night), None).needs_a_look == ()


@pytest.mark.parametrize(
    ("of", "slurm", "ends"),
    [
        (record(phase=Phase.LAUNCHED), None, "joins in about 200 s; given up 960 s after"),
        (record(), node(), "60 s idle, when no job needs it and pool t4 has its minimum"),
        (record(), node(state="ALLOCATED"), "its jobs end, and 60 s without another"),
        (record(), node(state="IDLE+DRAIN", reason="bad fan"), "drained: bad fan"),
        (record(gated_for="7"), node(state="IDLE+DRAIN"), "kept for job 7 until all"),
        (replace(record(), reclaim_at_s=NOW_S), node(), "EC2 takes it back at 08:00:00 UTC"),
        (replace(record(), cordon=Cordon("rebalance", NOW_S)), node(), "when it is empty: rebal"),
        (replace(record(), pool="old"), node(), "its pool is not in the cluster file"),
        (record(phase=Phase.RELEASED), node(), "released by Slurm: it is being terminated"),
    ],
)
def test_each_node_says_what_would_end_it(of, slurm, ends):
    nodes = [slurm] if slurm else []
    (report,) = node_reports(snapshot([], nodes, records=[of], instances=[instance()]))

    assert ends in report.ends


OLD = Disruption((Budget(nodes=0),), expire_after_s=50.0)
HELD = [
    (OLD, {}, "pool t4's budget of 0 nodes for expired nodes lets 0 of 1 leave at once, 0 do"),
    (replace(OLD, budgets=()), {"min_nodes": 1}, "a new node of pool t4 comes first"),
    (Disruption(), {"min_nodes": 1}, "pool t4 keeps 1 nodes, 0 idle"),
    (Disruption(), {}, ""),
]


@pytest.mark.parametrize(("disruption", "more", "held"), HELD)
def test_each_node_says_what_holds_it(disruption, more, held):
    of = replace(pool(), disruption=disruption, **more)
    (report,) = node_reports(
        snapshot([], [node()], of=cluster(of), records=[record()], instances=[instance()])
    )

    assert report.held == held
    if disruption.expire_after_s:
        assert report.ends.startswith("expired: pool t4 keeps nodes for 50 s")


def test_a_mark_of_a_person_is_named_as_what_holds_a_node():
    kept = replace(node(), features=("tidegate:keep=2027-01-15T09:00",))
    (report,) = node_reports(snapshot([], [kept], records=[record()], instances=[instance()]))

    assert report.held == (
        "the feature tidegate:keep=2027-01-15T09:00 keeps it until 2027-01-15 09:00:00 UTC"
    )


def test_a_node_has_cost_its_age_times_its_price_and_names_its_jobs():
    seen = snapshot(
        [job(1, on=["i-1"])],
        [node()],
        records=[record(age_s=1800)],
        instances=[instance(age_s=1800)],
    )

    (report,) = node_reports(seen)

    assert report.usd == pytest.approx(0.1)
    assert report.jobs == ("1",)


def test_times_are_read_as_people_write_them():
    good = ("90s", "15m", "2h", "7d")
    bad = ("", "x", "-1h", "1.5h", "4000d", f"{'9' * 400}d", f"{'9' * 5000}s", "²d")

    assert [span_s(text) for text in good] == [90, 900, 7200, 604800]
    assert [span_s(text) for text in bad] == [None] * len(bad)
    assert [span(s) for s in (42, 300, 11520, 216000)] == ["42 s", "5 min", "3.2 h", "2.5 d"]
