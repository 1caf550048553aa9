"""Offerings whose nodes become sick more often than others are bought last, and never refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import NOW_S, T4, T4_BIG, cluster, job, offering, pool, snapshot
from tidegate.core.explain.overview import overview
from tidegate.core.model.cluster import Pool, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.finding import OUR_CHECKS, Finding, StoppedCheck
from tidegate.core.model.ledger import Launch
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.places import PLACE_COUNTS_S, sick_places
from tidegate.core.planner import plan

A, B = "us-east-1a", "us-east-1b"
XID = f"{OUR_CHECKS} xid"
DAY_S = 86_400.0


def of_t4(zone: str = A, market: Market = Market.ON_DEMAND) -> Offering:
    return offering(T4, market, zone)


def found(
    number: int,
    on: Offering | None = None,
    *,
    check: str = XID,
    age_s: float = DAY_S,
    pool_nodes: int = 10,
    place_nodes: int = 5,
) -> Finding:
    place = on or of_t4()
    return Finding(f"i-{number}", check, place, NOW_S - age_s, pool_nodes, place_nodes)


def twice(
    on: Offering | None = None, *, pool_nodes: int = 10, place_nodes: int = 5
) -> tuple[Finding, ...]:
    both = (found(number, on, pool_nodes=pool_nodes) for number in (1, 2))
    return tuple(replace(each, place_nodes=place_nodes) for each in both)


def seen(findings: Sequence[Finding], jobs: Sequence[Job] = (), of: Pool | None = None) -> Snapshot:
    sells = of or pool(types=(T4,), zones=(A, B), markets=(Market.ON_DEMAND,))
    histories = (PoolHistory("t4", findings=tuple(findings)),)
    return replace(snapshot(jobs or [job(1)], of=cluster(sells)), pool_history=histories)


def bought(of: Snapshot) -> Launch:
    (launch,) = launches(plan(of))
    return launch


def test_a_node_is_bought_in_another_zone_first_and_the_launch_says_why() -> None:
    assert bought(seen(())).offerings[0] == of_t4(A)

    launch = bought(seen(twice()))

    assert launch.offerings == (of_t4(B),)
    assert launch.reason.endswith(
        "; g4dn.xlarge/us-east-1a/on-demand gave 2 sick nodes in 24.0 h: bought elsewhere first"
    )


def test_where_nothing_else_is_to_be_had_it_is_bought_all_the_same() -> None:
    rests = Resting(of_t4(B), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none")

    launch = bought(replace(seen(twice()), resting=(rests,)))

    assert launch.offerings == (of_t4(A),)
    assert launch.reason.endswith("gave 2 sick nodes in 24.0 h, and nothing else is to be had")


def test_a_pool_that_sells_nothing_else_buys_there() -> None:
    only = pool(types=(T4,), zones=(A,), markets=(Market.ON_DEMAND,))

    assert bought(seen(twice(), of=only)).offerings == (of_t4(A),)


def test_a_dearer_market_and_a_pool_of_lesser_weight_come_before_it() -> None:
    spot_too = pool(types=(T4,), zones=(A,))
    assert bought(seen(twice(of_t4(A, Market.SPOT)), of=spot_too)).offerings == (of_t4(A),)

    first, second = pool(types=(T4,), markets=(Market.ON_DEMAND,), weight=10), pool("other", (T4,))
    both = replace(seen(twice()), cluster=cluster(first, second))
    assert bought(both).pool == "other"


def test_a_pool_that_must_name_several_types_names_the_place_too_rather_than_none() -> None:
    strict = replace(
        pool(types=(T4, T4_BIG), zones=(A,), markets=(Market.ON_DEMAND,)),
        min_types=2,
        is_min_types_strict=True,
    )

    launch = bought(seen(twice(), of=strict))

    assert {each.instance_type for each in launch.offerings} == {T4.name, T4_BIG.name}


def test_a_gang_and_a_pools_minimum_go_elsewhere_as_well() -> None:
    keeps = replace(pool(types=(T4,), zones=(A, B), markets=(Market.ON_DEMAND,)), min_nodes=1)

    assert bought(seen(twice(), [job(1, nodes=2)])).offerings == (of_t4(B),)
    assert bought(seen(twice(), [job(1, state="RUNNING")], of=keeps)).offerings[0] == of_t4(B)


def test_what_is_paid_for_in_advance_is_used_all_the_same() -> None:
    on = of_t4(A, Market.RESERVED)
    sells = pool(types=(T4,), zones=(A, B), markets=(Market.ON_DEMAND,))
    made = seen(twice(on), of=sells)
    paid = replace(sells, markets=(Market.RESERVED, Market.ON_DEMAND))
    reserved = Reservation("cr-1", T4.name, A, 1, Market.RESERVED, 0.0)
    of = replace(made.cluster, pools=(paid,), reservations=(reserved,))

    assert bought(replace(made, cluster=of)).offerings == (on,)


def test_a_reservation_that_gives_sick_nodes_again_is_something_to_see_to() -> None:
    on = of_t4(A, Market.CAPACITY_BLOCK)
    sick = [replace(each, reservation="cr-1") for each in twice(on)]

    assert overview(seen(sick[:1]), None).needs_a_look == ()
    assert overview(seen(sick), None).needs_a_look == (
        "reservation cr-1 gave 2 sick nodes in 2.0 d, and EC2 may give the same host again: look "
        "into one with tidegate node hold, and tell AWS",
    )


def test_nodes_that_become_sick_below_one_network_node_are_named_together() -> None:
    """By the hour as well: a host that EC2 gives again is below the same one."""
    below = [replace(each, network_node="nn-0a1") for each in twice()]
    apart = (replace(found(3), network_node="nn-0b2"), found(4))

    assert overview(seen((below[0], *apart)), None).needs_a_look == ()
    assert overview(seen((*below, *apart)), None).needs_a_look == (
        "2 nodes below EC2's network node nn-0a1 became sick in 2.0 d: i-1, i-2; one host may be "
        "behind them, which EC2 may give again: tell AWS these ids",
    )


@pytest.mark.parametrize(
    "findings",
    [
        (found(1),),
        (*twice(), found(3, of_t4(B)), found(4, of_t4(B))),
        twice(pool_nodes=100, place_nodes=50),
        (found(1, age_s=PLACE_COUNTS_S), found(2)),
        (found(1, check="Kill task failed"), found(2, check="Epilog error")),
    ],
    ids=["one", "as often elsewhere", "of many", "of long ago", "jobs' faults"],
)
def test_what_says_little_of_a_place_changes_nothing(findings: Sequence[Finding]) -> None:
    assert sick_places(seen(findings)) == {}
    assert bought(seen(findings)).offerings[0] == of_t4(A)


def test_a_check_that_is_believed_no_more_says_nothing_of_places() -> None:
    doubted = seen(twice())
    (history,) = doubted.pool_history
    stopped = replace(history, stopped_checks=(StoppedCheck(XID, NOW_S, 2, 10),))

    assert sick_places(replace(doubted, pool_history=(stopped,))) == {}


def test_status_says_which_place_and_until_when() -> None:
    rest = overview(seen((found(1, age_s=7200.0), found(2, age_s=3600.0))), None).resting[0]

    assert (rest.offering, rest.failures, rest.code) == (str(of_t4()), 2, "SickNodes")
    assert rest.until_s == NOW_S - 7200.0 + PLACE_COUNTS_S
    assert sick_places(replace(seen(twice()), now_s=NOW_S + DAY_S)) == {}
