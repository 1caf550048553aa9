"""What the planner does while the calendar says stopped, and when it says up again."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders, why
from tests.core.test_planner import shuffled
from tests.make import NOW_S, digest, instance, job, node, placement, record, snapshot
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.plan import describe
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.ledger import LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Plan, Resume, Send
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

STOPPED = Wanted(False, "stopped until Tue 24 Nov 08:00 Asia/Tokyo", NOW_S + 3600)
UP = Wanted(True, "up until Tue 24 Nov 20:00 Asia/Tokyo", NOW_S + 3600)
SENTENCE = "the cluster is stopped until Tue 24 Nov 08:00 Asia/Tokyo"
REASON = str(DrainReason(DrainCode.STOPPED, SENTENCE))


def seen(
    jobs: list[Job] | None = None,
    nodes: list[Node] | None = None,
    *,
    wanted: Wanted = STOPPED,
    gated_for: str = "",
    order: PendingOrder | None = None,
    results: tuple[OrderResult, ...] = (),
    age_s: float = 1.0,
) -> Snapshot:
    """A cluster whose nodes are all ours and run."""
    names = [each.name for each in nodes or []]
    return snapshot(
        jobs or [],
        nodes or [],
        instances=[instance(name) for name in names],
        records=[record(name, gated_for=gated_for, order=order) for name in names],
        results=results,
        age_s=age_s,
        wanted=wanted,
    )


def names_of(made: Plan, kind: OrderKind) -> list[str]:
    return [name for order in orders(made, kind) for name in order.names]


def recorded(age_s: float) -> LaunchRecord:
    """A launch whose planner died before it knew the result."""
    bought = snapshot([job(1)])
    (launch,) = launches(plan(bought))
    request = fleet_request(launch, "test", placement(bought.cluster))
    return LaunchRecord(launch, NOW_S - age_s, request)


def test_nothing_is_bought_and_every_job_knows_until_when_it_waits() -> None:
    made = plan(seen([job(1), job(2, nodes=3, gpus=4, gpu_type="a10g"), job(3, count=5)]))

    assert launches(made) == []
    assert {each.reason for each in made.unmet} == {SENTENCE}
    assert [each.job_id for each in made.unmet] == ["1", "2", "3"]


def test_a_job_that_waits_for_another_reason_keeps_that_reason() -> None:
    assert why(plan(seen([job(1, reason="Dependency")]))) == "it waits for another job"


def test_idle_nodes_go_at_once() -> None:
    made = plan(seen([job(1)], [node("i-1", idle_s=0.0)]))

    assert names_of(made, OrderKind.RELEASE) == ["i-1"]
    assert why(made) == SENTENCE


def test_busy_nodes_are_drained_and_their_jobs_left_alone() -> None:
    busy = node("i-1", state="MIXED", gpus_alloc=1)
    made = plan(seen([job(1, on=["i-1"]), job(2)], [busy]))

    (drain,) = orders(made, OrderKind.DRAIN)
    assert (drain.names, drain.text) == (("i-1",), REASON)
    assert [each for each in made.actions if not isinstance(each, Send)] == []
    assert {action.order.kind for action in made.actions if isinstance(action, Send)} == {
        OrderKind.DRAIN
    }


def test_a_drain_on_its_way_is_not_repeated() -> None:
    busy = node("i-1", state="MIXED", gpus_alloc=1)
    order = PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 30)

    assert plan(seen([job(1, on=["i-1"])], [busy], order=order)).actions == ()


def test_a_drained_node_goes_when_its_job_has_ended() -> None:
    made = plan(seen([], [node("i-1", state="IDLE+DRAIN", reason=REASON)]))

    assert names_of(made, OrderKind.RELEASE) == ["i-1"]


def test_gated_nodes_of_a_gang_go() -> None:
    gang = job(9, nodes=2)
    gated = [node(name, state="IDLE+DRAIN") for name in ("i-1", "i-2")]
    made = plan(seen([gang], gated, gated_for="9"))

    assert names_of(made, OrderKind.RELEASE) == ["i-1", "i-2"]
    assert names_of(made, OrderKind.UNDRAIN) == []


def test_a_node_that_an_operator_drained_stays_his() -> None:
    made = plan(seen([], [node("i-1", state="IDLE+DRAIN", reason="bad fan, ada")]))

    assert made.actions == ()


def test_booting_nodes_serve_no_job_and_are_not_ended_under_one() -> None:
    made = plan(
        snapshot(
            [job(1)],
            instances=[instance("i-1")],
            records=[record("i-1", phase=Phase.LAUNCHED)],
            wanted=STOPPED,
        )
    )

    assert why(made) == SENTENCE
    assert ended(made) == []


def test_a_node_without_a_record_is_taken_in_and_serves_no_job() -> None:
    made = plan(
        snapshot([job(1)], [node("i-1")], instances=[instance("i-1")], wanted=STOPPED),
    )

    assert why(made) == SENTENCE
    assert "adopt i-1" in describe(made)


def test_jobs_on_reclaimed_nodes_are_saved_as_before() -> None:
    losing = replace(record("i-1", phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + 90)
    made = plan(
        snapshot(
            [job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20")],
            [node("i-1", state="MIXED+DRAIN", gpus_alloc=1, reason="tidegate: EC2 reclaims")],
            instances=[instance("i-1")],
            records=[losing],
            wanted=STOPPED,
        )
    )

    assert names_of(made, OrderKind.SIGNAL) == ["1"]
    assert names_of(made, OrderKind.REQUEUE) == ["1"]
    assert launches(made) == []


def test_a_launch_in_doubt_is_finished_with_what_shows_and_nothing_is_asked_of_ec2() -> None:
    young = replace(seen([job(1)]), launches=(recorded(50),))
    old = replace(young, launches=(recorded(70),))

    assert [each for each in plan(young).actions if isinstance(each, Resume)] == []
    assert [each.may_buy for each in plan(old).actions if isinstance(each, Resume)] == [False]
    assert why(plan(old)) == SENTENCE


def test_up_again_a_launch_in_doubt_may_buy() -> None:
    found = replace(seen([job(1)], wanted=UP), launches=(recorded(50),))

    assert [each.may_buy for each in plan(found).actions if isinstance(each, Resume)] == [True]


def test_a_silent_head_is_told_as_expected() -> None:
    made = plan(seen([job(1)], age_s=40_000.0))
    never = plan(replace(seen([]), digest=None, digest_age_s=float("inf")))

    assert made.notes == (f"{SENTENCE}: its head may be silent",)
    assert never.notes == made.notes


def test_in_the_morning_nodes_that_we_drained_open_again_and_only_those() -> None:
    nodes = [
        node("i-1", state="MIXED+DRAIN", gpus_alloc=1, reason=REASON),
        node("i-2", state="MIXED+DRAIN", gpus_alloc=1, reason="bad fan, ada"),
        node("i-3", state="MIXED+DRAIN", gpus_alloc=1, reason="tidegate: EC2 reclaims it"),
    ]
    running = [job(number, on=[each.name]) for number, each in enumerate(nodes)]
    made = plan(seen(running, nodes, wanted=UP))

    (undrain,) = orders(made, OrderKind.UNDRAIN)
    assert (undrain.names, undrain.text, undrain.only_if) == (("i-1",), REASON, ("DRAIN",))


def test_in_the_morning_a_node_that_opens_serves_a_job_and_is_not_released() -> None:
    idle = node("i-1", state="IDLE+DRAIN", idle_s=4000.0, reason=REASON)

    made = plan(seen([job(1)], [idle], wanted=UP))
    unneeded = plan(seen([], [idle], wanted=UP))

    assert launches(made) == []
    assert made.served[0].by == ("i-1",)
    for each in (made, unneeded):
        assert names_of(each, OrderKind.UNDRAIN) == ["i-1"]
        assert names_of(each, OrderKind.RELEASE) == []


def test_in_the_morning_a_node_that_a_gang_waits_with_is_kept_for_it_and_not_opened() -> None:
    """Opened first it would be anybody's until it is closed again."""
    idle = node("i-1", state="IDLE+DRAIN", idle_s=4000.0, reason=REASON)
    asked = PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 30)

    made = plan(seen([job(9, nodes=2)], [idle], wanted=UP))
    again = plan(seen([job(9, nodes=2)], [idle], wanted=UP, order=asked))

    (kept,) = orders(made, OrderKind.DRAIN)
    assert (kept.names, code_of(kept.text)) == (("i-1",), DrainCode.KEPT)
    assert names_of(made, OrderKind.UNDRAIN) == names_of(again, OrderKind.UNDRAIN) == []
    assert [each.count for each in launches(made)] == [1]


def test_in_the_morning_a_node_beside_a_silent_one_is_kept_and_not_opened() -> None:
    state = "ALLOCATED+DRAIN"
    silent = node("i-1", state=f"{state}+NOT_RESPONDING", gpus_alloc=1, reason=REASON)
    beside = node("i-2", state=state, gpus_alloc=1, reason=REASON)

    made = plan(seen([job(9, nodes=2, on=["i-1", "i-2"])], [silent, beside], wanted=UP))

    (kept,) = orders(made, OrderKind.DRAIN)
    assert (kept.names, code_of(kept.text)) == (("i-2",), DrainCode.KEPT)
    assert names_of(made, OrderKind.UNDRAIN) == ["i-1"]


def test_an_undrain_on_its_way_is_not_repeated_and_one_that_failed_is() -> None:
    drained = node("i-1", state="MIXED+DRAIN", gpus_alloc=1, reason=REASON)
    order = PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S + 30)
    kept = OrderResult("o-1", OrderKind.UNDRAIN, "i-1", OrderOutcome.KEPT)
    jobs = [job(1, on=["i-1"])]

    waiting = plan(seen(jobs, [drained], wanted=UP, order=order))
    failed = plan(seen(jobs, [drained], wanted=UP, order=order, results=(kept,)))

    assert names_of(waiting, OrderKind.UNDRAIN) == []
    assert names_of(failed, OrderKind.UNDRAIN) == ["i-1"]


@pytest.mark.parametrize("wanted", [STOPPED, UP])
def test_the_same_snapshot_in_any_order_gives_the_same_plan(wanted: Wanted) -> None:
    nodes = [
        node("i-1", state="MIXED+DRAIN", gpus_alloc=1, reason=REASON),
        node("i-2", state="IDLE+DRAIN", reason=f"{REASON} "),
        node("i-3"),
        node("i-4", state="MIXED", gpus_alloc=1),
        node("i-5", state="IDLE+DRAIN", reason=REASON),
    ]
    jobs = [job(1, on=["i-1"]), job(2), job(3, nodes=2), job(4, on=["i-4"])]
    whole = replace(seen(jobs, nodes, wanted=wanted), digest=digest(jobs, nodes))
    first = describe(plan(whole))

    for seed in range(10):
        assert describe(plan(shuffled(whole, seed))) == first


def test_what_a_stop_ends_is_no_persons_where_they_took_it_meanwhile() -> None:
    """The order tells the agent that the machine lives; without a guard it would be dead."""
    over = replace(STOPPED, jobs_end_at_s=NOW_S - 1, ends_all=True)
    there = [node(state="MIXED+DRAIN", gpus_alloc=1, reason=REASON)]
    runs = [job(1, on=["i-1"])]

    (stops,) = orders(plan(seen(runs, there, wanted=over)), OrderKind.DELETE)
    dead = replace(seen(runs, there), instances=(instance(state=InstanceState.TERMINATED),))
    (gone,) = orders(plan(dead), OrderKind.DELETE)

    assert stops.names == gone.names == ("i-1",)
    assert set(stops.only_if) == {"IDLE", "MIXED", "ALLOCATED"}
    assert gone.only_if == ()


@pytest.mark.parametrize(
    ("ends_in_s", "delays_s", "lasts_s"),
    [
        (121, [], 120),
        (120, [95], 120),  # the agent needs 25 s
        (60, [35], 60),
        (30, [5], 60),  # a look that comes late: its order has a minute to arrive
        (-10, [0], 60),
    ],
)
def test_what_runs_when_a_stop_waits_no_longer_is_saved_as_from_a_reclaim(
    ends_in_s: float, delays_s: list[int], lasts_s: float
) -> None:
    of = seen(
        [job(1, on=["i-1"])],
        [node(state="MIXED+DRAIN", gpus_alloc=1, reason=REASON), node("i-2")],
        wanted=replace(STOPPED, jobs_end_at_s=NOW_S + ends_in_s),
    )

    found = orders(plan(of), OrderKind.REQUEUE)

    assert [(each.names, each.on_nodes) for each in found] == [(("1",), ("i-1",))] * len(delays_s)
    assert [each.delay_s for each in found] == delays_s
    assert {each.not_after_s for each in found} <= {NOW_S + lasts_s}
    assert not orders(plan(replace(of, wanted=replace(of.wanted, is_up=True))), OrderKind.REQUEUE)


@pytest.mark.parametrize(("state", "reason"), [("IDLE", ""), ("IDLE+DRAIN", REASON)])
def test_a_node_that_a_job_asks_for_by_name_stays_closed_and_says_for_whom(
    state: str, reason: str
) -> None:
    """Slurm would end the job with its node; nobody pays for the night without being told."""
    night = seen([job(7, required_nodes=("i-1",))], [node("i-1", state=state, reason=reason)])

    made = plan(night)

    assert names_of(made, OrderKind.RELEASE) == []
    assert names_of(made, OrderKind.DRAIN) == ([] if reason else ["i-1"])
    (report,) = node_reports(night)
    assert report.held == "job 7 asks for it by name (-w), and Slurm would end it with its node"


def test_a_node_that_such_a_job_runs_on_is_held_by_nothing_else() -> None:
    running = job(8, on=["i-1"])
    busy = node("i-1", state="ALLOCATED", gpus_alloc=1)

    (report,) = node_reports(seen([running, job(7, required_nodes=("i-1",))], [busy]))

    assert report.held == ""
