"""What the owner of a reservation lends: it costs nothing more, and may be taken back."""

from dataclasses import replace

from tests.core.reading import launches
from tests.make import T4, ZONE, cluster, instance, job, placement, pool, snapshot
from tidegate.core.model.capacity import BlockState, Holding
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.slurm import Job
from tidegate.core.offers.odd_reservations import odd_named
from tidegate.core.offers.seen_reservations import lost_now, seen_now
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

LENT = Reservation("cr-7", T4.name, ZONE, 2, Market.INTERRUPTIBLE, 0.0)


def borrowing(*more: Reservation) -> Cluster:
    of = cluster(pool(types=(T4,)))
    held = (LENT, *more)
    markets = (*dict.fromkeys(each.market for each in held), *of.pools[0].markets)
    prices = {**of.prices, **{each.offering: 0.0 for each in held}}
    pools = (replace(of.pools[0], markets=markets),)
    return replace(of, pools=pools, prices=prices, reservations=held)


def bought(of: Cluster, *jobs: Job) -> list[tuple[Market, int]]:
    made = plan(snapshot(list(jobs), of=of))
    return [(each.offerings[0].market, each.count) for each in launches(made)]


def test_it_is_launched_into_by_its_own_template_as_far_as_it_goes() -> None:
    of = borrowing()
    jobs = [job(n) for n in range(3)]

    assert bought(of, *jobs) == [(Market.INTERRUPTIBLE, 2), (Market.SPOT, 1)]
    first = launches(plan(snapshot(jobs, of=of)))[0]
    request = fleet_request(first, of.name, placement(of))
    assert (request.launch_template_id, request.market) == ("lt-t4/cr-7", Market.INTERRUPTIBLE)


def test_what_nobody_takes_back_is_filled_first() -> None:
    kept = Reservation("cr-8", T4.name, ZONE, 1, Market.RESERVED, 0.0)

    assert bought(borrowing(kept), job(1)) == [(Market.RESERVED, 1)]


def test_a_job_that_wants_what_stays_is_not_put_there() -> None:
    """Users say `--constraint=on-demand` so that nobody takes their node away."""
    steady = job(1, constraint="on-demand")
    lent = job(2, constraint="interruptible-capacity-reservation")

    assert bought(borrowing(), steady) == [(Market.ON_DEMAND, 1)]
    assert bought(borrowing(), lent) == [(Market.INTERRUPTIBLE, 1)]


def test_a_node_in_it_takes_a_place() -> None:
    of = borrowing()
    inside = replace(
        instance("i-1", Offering(T4.name, ZONE, Market.INTERRUPTIBLE)),
        capacity_reservation_id="cr-7",
    )
    made = plan(snapshot([job(n) for n in range(3)], of=of, instances=[inside]))

    assert launches(made)[0].count == 1


def test_what_ec2_has_not_delivered_yet_counts_as_the_file_says() -> None:
    held = [Holding(replace(LENT, count=0, starts_at_s=9.0), BlockState.SCHEDULED)]
    of = borrowing()

    assert [each.count for each in seen_now(of, held, {}, ())] == [2]
    assert list(odd_named((replace(LENT, starts_at_s=9.0),), held, (), 0.0)) == []


def test_of_another_kind_than_the_file_says_it_gives_no_node() -> None:
    held = [Holding(replace(LENT, market=Market.RESERVED), BlockState.ACTIVE)]
    of = borrowing()

    assert seen_now(of, held, {}, ()) == ()
    assert lost_now(of, held, ()) == ("cr-7",)
    assert list(odd_named(of.reservations, held, (), 0.0)) == [
        "cr-7 gives no node: it is reserved by EC2, not interruptible-capacity-reservation; mend"
        " its kind and deploy"
    ]
