"""What a job's own node is, beside which another is dear: of the pools that would serve it."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Job, Node
from tidegate.core.passes.steer import CLOSED
from tidegate.core.planner import plan

HOUR_S = 3600.0
SPOT, ON_DEMAND = (Market.SPOT,), (Market.ON_DEMAND,)
LEAVES_SOON = replace(
    job(9, gpus=4, gpu_type="", time_limit_s=HOUR_S),
    state="RUNNING",
    node_names=("i-big",),
    started_at_s=NOW_S - HOUR_S + 60,
)


def spot_and_fallback() -> Cluster:
    types = (T4, T4_BIG)
    spot = pool("spot", types, markets=SPOT, weight=10)
    return cluster(spot, pool("fallback", types, markets=ON_DEMAND, weight=1))


def beside(jobs: list[Job], big: Node, of: Cluster, kind: InstanceType, pool_name: str) -> Plan:
    """The plan where this node is up, bought on demand."""
    on = offering(kind, Market.ON_DEMAND)
    return plan(
        snapshot(
            jobs,
            [big],
            of=of,
            instances=[instance("i-big", on, pool=pool_name)],
            records=[record("i-big", on, pool=pool_name)],
            age_s=0.0,
        )
    )


def test_a_closed_node_of_the_fallback_is_not_opened_for_a_small_job() -> None:
    big = node("i-big", T4_BIG, state="IDLE+DRAIN+DYNAMIC_NORM", reason=str(CLOSED))

    made = beside([job(1, time_limit_s=2 * HOUR_S)], big, spot_and_fallback(), T4_BIG, "fallback")

    assert orders(made, OrderKind.UNDRAIN) == []
    assert [each.pool for each in launches(made)] == ["spot"]


def test_and_is_closed_as_it_gets_free() -> None:
    big = node("i-big", T4_BIG, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4)
    jobs = [LEAVES_SOON, job(1, time_limit_s=2 * HOUR_S)]

    made = beside(jobs, big, spot_and_fallback(), T4_BIG, "fallback")

    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-big",)]


def test_what_a_full_pool_would_sell_is_nobodys_own() -> None:
    """The next one serves the job, for less."""
    dear = pool("dear", (A10G,), weight=10, limits=Limits(nodes=1), markets=ON_DEMAND)
    of = cluster(dear, pool("cheap", (T4,), markets=ON_DEMAND))
    big = node("i-big", A10G, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4)

    made = beside([LEAVES_SOON, job(1, gpu_type="", time_limit_s=HOUR_S)], big, of, A10G, "dear")

    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-big",)]
    assert [each.pool for each in launches(made)] == ["cheap"]


@pytest.mark.parametrize(("weight", "is_closed"), [(10, False), (1, True)])
def test_what_a_pool_of_less_weight_sells_makes_no_other_node_dear(
    weight: int, is_closed: bool
) -> None:
    """Nothing of it is bought for the job: its own node would be closed, and bought again."""
    dear, cheap = pool("dear", (A10G,), weight=weight), pool("cheap", (T4,), weight=1)
    on = offering(A10G, market=Market.ON_DEMAND)
    of = cluster(*(replace(each, markets=(Market.ON_DEMAND,)) for each in (dear, cheap)))
    idle = {"i-1": record("i-1", on, pool="dear")}
    booting = replace(record("i-2", on, pool="dear"), phase=Phase.LAUNCHED)

    made = plan(
        snapshot(
            [job(1, gpus=1, gpu_type="")],
            [node("i-1", A10G)],
            of=of,
            instances=[instance(name, on, pool="dear") for name in ("i-1", "i-2")],
            records=[*idle.values(), booting],
        )
    )

    closed = [name for each in orders(made, OrderKind.DRAIN) for name in each.names]
    assert ("i-2" in closed) == is_closed


def test_what_is_cheaper_but_taken_back_all_the_time_is_nobodys_own() -> None:
    """The large one was bought for such a job, and is there; another would be bought beside it."""
    of = cluster(pool(types=(T4, T4_BIG), markets=SPOT))
    often, seldom = offering(T4), offering(T4_BIG)
    of = replace(of, hazards={often: 0.8, seldom: 0.01})
    waits = job(1, time_limit_s=1.3 * HOUR_S)
    (bought,) = launches(plan(snapshot([waits], of=of)))

    made = plan(
        snapshot(
            [waits],
            [node("i-big", T4_BIG, state="IDLE+DRAIN+DYNAMIC_NORM", reason=str(CLOSED))],
            of=of,
            instances=[instance("i-big", seldom)],
            records=[record("i-big", seldom)],
            age_s=0.0,
        )
    )

    assert bought.offerings[0] == seldom
    assert launches(made) == []
    assert [each.names for each in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]
