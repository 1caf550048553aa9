"""What the planner says an idle node is for: kept on purpose, or waiting until its time is over."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_clearing import seen as reserved
from tests.core.test_spares import OFTEN, known, seen
from tests.make import cluster, instance, job, node, pool, record, snapshot
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.wire.decisions import decode_verdicts, encode_verdicts

KEPT, WAITING = IdleUse.KEPT, IdleUse.WAITING


def idle(of: Pool, *idle_s: float, jobs: Sequence[Job] = (), **changes: object) -> Snapshot:
    """Nodes i-0, i-1 and so on, which have idled for so long."""
    names = [f"i-{number}" for number in range(len(idle_s))]
    nodes: list[Node] = [
        replace(node(name, idle_s=s), **changes)  # type: ignore[arg-type]
        for name, s in zip(names, idle_s, strict=True)
    ]
    return snapshot(
        jobs,
        nodes,
        of=cluster(of),
        instances=[instance(name, age_s=9_000) for name in names],
        records=[record(name, age_s=9_000) for name in names],
    )


def test_a_node_that_waits_out_its_time_waits() -> None:
    assert plan(idle(pool(), 10.0)).idle == {"i-0": WAITING}


def test_a_node_that_goes_now_waits_to_go() -> None:
    made = plan(idle(pool(), 5_000.0))

    assert orders(made, OrderKind.RELEASE)
    assert made.idle == {"i-0": WAITING}


@pytest.mark.parametrize("idle_s", [10.0, 5_000.0])
def test_of_a_minimum_so_many_are_kept_from_the_first_second_on(idle_s: float) -> None:
    keeps = replace(pool(), min_nodes=2)

    made = plan(idle(keeps, idle_s, idle_s, idle_s))
    assert sorted(made.idle.values()) == [KEPT, KEPT, WAITING]
    going = [name for each in orders(made, OrderKind.RELEASE) for name in each.names]
    assert all(made.idle[name] is WAITING for name in going)


def test_free_nodes_that_a_pool_keeps_are_kept() -> None:
    keeps = replace(pool(), headroom_nodes=1)

    assert sorted(plan(idle(keeps, 10.0, 10.0)).idle.values()) == [KEPT, WAITING]


def test_a_node_that_a_job_is_about_to_take_waits_for_it_also_of_a_minimum() -> None:
    keeps = replace(pool(), min_nodes=1)

    assert plan(idle(keeps, 10.0, jobs=[job(1)])).idle == {"i-0": WAITING}


def test_what_a_persons_mark_keeps_is_kept() -> None:
    marked = plan(idle(pool(), 10.0, features=("tidegate:keep",)))

    assert marked.idle == {"i-0": KEPT}


def test_spare_nodes_are_kept_and_no_more_of_them_than_are_worth_it() -> None:
    found = plan(seen(known(OFTEN), idle=3)).idle

    assert sorted(found.values()) == [KEPT, WAITING, WAITING]


def test_what_is_paid_for_in_advance_is_kept() -> None:
    made = plan(reserved(Limits(), jobs=(), idle=2))

    assert set(made.idle.values()) == {KEPT}


@pytest.mark.parametrize("state", ["ALLOCATED+DYNAMIC_NORM", "IDLE+DRAIN+DYNAMIC_NORM"])
def test_of_a_node_with_a_job_or_a_persons_drain_nothing_is_said(state: str) -> None:
    there = node("i-1", state=state, reason="fan", set_by=SetBy.USER)
    made = plan(snapshot([], [there], instances=[instance("i-1")], records=[record("i-1")]))

    assert made.idle == {}


def test_verdicts_carry_it_and_a_word_of_a_newer_planner_breaks_no_reader() -> None:
    seen_now = idle(pool(), 10.0)
    found = verdicts_of(plan(seen_now), seen_now)
    assert found.idle == {"i-0": "waiting"}

    newer = replace(found, idle={"i-0": "lent"})
    assert decode_verdicts(encode_verdicts(newer)).idle == {"i-0": "lent"}
