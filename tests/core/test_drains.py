"""A person's drain is kept; what software drained is judged, and replaced within bounds."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import NOW_S, cluster, instance, job, node, record, snapshot
from tidegate.core.buy.dealing import JOBS_PER_NODE_MAX, jobs_of
from tidegate.core.explain.node_report import prospects
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.model.budgets import DEFAULT_BUDGETS, Budget, DisruptionReason, with_unhealthy
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Fault, Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import Why
from tidegate.core.planner import plan

DRAINED = "IDLE+DRAIN+DYNAMIC_NORM"
CHECK = "NHC: check_fs_used: /tmp is full"

SLURMS = (
    "Epilog error",
    "Prolog error",
    "Prolog/Epilog failure",
    "Kill task failed",
    "Kill task failed (JobId=7 StepId=batch)",
    "batch job complete failure",
    "Duplicate jobid",
    "Low RealMemory (reported:100 < 100.00% of configured:200)",
    "Low socket*core*thread count, Low CPUs",
    "gres/gpu count reported lower than configured (0 < 4)",
    "Not responding",
    "Node unexpectedly rebooted",
    "SlurmdSpoolDir is full",
)
PERSONS = (
    "bad fan",
    "tidegate is odd here, ada",
    "tidegate: leave it to me, ada",
    "Epilog errors are what I look at",
    "Not responding well to me",
    "Low on coffee",
)


def drained(reason: str, set_by: SetBy, name: str = "i-1", state: str = DRAINED) -> Node:
    return node(name, state=state, reason=reason, set_by=set_by)


@pytest.mark.parametrize("set_by", [SetBy.ROOT, SetBy.SLURM, SetBy.UNKNOWN])
@pytest.mark.parametrize("reason", SLURMS)
def test_what_slurm_writes_itself_is_softwares(reason: str, set_by: SetBy) -> None:
    assert hand(drained(reason, set_by)) is Hand.SOFTWARE


@pytest.mark.parametrize("set_by", [SetBy.ROOT, SetBy.USER])
@pytest.mark.parametrize("reason", PERSONS)
def test_whatever_else_a_user_or_root_writes_is_a_persons(reason: str, set_by: SetBy) -> None:
    assert hand(drained(reason, set_by)) is Hand.PERSON


def test_a_person_may_use_slurms_own_words() -> None:
    assert hand(drained("Epilog error", SetBy.USER)) is Hand.PERSON


def test_what_slurm_adds_to_an_open_nodes_reason_is_why_it_is_unhealthy() -> None:
    sick = drained("tidegate: it takes jobs (open) : Kill task failed", SetBy.SLURM)

    (noted, *_) = overview(fleet([sick]), None).needs_a_look
    (order,) = orders(plan(fleet([sick])), OrderKind.RELEASE)

    assert "Kill task failed" in noted
    assert "Kill task failed" in order.text


def test_slurms_words_behind_somebodys_leave_the_node_to_whoever_drained_it() -> None:
    """slurmctld adds its words to the reason that is there, under its own name."""
    assert hand(drained("bad fan : Not responding", SetBy.SLURM)) is Hand.PERSON
    assert hand(drained("Epilog error : Not responding", SetBy.SLURM)) is Hand.SOFTWARE
    assert hand(drained(f"{CHECK} : Not responding", SetBy.SLURM), ("NHC:",)) is Hand.SOFTWARE
    assert hand(drained("tidegate: idle (empty) : Not responding", SetBy.SLURM)) is Hand.OURS


@pytest.mark.parametrize("set_by", [SetBy.ROOT, SetBy.USER])
def test_the_sites_checkers_are_known_by_their_prefix_whoever_runs_them(set_by: SetBy) -> None:
    assert hand(drained(CHECK, set_by), ("NHC:",)) is Hand.SOFTWARE
    assert hand(drained("dcgm: row remap", set_by), ("NHC:",)) is Hand.PERSON
    assert hand(drained("dcgm: row remap", set_by), ("NHC:", "dcgm: ")) is Hand.SOFTWARE
    assert hand(drained("tidegate-health: xid: Xid 79", SetBy.ROOT)) is Hand.SOFTWARE


def test_what_the_agent_wrote_is_ours_by_its_record_whatever_it_says() -> None:
    assert hand(drained("Epilog error", SetBy.US)) is Hand.OURS
    assert hand(drained("", SetBy.UNKNOWN)) is Hand.OURS  # a gate
    assert hand(drained("tidegate: spot reclaim at 12:00", SetBy.ROOT)) is Hand.OURS
    assert hand(drained("tidegate: idle", SetBy.SLURM)) is Hand.OURS  # the agent before
    assert hand(drained("tidegate: idle", SetBy.UNKNOWN)) is Hand.OURS


def test_slurm_drained_a_node_that_still_has_the_reason_of_its_opening() -> None:
    assert hand(drained("tidegate: open", SetBy.ROOT)) is Hand.SOFTWARE


def fleet(
    nodes: Sequence[Node], jobs: Sequence[Job] = (), records: Sequence[NodeRecord] = ()
) -> Snapshot:
    names = [each.name for each in nodes]
    return snapshot(
        jobs,
        nodes,
        instances=[instance(name, age_s=900) for name in names],
        records=records or [record(name, age_s=900) for name in names],
    )


@pytest.mark.parametrize("reason", PERSONS)
def test_a_persons_node_is_kept_and_named(reason: str) -> None:
    seen = fleet([drained(reason, SetBy.ROOT)])

    assert orders(plan(seen), OrderKind.RELEASE) == []
    assert any("operator" in each and reason in each for each in overview(seen, None).needs_a_look)


@pytest.mark.parametrize("reason", [*SLURMS, CHECK])
def test_a_node_that_software_drained_is_released_past_its_reason(reason: str) -> None:
    seen = fleet([drained(reason, SetBy.ROOT)])

    (order,) = orders(plan(seen), OrderKind.RELEASE)

    assert (order.names, order.despite) == (("i-1",), f"root: {reason}")
    assert any("found unhealthy" in each for each in overview(seen, None).needs_a_look)


def test_a_busy_one_goes_when_its_job_has_ended() -> None:
    sick = drained(CHECK, SetBy.ROOT, state="MIXED+DRAIN+DYNAMIC_NORM")

    assert orders(plan(fleet([sick], [job(7, on=["i-1"])])), OrderKind.RELEASE) == []


def test_a_release_for_another_cause_goes_past_softwares_word_too() -> None:
    seen = fleet([drained(CHECK, SetBy.ROOT)])
    taken = replace(seen, nodes=(replace(seen.nodes[0], reclaim_at_s=NOW_S + 60),))

    (order,) = orders(plan(taken), OrderKind.RELEASE)

    assert order.despite == f"root: {CHECK}"


def ten(reason: str = CHECK, state: str = DRAINED) -> Snapshot:
    return fleet([drained(reason, SetBy.ROOT, f"i-{n}", state) for n in range(10)])


def test_of_ten_that_are_found_unhealthy_at_once_a_fifth_goes() -> None:
    seen = ten("Not responding", "DOWN")

    going = [name for each in orders(plan(seen), OrderKind.RELEASE) for name in each.names]
    told = " ".join(overview(seen, None).needs_a_look)

    assert len(going) == 2
    assert "10 of 10 nodes are found unhealthy" in told
    assert "The check may err" in told
    held = [each.held for each in prospects(seen).values() if each.held]
    assert len(held) == 8
    assert "20 % for unhealthy nodes" in held[0]


def test_a_sick_node_of_a_small_pool_goes() -> None:
    assert len(orders(plan(fleet([drained(CHECK, SetBy.ROOT)])), OrderKind.RELEASE)) == 1


def test_what_slurm_has_let_go_leaves_although_ec2_does_not_show_it_yet() -> None:
    order = PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 60.0)
    left, done = record("i-1", age_s=30, order=order), OrderOutcome.DONE
    seen = snapshot(
        nodes=[drained(CHECK, SetBy.ROOT, "i-2")],
        instances=[instance("i-2", age_s=900)],
        records=[left, record("i-2", age_s=900)],
        results=[OrderResult("o-1", OrderKind.RELEASE, "i-1", done)],
    )

    assert orders(plan(seen), OrderKind.RELEASE) == []


def test_budgets_that_are_about_other_nodes_leave_the_usual_one_for_unhealthy_ones() -> None:
    expired = Budget(nodes=1, reasons=frozenset({DisruptionReason.EXPIRED}))

    assert with_unhealthy((expired,)) == (expired, DEFAULT_BUDGETS[0])
    assert with_unhealthy((Budget(nodes=5),)) == (Budget(nodes=5),)


def bought_for(job_id: str, launch: str, name: str) -> NodeRecord:
    return replace(record(name, age_s=900), launch_id=launch, for_jobs=(job_id,))


def watched(made: Plan) -> list[Stuck]:
    return [each.stuck for each in made.actions if isinstance(each, Watch)]


def sick_for(launches_of: dict[str, str], *stuck: Stuck) -> Snapshot:
    """Job 1 waits, and these nodes of these launches for it are drained by a check."""
    nodes = [drained(CHECK, SetBy.ROOT, name) for name in launches_of]
    records = [bought_for("1", launch, name) for name, launch in launches_of.items()]
    return replace(fleet(nodes, [job(1)], records), stuck=stuck)


def test_a_sick_node_is_replaced_and_remembered() -> None:
    made = plan(sick_for({"i-1": "l-1"}))

    (stuck,) = watched(made)
    assert (stuck.job_id, stuck.sick_launches, stuck.until_s) == ("1", ("l-1",), 0.0)
    assert len(launches(made)) == 1


def test_what_two_passes_note_of_a_job_in_one_plan_is_kept_together() -> None:
    faulty = replace(job(1), restarts=1, fault=Fault("node i-9 failed", ("i-9",), 1))
    seen = sick_for({"i-1": "l-1"})
    assert seen.digest
    reading = replace(seen.digest.reading, jobs=(faulty,))
    seen = replace(seen, digest=replace(seen.digest, reading=reading))

    last = watched(plan(seen))[-1]

    assert (last.sick_launches, last.faults) == (("l-1",), 1)
    assert watched(plan(replace(seen, stuck=(last,)))) == []


def test_of_one_need_whose_nodes_were_sick_twice_nothing_is_bought_in_the_same_look() -> None:
    (first,) = watched(plan(sick_for({"i-1": "l-1"})))

    made = plan(sick_for({"i-2": "l-2"}, first))

    (stuck,) = watched(made)
    assert launches(made) == []
    assert (stuck.sick_launches, stuck.until_s) == (("l-1", "l-2"), NOW_S + 300)
    assert made.unmet[0].why_nots[0].kind is Why.SICK
    assert "became unhealthy before it could start" in why(made)


def test_only_who_waits_for_sick_nodes_hears_of_them() -> None:
    seen = sick_for({"i-1": "l-1", "i-2": "l-2"})
    digest = seen.digest
    assert digest is not None

    def of(*jobs: Job) -> list[str]:
        reading = replace(digest.reading, jobs=jobs)
        made = plan(replace(seen, digest=replace(digest, reading=reading)))
        return [each.job_id for each in watched(made)]

    assert of(job(1), job(2)) == ["1"]
    assert of(job(1, on=["i-3"]), job(2)) == []


@pytest.mark.parametrize(
    "reason", ["bad fan", str(DrainReason(DrainCode.EXPIRED, "pool t4 keeps nodes for an hour"))]
)
def test_a_node_that_leaves_for_another_reason_is_not_sick(reason: str) -> None:
    """Its release may be on its way."""
    seen = sick_for({"i-1": "l-1", "i-2": "l-2"})
    told = PendingOrder("e-1-o0", OrderKind.RELEASE, NOW_S + 60.0)
    nodes = [drained(reason, SetBy.ROOT, name) for name in ("i-1", "i-2")]
    for order in (None, told):
        records = [replace(each, order=order) for each in seen.nodes]

        assert watched(plan(fleet(nodes, [job(1)], records))) == []


def test_a_node_that_still_boots_is_neither_sick_nor_well() -> None:
    seen = sick_for({"i-1": "l-1"})
    boots = replace(bought_for("1", "l-2", "i-2"), phase=Phase.LAUNCHED, launched_at_s=NOW_S - 60)
    there = (*seen.instances, instance("i-2", age_s=60))

    (stuck,) = watched(plan(replace(seen, nodes=(*seen.nodes, boots), instances=there)))

    assert stuck.sick_launches == ("l-1",)


def test_a_sick_node_is_remembered_though_its_release_is_on_its_way() -> None:
    """Whoever sent it died before the note was written."""
    seen = sick_for({"i-1": "l-1"})
    told = PendingOrder("e-1-o0", OrderKind.RELEASE, NOW_S + 60.0)
    leaving = replace(seen, nodes=(replace(seen.nodes[0], order=told),))

    (stuck,) = watched(plan(leaving))
    assert stuck.sick_launches == ("l-1",)


def test_both_may_be_there_at_once() -> None:
    assert launches(plan(sick_for({"i-1": "l-1", "i-2": "l-2"}))) == []


def held(until_s: float, failures: int = 1) -> Stuck:
    (first,) = watched(plan(sick_for({"i-1": "l-1", "i-2": "l-2"})))
    return replace(first, until_s=until_s, failures=failures)


def test_after_its_back_off_it_gets_one_more_and_then_a_longer_one() -> None:
    over = held(NOW_S - 1)

    assert len(launches(plan(sick_for({"i-2": "l-2"}, over)))) == 1

    made = plan(sick_for({"i-3": "l-3"}, over))
    (stuck,) = watched(made)
    assert launches(made) == []
    assert (stuck.failures, stuck.until_s) == (2, NOW_S + 900)


def test_while_it_is_held_the_same_sick_nodes_are_not_counted_again() -> None:
    made = plan(sick_for({"i-1": "l-1", "i-2": "l-2"}, held(NOW_S + 100)))

    assert (launches(made), watched(made)) == ([], [])


def test_another_request_begins_anew() -> None:
    other = replace(sick_for({"i-2": "l-2"}, held(NOW_S + 100)))
    assert other.digest is not None
    asks_more = replace(other.digest.reading, jobs=(job(1, cpus=2),))

    made = plan(replace(other, digest=replace(other.digest, reading=asks_more)))

    assert len(launches(made)) == 1


def test_a_launch_of_which_a_node_is_well_is_no_failure_of_its_job() -> None:
    seen = sick_for({"i-1": "l-1", "i-2": "l-2"})
    assert seen.digest is not None
    well = [node(name, gpus_alloc=1, state="ALLOCATED") for name in ("i-3", "i-4")]
    reading = replace(seen.digest.reading, nodes=(*seen.digest.reading.nodes, *well))
    records = (bought_for("1", "l-1", "i-3"), bought_for("1", "l-2", "i-4"))

    made = plan(
        replace(
            seen,
            digest=replace(seen.digest, reading=reading),
            nodes=(*seen.nodes, *records),
            instances=(*seen.instances, instance("i-3"), instance("i-4")),
        )
    )

    assert (len(launches(made)), watched(made)) == (1, [])


def test_each_node_of_a_launch_is_for_its_part_of_the_jobs() -> None:
    (launch,) = launches(plan(snapshot([job(n) for n in range(1, 5)], of=cluster())))
    alike = replace(launch, count=4, for_jobs=("1", "2", "3", "4"))

    assert [jobs_of(alike, n) for n in range(4)] == [("1",), ("2",), ("3",), ("4",)]
    assert jobs_of(replace(alike, count=2), 1) == ("3", "4")
    assert jobs_of(replace(alike, count=8), 7) == ("4",)
    assert jobs_of(replace(alike, for_jobs=("7",)), 3) == ("7",)
    many = replace(alike, count=1, for_jobs=tuple(map(str, range(100))))
    assert len(jobs_of(many, 0)) == JOBS_PER_NODE_MAX
