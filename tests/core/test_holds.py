"""Nodes that a person holds: they go neither before their time nor stay after it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders
from tests.make import NOW_S, T4, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.holds import (
    Hold,
    HoldRefused,
    NoHold,
    hold_reason,
    may_hold,
    may_release,
)
from tidegate.core.fleet.members import Member, members
from tidegate.core.model.budgets import Disruption
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.ledger import Cordon, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

HOUR_S = 3600.0
SAYS = "held by user/ada: GPU 3 (slow) : look"
DRAINED = "IDLE+DRAIN+DYNAMIC_NORM"


def held(name: str = "i-1", *, for_s: float = HOUR_S, state: str = DRAINED) -> Node:
    reason = str(hold_reason(SAYS, NOW_S + for_s))
    return node(name, state=state, reason=reason, set_by=SetBy.ROOT, idle_s=1e5)


def fleet(*nodes: Node, jobs: Sequence[Job] = (), disruption: Disruption | None = None) -> Snapshot:
    of = replace(pool(types=(T4,)), disruption=disruption or Disruption())
    records = [record(each.name, age_s=7200) for each in nodes]
    instances = [instance(each.name, age_s=7200) for each in nodes]
    return snapshot(jobs, nodes, of=cluster(of), records=records, instances=instances)


def going(seen: Snapshot) -> list[str]:
    made = plan(seen)
    kinds = (OrderKind.RELEASE, OrderKind.DELETE, OrderKind.UNDRAIN)
    sent = [name for kind in kinds for each in orders(made, kind) for name in each.names]
    return [*sent, *ended(made)]


@pytest.mark.parametrize("set_by", [SetBy.ROOT, SetBy.USER, SetBy.SLURM, SetBy.UNKNOWN])
def test_whoever_slurm_names_a_hold_is_a_persons(set_by: SetBy) -> None:
    reason = f"{hold_reason(SAYS, NOW_S)} : Not responding"

    assert hand(node(state=DRAINED, reason=reason, set_by=set_by)) is Hand.PERSON


def test_a_node_that_was_opened_since_is_not_held_by_its_old_words() -> None:
    """Slurm 24.11 keeps them, and drains with them by itself."""
    old = replace(held(), set_by=SetBy.SLURM)

    assert hand(old) is Hand.SOFTWARE
    assert going(fleet(old)) == ["i-1"]


NIGHT = Wanted(is_up=False, sentence="stopped", jobs_end_at_s=NOW_S - 1, ends_all=True)


@pytest.mark.parametrize(
    "of",
    [
        fleet(held()),
        fleet(held(), disruption=Disruption(expire_after_s=60.0)),
        replace(fleet(held()), wanted=NIGHT),
        fleet(held(state="DOWN+DRAIN+DYNAMIC_NORM")),
        fleet(held(state="MIXED+DRAIN"), jobs=[job(7, on=["i-1"])]),
    ],
    ids=["idle", "expired", "at night", "down", "busy"],
)
def test_before_its_time_nothing_lets_it_go(of: Snapshot) -> None:
    assert going(of) == []
    cordoned = replace(of.nodes[0], cordon=Cordon("it may fail", NOW_S))
    assert going(replace(of, nodes=(cordoned,))) == []


def test_one_describe_that_leaves_a_held_node_out_does_not_end_it() -> None:
    for state in (DRAINED, "DOWN+DRAIN+DYNAMIC_NORM"):
        assert going(replace(fleet(held(state=state)), instances=())) == []
    over = replace(fleet(held(for_s=-1.0, state="DOWN+DRAIN+DYNAMIC_NORM")), instances=())
    assert going(over) == ["i-1"]


def test_what_a_job_there_waits_for_is_bought_elsewhere() -> None:
    assert len(launches(plan(fleet(held(), jobs=[job(1)])))) == 1


def test_past_its_time_it_is_let_go_with_the_reason_and_past_that_persons_word() -> None:
    (order,) = orders(plan(fleet(held(for_s=-1.0))), OrderKind.RELEASE)

    assert order.names == ("i-1",)
    assert order.text == f"tidegate: its hold is over: it was {SAYS} (hold-ends)"
    assert order.despite == f"root: {held(for_s=-1.0).reason}"


def test_past_its_time_a_busy_one_waits_for_its_job() -> None:
    busy = held(for_s=-1.0, state="MIXED+DRAIN")

    assert going(fleet(busy, jobs=[job(7, on=["i-1"])])) == []


def test_past_its_time_nobody_is_asked_to_give_a_busy_one_back() -> None:
    """It goes by itself when its job has ended."""
    busy = held(for_s=-1.0, state="MIXED+DRAIN")

    assert overview(fleet(busy, jobs=[job(7, on=["i-1"])]), None).needs_a_look == ()


def test_what_aws_takes_back_it_takes_from_whoever_holds_it() -> None:
    seen = fleet(held())
    taken = replace(seen.nodes[0], phase=Phase.INTERRUPTED, reclaim_at_s=NOW_S + 60)

    (order,) = orders(plan(replace(seen, nodes=(taken,))), OrderKind.RELEASE)
    assert order.despite == ""  # the agent leaves it to the person until AWS ends it


@pytest.mark.parametrize(("for_s", "is_over"), [(HOUR_S, False), (-1.0, True)])
def test_whatever_it_leaves_for_goes_past_a_hold_that_is_over(for_s: float, is_over: bool) -> None:
    """AWS said that it takes the node, and did not: it may have been a recommendation."""
    seen = fleet(held(for_s=for_s))
    taken = replace(seen.nodes[0], phase=Phase.INTERRUPTED, reclaim_at_s=NOW_S - 600)
    made = plan(replace(seen, nodes=(taken,)))

    (order,) = orders(made, OrderKind.RELEASE)
    assert bool(order.despite) is is_over


def test_status_and_nodes_say_who_holds_it_until_when_and_what_it_costs() -> None:
    seen = fleet(held())

    (told,) = overview(seen, None).needs_a_look
    (report,) = node_reports(seen)

    assert told == (
        f"node i-1 is {SAYS}, until 2027-01-15 09:00:00 UTC; it has cost 0.40 USD and costs 0.20 "
        "an hour; end that: tidegate node release i-1"
    )
    assert report.ends == "let go at 2027-01-15 09:00:00 UTC, when its hold ends"
    assert report.held == SAYS


def asked(seen: Snapshot, name: str = "i-1", for_s: float = HOUR_S) -> Member | HoldRefused:
    return may_hold(name, for_s, members(seen), seen)


@pytest.mark.parametrize(
    "of",
    [
        node(),
        node(state="MIXED+DYNAMIC_NORM"),
        node(state=DRAINED, reason="NHC: disk full", set_by=SetBy.ROOT),
        node(state=DRAINED, reason="tidegate: idle"),
        node(state="DOWN", reason="Not responding"),
        held(for_s=-1.0),
    ],
)
def test_a_node_may_be_held_whatever_software_says_of_it(of: Node) -> None:
    assert isinstance(asked(fleet(of)), Member)


REFUSED = [
    (fleet(node("i-2")), NoHold.UNKNOWN, "cluster test has no node i-1: tidegate nodes shows"),
    (fleet(held()), NoHold.HELD, "already, until 2027-01-15 09:00:00 UTC; end that first"),
    (
        fleet(node(state=DRAINED, reason="bad fan", set_by=SetBy.USER)),
        NoHold.DRAINED,
        "a person has drained i-1 already, and it stays: bad fan",
    ),
    (
        fleet(node(), held("i-2"), held("i-3")),
        NoHold.TOO_MANY,
        "pool t4 lets 2 nodes be held at once (disruption.hold_max_nodes), and i-2, i-3 are",
    ),
    (fleet(node(), disruption=Disruption(hold_max_nodes=0)), NoHold.TOO_MANY, "lets 0 nodes"),
    (
        fleet(node(), disruption=Disruption(hold_max_s=60.0)),
        NoHold.TOO_LONG,
        "pool t4 lets a node be held for 60 s at most (disruption.hold_max_s)",
    ),
    (
        replace(fleet(node()), instances=(instance(state=InstanceState.SHUTTING_DOWN),)),
        NoHold.ENDING,
        "i-1 has been let go, and its instance ends",
    ),
    (
        replace(fleet(node()), nodes=(record(phase=Phase.RELEASED),)),
        NoHold.ENDING,
        "i-1 has been let go",
    ),
    (
        replace(fleet(node()), nodes=(record(phase=Phase.INTERRUPTED),)),
        NoHold.ENDING,
        "AWS takes i-1 back, whoever holds it",
    ),
    (
        snapshot([], [], records=[record(phase=Phase.LAUNCHED)], instances=[instance()]),
        NoHold.BOOTING,
        "i-1 still boots: Slurm does not know it yet",
    ),
    (replace(fleet(node()), digest_age_s=900.0), NoHold.SILENT, "the head was last heard 900 s"),
    (replace(fleet(node()), digest=None), NoHold.SILENT, "the head has not reported yet"),
]


@pytest.mark.parametrize(("seen", "code", "says"), REFUSED)
def test_what_cannot_be_held_is_refused_with_cause_and_remedy(
    seen: Snapshot, code: NoHold, says: str
) -> None:
    found = asked(seen)

    assert isinstance(found, HoldRefused)
    assert found.code is code
    assert says in found.sentence


def test_a_hold_that_is_over_takes_no_ones_place() -> None:
    seen = fleet(node(), held("i-2", for_s=-1.0), held("i-3"))

    assert isinstance(asked(seen), Member)


def test_only_a_hold_that_lasts_can_be_ended() -> None:
    def may(seen: Snapshot) -> Hold | HoldRefused:
        return may_release("i-1", members(seen), seen)

    assert isinstance(may(fleet(held())), Hold)
    for seen in (fleet(node()), fleet(held(for_s=-1.0))):
        found = may(seen)
        assert isinstance(found, HoldRefused)
        assert found.code is NoHold.NOT_HELD
