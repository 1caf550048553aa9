"""Equal gangs that share a launch, and who gets which of its nodes."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders
from tests.make import (
    A10G,
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    digest,
    instance,
    job,
    node,
    offering,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.buy.dealing import dealt
from tidegate.core.buy.launches import MIN_CAPACITY_MAX
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import Instance, Market
from tidegate.core.model.ledger import Launch, LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

ON_DEMAND = offering(market=Market.ON_DEMAND)


def gangs(number: int, nodes: int = 8) -> list[Job]:
    return [job(n, nodes=nodes, gpus=4, gpu_type="a10g") for n in range(1, number + 1)]


def shared(*names: str, nodes: int = 2) -> Launch:
    count = len(names) * nodes
    return Launch("l-1", "t4", (ON_DEMAND,), count, nodes, names, 0.5, names[0], "", gangs=names)


def came(*names: str, zone: str = "us-east-1a", type_: str = "g4dn.xlarge") -> list[Instance]:
    found = replace(ON_DEMAND, zone=zone, instance_type=type_)
    return [replace(instance(name), offering=found, launch_id="l-1") for name in names]


def test_equal_gangs_share_a_launch_of_which_one_whole_gang_is_the_least() -> None:
    (launch,) = launches(plan(snapshot(gangs(125))))

    assert (launch.count, launch.min_count) == (1000, 8)
    assert launch.gangs == tuple(str(n) for n in range(1, 126))
    assert launch.for_jobs == launch.gangs
    assert "8 each or none" in launch.reason


def test_the_tasks_of_an_array_share_a_launch_too() -> None:
    (launch,) = launches(plan(snapshot([job(9, nodes=4, gpus=4, gpu_type="a10g", count=3)])))

    assert (launch.count, launch.min_count, launch.gangs) == (12, 4, ("9", "9", "9"))


def test_a_launch_holds_no_more_than_ec2_can_be_asked_a_minimum_of() -> None:
    made = launches(plan(snapshot(gangs(7, nodes=300))))

    assert [(each.count, each.min_count) for each in made] == [(900, 300), (900, 300), (300, 300)]
    assert max(each.count for each in made) <= MIN_CAPACITY_MAX


def test_unlike_gangs_have_launches_of_their_own() -> None:
    jobs = [*gangs(2), job(3, nodes=3, gpus=4, gpu_type="a10g"), job(4, nodes=8)]

    made = plan(snapshot(jobs))

    bought = sorted((each.count, each.min_count) for each in launches(made))
    names = [name for each in made.served for name in each.by]
    assert bought == [(3, 3), (8, 8), (16, 8)]
    assert len(set(names)) == len(names) == 3 + 8 + 16


def test_who_pays_from_another_account_has_a_launch_of_his_own() -> None:
    one, other = gangs(2)

    made = launches(plan(snapshot([one, replace(other, account="physics")])))

    assert [(each.count, each.account) for each in made] == [(8, ""), (8, "physics")]


def test_only_as_many_gangs_share_as_a_limit_allows() -> None:
    of = cluster(pool("a10g", (A10G,), limits=Limits(nodes=20)))

    made = plan(snapshot(gangs(5), of=of))

    assert [each.count for each in launches(made)] == [16]
    assert [each.job_id for each in made.unmet] == ["3", "4", "5"]


def test_a_replacement_for_one_gang_is_its_own_launch() -> None:
    """One of the nodes that a shared launch brought is gone: its gang alone buys one more."""
    of = cluster(pool("a10g", (A10G,), markets=(Market.ON_DEMAND,)))
    kind = offering(A10G, Market.ON_DEMAND)
    nodes = [
        replace(
            record(f"i-{gang}{n}", phase=Phase.LAUNCHED, age_s=60),
            pool="a10g",
            offering=kind,
            launch_id="l-1",
            gated_for=str(gang),
        )
        for gang in (1, 2)
        for n in range(3)
        if (gang, n) != (2, 2)
    ]
    instances = [
        replace(instance(each.instance_id, age_s=60), offering=kind, pool="a10g") for each in nodes
    ]

    (launch,) = launches(plan(snapshot(gangs(2, 3), records=nodes, instances=instances, of=of)))

    assert (launch.count, launch.gated_for, launch.gangs) == (1, "2", ())


def test_while_a_shared_launch_is_in_doubt_each_gang_counts_on_its_part() -> None:
    of = cluster(pool("a10g", (A10G,), markets=(Market.ON_DEMAND,)))
    before = snapshot(gangs(3), of=of)
    (launch,) = launches(plan(before))
    request = fleet_request(launch, "test", placement(of))
    doubt = LaunchRecord(launch, NOW_S - 5, request)

    made = plan(replace(before, launches=(doubt,)))

    assert launches(made) == []
    assert {len(each.by) for each in made.served} == {8}


def test_whole_gangs_are_dealt_in_the_queues_order_and_the_rest_goes_back() -> None:
    found = dealt(shared("7", "8", "9"), came("i-5", "i-1", "i-3", "i-2", "i-4"), {})

    assert found == {"i-1": "7", "i-2": "7", "i-3": "8", "i-4": "8", "i-5": None}


def test_a_gang_is_of_one_zone_and_of_one_type_where_it_can_be() -> None:
    some = [*came("i-1", "i-4", type_="g5.xlarge"), *came("i-2", "i-3")]
    elsewhere = came("i-0", zone="us-east-1b")

    found = dealt(shared("7", "8", "9"), [*some, *elsewhere], {})

    assert found == {"i-2": "7", "i-3": "7", "i-1": "8", "i-4": "8", "i-0": None}


def test_what_a_dead_planner_has_dealt_stays_dealt() -> None:
    """It died between two transactions: the second deals on, whatever order EC2 shows."""
    known = {"i-9": "7", "i-8": "7", "i-7": "8"}

    found = dealt(shared("7", "8", "9"), came("i-1", "i-2", "i-3", "i-7", "i-8", "i-9"), known)

    assert found == known | {"i-1": "8", "i-2": "9", "i-3": "9"}


def test_what_is_known_to_have_been_given_back_is_not_dealt() -> None:
    found = dealt(shared("7", "8"), came("i-1", "i-2", "i-3"), {"i-1": ""})

    assert found == {"i-1": None, "i-2": "7", "i-3": "7"}


def test_a_launch_of_one_gang_is_all_its_own() -> None:
    one = replace(shared("7"), gangs=(), count=2)

    assert dealt(one, came("i-1"), {}) == {"i-1": "7"}


def test_types_of_other_pools_do_not_join_a_shared_launch() -> None:
    """The same kind of gang on two types: a limit keeps the second gang from the first pool."""
    of = cluster(
        pool("small", (T4,), markets=(Market.ON_DEMAND,), limits=Limits(nodes=3)),
        pool("large", (T4_BIG,), markets=(Market.ON_DEMAND,)),
    )

    made = launches(plan(snapshot([job(n, nodes=3) for n in (1, 2, 3)], of=of)))

    assert sorted((each.pool, each.count, each.gangs) for each in made) == [
        ("large", 6, ("2", "3")),
        ("small", 3, ()),
    ]


def spare(
    state: str = "IDLE+DRAIN", reason: str = "", *, age_s: float = 1.0, result: str = ""
) -> Snapshot:
    """A node beyond whole gangs, let go of at once, that has joined all the same."""
    order = PendingOrder("o-1", OrderKind.RELEASE, NOW_S - 1)
    answer = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.DONE, "")
    return snapshot(
        nodes=[node(state=state, reason=reason)],
        instances=[instance()],
        records=[record(phase=Phase.RELEASED, order=order if result else None)],
        results=(answer,) if result else (),
        age_s=age_s,
    )


def test_a_spare_node_that_has_joined_leaves_slurm_before_it_ends() -> None:
    made = plan(spare())

    assert ended(made) == []
    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-1",)]


def test_nor_does_it_end_while_the_head_is_silent() -> None:
    assert ended(plan(spare(age_s=400.0))) == []


def test_it_ends_as_slurm_has_let_it_go() -> None:
    """Also by a digest whose nodes were read a moment before."""
    assert ended(plan(spare(result="done"))) == ["i-1"]
    assert ended(plan(replace(spare(), digest=digest()))) == ["i-1"]
    assert ended(plan(replace(spare(age_s=400.0), digest=digest()))) == ["i-1"]


def test_a_spare_node_that_a_person_holds_stays() -> None:
    made = plan(spare(reason="ada: looking at a fan"))

    assert ended(made) == []
    assert orders(made, OrderKind.RELEASE) == []


def test_a_spare_node_that_somebody_opened_and_uses_keeps_its_job() -> None:
    made = plan(spare("MIXED"))

    assert ended(made) == []
    assert orders(made, OrderKind.RELEASE) == []
    assert [each.names for each in orders(made, OrderKind.DRAIN)] == [("i-1",)]


@pytest.mark.parametrize("age_s", [1.0, 400.0])
def test_what_was_ended_a_moment_ago_is_ended_again_only_where_ec2_does_not_follow(
    age_s: float,
) -> None:
    """EC2 may show it running for some seconds more; each call would count as a node that ended."""
    let_go = record(phase=Phase.RELEASED)
    seen = snapshot(instances=[instance()], records=[let_go], age_s=age_s)
    known = [
        replace(let_go, ended_at_s=ended_at_s) for ended_at_s in (NOW_S - 2.0, NOW_S - 61.0, None)
    ]

    assert [ended(plan(replace(seen, nodes=(each,)))) for each in known] == [[], ["i-1"], ["i-1"]]
