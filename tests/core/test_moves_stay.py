"""Jobs that run on demand and are not moved to spot: for which reasons, and what they hear."""

from dataclasses import replace

import pytest

from tests.core.moving_jobs import (
    BEGINS_S,
    BOOT_S,
    GATE,
    HOUR_S,
    IDLE,
    LASTING_S,
    LIMIT_S,
    NET_S,
    ONE_TYPE,
    SAYS,
    STEADY,
    running,
    seen,
)
from tests.core.reading import launches, orders
from tests.make import (
    NOW_S,
    T4,
    ZONE,
    instance,
    job,
    node,
    offering,
    record,
)
from tidegate.core.explain.answer import answer
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Cluster, Limits, Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.job_files import Progress
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Send
from tidegate.core.model.resting import Resting
from tidegate.core.model.savings_plans import PlanKind, PlanRate, SavingsPlan
from tidegate.core.model.slurm import Association, Job, Shape
from tidegate.core.model.waiting import Waiting
from tidegate.core.planner import plan


def why(one: Job, **more: object) -> str:
    return answer("1", seen(one, **more), None).needs[-1]  # type: ignore[arg-type]


def refused(ago_s: float) -> list[Resting]:
    return [Resting(offering(), NOW_S - ago_s, 1, "InsufficientInstanceCapacity", "none")]


def with_pool(**more: object) -> Cluster:
    made = replace(ONE_TYPE.pools[0], **more)  # type: ignore[arg-type]
    return replace(ONE_TYPE, pools=(made,))


def is_left(one: Job, **more: object) -> bool:
    """It stays, and nothing is bought or closed for it."""
    made = plan(seen(one, **more))  # type: ignore[arg-type]
    return not [each for each in made.actions if isinstance(each, Launch | Send)]


DUE = f"tidegate:deadline={NOW_S + 20 * HOUR_S:.0f}"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"comment": f"tidegate:ckpt=USR1@20 {DUE}"}, "with tidegate:move in its comment it could"),
        ({"comment": f"tidegate:ckpt=USR1@20 {DUE} tidegate:moved"}, "with tidegate:move in its"),
        ({"progress": None}, "is saved: with tidegate:progress=FILE it could say"),
        ({"progress": Progress(problem="it is a link")}, "how much of its work is saved: it is a"),
        ({"comment": f"tidegate:move {DUE}"}, "it asks for no signal to save its work"),
        ({"comment": f"tidegate:ckpt=USR1@900 {DUE} tidegate:move"}, "more than 10 min to save"),
        ({"comment": f"{SAYS} {DUE} tidegate:keep"}, "job 1 keeps it until"),
        ({"is_requeueable": False}, "it may not be requeued"),
        ({"array_job_id": "1"}, "tasks of arrays and components"),
        ({"state": "SUSPENDED"}, "it is SUSPENDED"),
        ({"required_nodes": ("i-1",)}, "it may run on certain nodes only"),
        ({"constraint": "on-demand"}, "no spot is sold that it may use"),
        ({"started_at_s": NOW_S - LIMIT_S + 300}, "would save less on spot than the move costs"),
        ({"started_at_s": NOW_S - LASTING_S + 61}, "it is not moved before 08:01:00"),
    ],
)
def test_who_did_not_say_so_or_gains_nothing_stays(changed: dict[str, object], said: str) -> None:
    one = replace(running(), **changed)  # type: ignore[arg-type]

    assert is_left(one)
    assert said in why(one)


def test_with_less_time_than_spot_and_an_interruption_need_it_stays() -> None:
    late = running(LIMIT_S + NET_S - 1)

    assert is_left(late)
    assert "it has 12 min to spare, and spot with an interruption needs 12 min" in why(late)
    assert launches(plan(seen(running(LIMIT_S + NET_S + BEGINS_S + 1))))


def test_a_move_begins_only_with_time_for_its_steps_and_goes_on_without() -> None:
    """While nothing is saved each second is one less to spare: it would be taken back, and begun
    again with what is saved next, in turn.
    """
    short = running(LIMIT_S + NET_S + BEGINS_S - 1)
    begun = running(LIMIT_S + NET_S + 1)

    assert is_left(short)
    assert "needs 12 min, and 5 min more as a move begins" in why(short)
    assert not plan(seen(begun, spot="boots")).actions
    assert orders(plan(seen(begun, spot=GATE)), OrderKind.DRAIN)


def test_a_move_does_not_begin_that_would_not_pay_on_the_node_it_gets() -> None:
    """What idles is taken first: it would be closed, found too dear, and opened again, in turn."""
    idle = seen(spot=IDLE)
    dear = replace(idle, nodes=(idle.nodes[0], replace(idle.nodes[1], usd_per_hour=0.53)))

    assert orders(plan(idle), OrderKind.DRAIN)
    assert not orders(plan(dear), OrderKind.DRAIN)
    assert "spot costs no less now" in answer("1", dear, None).needs[-1]


def test_slurms_own_deadline_must_leave_time_for_its_whole_limit() -> None:
    """Slurm cancels what is requeued and fits no more."""
    one = replace(running(), comment=SAYS, deadline_s=NOW_S + LIMIT_S + BOOT_S - 1)

    assert is_left(one)


def test_spot_that_was_refused_lately_is_not_trusted_yet() -> None:
    assert is_left(running(), resting=refused(LASTING_S - 60))
    assert "trusted again at 08:01:00" in why(running(), resting=refused(LASTING_S - 60))
    assert launches(plan(seen(resting=refused(LASTING_S))))


def test_what_waiting_costs_counts_against_a_move() -> None:
    dear = replace(ONE_TYPE, waiting=Waiting(usd_per_job_hour=200.0))

    assert is_left(running(), of=dear)
    assert "would save less" in why(running(), of=dear)


def test_what_is_paid_for_already_comes_before_spot() -> None:
    room = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, NOW_S - 60)
    markets = (Market.RESERVED, Market.SPOT, Market.ON_DEMAND)
    prices = {**ONE_TYPE.prices, room.offering: 0.0}
    free = replace(with_pool(markets=markets), reservations=(room,), prices=prices)

    assert is_left(running(), of=free)
    assert "there is room for it on g4dn.xlarge/us-east-1a/reserved" in why(running(), of=free)
    assert launches(plan(seen(of=replace(free, reservations=()))))


def test_spot_that_costs_as_much_is_not_gone_to() -> None:
    same = replace(ONE_TYPE, prices=dict.fromkeys(ONE_TYPE.prices, 0.5))

    assert is_left(running(), of=same)


def test_a_budget_keeps_it_and_nothing_is_bought_for_it_meanwhile() -> None:
    none = with_pool(disruption=Disruption(budgets=(Budget(nodes=0),)))

    assert is_left(running(), of=none)
    assert "budget of 0 nodes for consolidatable nodes lets 0 of 1 leave" in why(running(), of=none)


def test_a_limit_that_has_room_for_one_node_keeps_it() -> None:
    assert is_left(running(), of=with_pool(limits=Limits(nodes=1)))


def test_who_shares_its_node_stays() -> None:
    beside = replace(running(), job_id="2", comment="")

    made = plan(seen(others=[beside]))

    assert not made.actions
    assert (
        "it shares node i-1 with other jobs" in answer("1", seen(others=[beside]), None).needs[-1]
    )


def test_who_would_lose_its_licence_or_its_place_under_a_cap_stays() -> None:
    """Whoever waits for it gets it as the job is requeued, and keeps it."""
    mine = replace(running(), licences=(("solver", 1),), account="physics")
    other = job(2, reason="Licenses", licences=(("solver", 2),))
    beside = job(2, reason="Resources", account="physics")
    cap = Association("account physics", "physics", in_all=4)

    assert "waits for a licence" in answer("1", seen(mine, others=[other]), None).needs[-1]
    assert not orders(plan(seen(mine, others=[other], spot=GATE)), OrderKind.DRAIN)
    capped = seen(mine, others=[beside], spot=GATE)
    reading = replace(capped.heard.reading, associations=(cap,))
    capped = replace(capped, digest=replace(capped.heard, reading=reading))
    assert "waits under a limit that counts both" in answer("1", capped, None).needs[-1]


def test_who_waits_is_served_before_anybody_moves() -> None:
    waits = job(2, time_limit_s=HOUR_S)
    two = with_pool(limits=Limits(nodes=2))

    made = plan(seen(of=two, others=[waits]))

    assert [each.for_jobs for each in launches(made)] == [("2",)]


def test_two_jobs_move_one_after_the_other_under_a_budget() -> None:
    found = seen()
    second = replace(running(), job_id="2", node_names=("i-3",))
    reading = replace(
        found.heard.reading,
        jobs=(*found.heard.reading.jobs, second),
        nodes=(
            *found.heard.reading.nodes,
            node("i-3", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1),
        ),
    )
    both = replace(
        found,
        digest=replace(found.heard, reading=reading),
        nodes=(*found.nodes, record("i-3", on=STEADY)),
        instances=(*found.instances, instance("i-3", on=STEADY)),
    )

    assert [each.for_jobs for each in launches(plan(both))] == [("1",)]


def test_a_gang_moves_as_a_whole_to_spot_of_one_zone() -> None:
    found = seen(replace(running(), nodes=2, node_names=("i-1", "i-3")), of=with_pool())
    reading = replace(
        found.heard.reading,
        nodes=(
            *found.heard.reading.nodes,
            node("i-3", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1),
        ),
    )
    budget = Disruption(budgets=(Budget(nodes=2),))
    gang = replace(
        found,
        cluster=with_pool(disruption=budget),
        digest=replace(found.heard, reading=reading),
        nodes=(*found.nodes, record("i-3", on=STEADY)),
        instances=(*found.instances, instance("i-3", on=STEADY)),
    )
    one = replace(gang, cluster=with_pool(disruption=Disruption(budgets=(Budget(nodes=1),))))

    assert [(each.count, each.gated_for) for each in launches(plan(gang))] == [(2, "1")]
    assert not launches(plan(one))


def test_the_budget_for_a_move_that_has_no_place_lets_an_idle_node_go() -> None:
    """A limit has no room for its spot node, and the pool's budget lets one node go at once."""
    budget = Disruption(budgets=(Budget(nodes=1),))
    large = replace(running(), shape=Shape(1, "", 4, 8_000))
    found = seen(large, of=with_pool(disruption=budget, limits=Limits(nodes=2)))
    small = replace(node("i-9", idle_s=LASTING_S), memory_mib=4_000)
    shown = (*found.heard.reading.nodes, small)

    made = plan(
        replace(
            found,
            digest=replace(found.heard, reading=replace(found.heard.reading, nodes=shown)),
            nodes=(*found.nodes, record("i-9", on=STEADY)),
            instances=(*found.instances, instance("i-9", on=STEADY)),
        )
    )

    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-9",)]


def test_why_says_that_it_moves_and_what_that_saves() -> None:
    assert "it moves to spot as soon as limits and budgets allow it" in why(running())
    assert "nodes are there, which saves 2." in why(running())
    assert "until its end" in why(running())


def with_plan(usd: float) -> Cluster:
    rates = {T4.name: PlanRate(0.3, 0.5)}
    plan_of = SavingsPlan("arn:x/0f3a", PlanKind.COMPUTE, usd, rates, NOW_S - 900, NOW_S + 1e7)
    return replace(ONE_TYPE, savings_plans=(plan_of,))


def test_it_stays_on_what_a_savings_plan_has_paid_for() -> None:
    # 0.326 USD per hour, of which 0.3 are paid whether it runs there or on spot, for 0.2.
    says = why(running(), of=with_plan(0.3))
    assert says.endswith("it stays there: it runs on what Savings Plan 0f3a has paid for")
    assert launches(plan(seen(running(), of=with_plan(0.3)))) == []


def test_it_moves_where_the_plan_pays_a_small_part_of_its_node() -> None:
    # Of 0.526 a plan of 0.03 pays that, and 0.02 are saved: to leave it saves 0.476.
    (launch,) = launches(plan(seen(running(), of=with_plan(0.03))))

    assert launch.offerings[0].market is Market.SPOT
