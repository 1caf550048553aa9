"""Jobs that must have ended by an instant: what is bought for them, and what they hear."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    ZONE,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.demand.deadline import due_s
from tidegate.core.explain.advice import advice
from tidegate.core.explain.answer import answer
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.durations import moment
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Association, Job
from tidegate.core.model.waiting import Waiting
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.due import MARGIN_S
from tidegate.core.planner import plan

HOUR_S = 3600.0
BOOT_S = 300.0
SAVES = "tidegate:ckpt=USR1@20"
# Two boots, an hour of work, and the next look: what a job that saves its work needs for spot.
NET_S = 2 * BOOT_S + HOUR_S + MARGIN_S


def saving(left_s: float, *, nodes: int = 1, restarts: int = 0) -> Job:
    """An hour of work with checkpoints, and so much time."""
    made = job(time_limit_s=HOUR_S, comment=SAVES, deadline_s=NOW_S + left_s, nodes=nodes)
    return replace(made, restarts=restarts)


def refused(market: Market, rest_s: float = 60.0, of: Cluster | None = None) -> list[Resting]:
    """EC2 has none of this market now."""
    every = {each for one in (of or cluster()).pools for _, each in one.offerings()}
    code = "InsufficientInstanceCapacity"
    return [
        Resting(each, NOW_S + rest_s, 1, code, "We have none.")
        for each in sorted(every)
        if each.market is market
    ]


def bought(made: Plan) -> list[tuple[Market, int]]:
    return [(each.offerings[0].market, each.count) for each in launches(made)]


def why_not(made: Plan) -> WhyNot:
    return made.unmet[0].why_nots[0]


NO_SPOT = refused(Market.SPOT)


def test_a_job_with_time_waits_for_spot_instead_of_being_bought_on_demand() -> None:
    made = plan(snapshot([saving(8 * HOUR_S)], resting=NO_SPOT))

    last_s = NOW_S + 8 * HOUR_S - NET_S
    assert not bought(made)
    assert (why_not(made).kind, why_not(made).until_s) == (Why.SPARE_TIME, last_s)
    assert f"until {moment(last_s)} UTC at the latest" in why_not(made).sentence
    assert "saves 0.34 USD" in why_not(made).sentence
    assert "is tried again at 08:01:00 UTC" in why_not(made).sentence


@pytest.mark.parametrize("rest_s", [1.0, 60.0])
@pytest.mark.parametrize(("more_s", "market"), [(0, None), (-1, Market.ON_DEMAND)])
def test_on_demand_is_bought_at_the_last_moment_at_which_spot_is_tried_again(
    rest_s: float, more_s: float, market: Market | None
) -> None:
    rests = refused(Market.SPOT, rest_s)
    made = plan(snapshot([saving(NET_S + rest_s + more_s)], resting=rests))

    assert [each for each, _ in bought(made)] == ([market] if market else [])


def test_spot_that_rests_for_two_reasons_is_tried_after_the_last_of_both() -> None:
    longer = [replace(each, until_s=NOW_S + 1800, pool="t4", code="X") for each in NO_SPOT]
    for rests in ([*NO_SPOT, *longer], [*longer, *NO_SPOT]):
        soon = plan(snapshot([saving(NET_S + 1799)], resting=rests))
        later = plan(snapshot([saving(NET_S + 1800)], resting=rests))

        assert bought(soon) == [(Market.ON_DEMAND, 1)]
        assert "is tried again at 08:30:00 UTC" in why_not(later).sentence


def test_without_a_deadline_on_demand_is_bought_at_once() -> None:
    free = replace(saving(0.0), deadline_s=None)

    assert bought(plan(snapshot([free], resting=NO_SPOT))) == [(Market.ON_DEMAND, 1)]


def test_spot_is_bought_while_it_is_there() -> None:
    assert bought(plan(snapshot([saving(8 * HOUR_S)]))) == [(Market.SPOT, 1)]


def test_spot_that_may_be_late_is_bought_when_on_demand_is_refused() -> None:
    late = saving(NET_S - 1)

    made = plan(snapshot([late], resting=refused(Market.ON_DEMAND)))

    assert bought(made) == [(Market.SPOT, 1)]


def test_nothing_is_waited_for_where_only_on_demand_is_sold() -> None:
    of = cluster(pool(markets=(Market.ON_DEMAND,)))

    made = plan(snapshot([saving(8 * HOUR_S)], of=of, resting=NO_SPOT))

    assert bought(made) == [(Market.ON_DEMAND, 1)]


def test_a_price_that_nobody_has_said_does_not_count_before_a_deadline() -> None:
    of = replace(cluster(), waiting=Waiting(usd_per_job_hour=30.0, is_assumed=True))

    assert bought(plan(snapshot([saving(8 * HOUR_S)], of=of, resting=NO_SPOT))) == []


def test_a_job_whose_waiting_costs_more_than_spot_saves_does_not_wait() -> None:
    of = replace(cluster(), waiting=Waiting(usd_per_job_hour=30.0))

    made = plan(snapshot([saving(8 * HOUR_S)], of=of, resting=NO_SPOT))

    assert bought(made) == [(Market.ON_DEMAND, 1)]


def test_a_job_that_would_lose_more_on_spot_than_it_saves_does_not_wait() -> None:
    of = cluster(pool(types=(T4,)))
    of = replace(of, hazards={offering(): 5.0})
    plain = job(time_limit_s=HOUR_S, deadline_s=NOW_S + 90 * HOUR_S)

    made = plan(snapshot([plain], of=of, resting=refused(Market.SPOT, of=of)))

    assert bought(made) == [(Market.ON_DEMAND, 1)]


def test_spot_that_would_never_be_bought_is_not_waited_for() -> None:
    """It costs more than the same on demand, which is refused, and less than what is not."""
    of = cluster(pool(types=(T4, T4_BIG)))
    of = replace(of, hazards={each: 0.5 for _, each in of.pools[0].offerings()})
    of = replace(of, prices={each: usd for each, usd in of.prices.items() if not is_big_spot(each)})
    plain = job(time_limit_s=HOUR_S, deadline_s=NOW_S + 90 * HOUR_S)
    none = refused(Market.SPOT, of=of) + refused(Market.ON_DEMAND, of=of)
    rests = [each for each in none if each.offering.instance_type == T4.name]

    made = plan(snapshot([plain], of=of, resting=rests))

    assert launches(made)[0].offerings[0].instance_type == T4_BIG.name


def is_big_spot(each: Offering) -> bool:
    return each.instance_type == T4_BIG.name and each.market is Market.SPOT


def test_what_is_paid_for_already_is_used_at_once() -> None:
    held = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, NOW_S - 60)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.RESERVED, *of.pools[0].markets))
    of = replace(of, pools=(using,), reservations=(held,), prices={**of.prices, held.offering: 0.0})

    made = plan(snapshot([saving(8 * HOUR_S)], of=of, resting=refused(Market.SPOT, of=of)))

    assert bought(made) == [(Market.RESERVED, 1)]


@pytest.mark.parametrize(("left_s", "count"), [(8 * HOUR_S, 0), (NET_S, 3)])
def test_a_gang_waits_and_is_bought_as_a_whole(left_s: float, count: int) -> None:
    made = plan(snapshot([saving(left_s, nodes=3)], resting=NO_SPOT))

    assert sum(each for _, each in bought(made)) == count
    if not count:
        assert "saves 0.98 USD" in why_not(made).sentence


def test_who_waits_keeps_nothing_from_others() -> None:
    behind = job(2, time_limit_s=HOUR_S)

    made = plan(snapshot([saving(8 * HOUR_S), behind], resting=NO_SPOT))

    assert [each.for_jobs for each in launches(made)] == [("2",)]


def on_spot(jobs: Sequence[Job], resting: Sequence[Resting] = ()) -> Plan:
    """An idle spot node is there."""
    return plan(
        snapshot(jobs, [node()], instances=[instance()], records=[record()], resting=resting)
    )


def test_a_job_without_time_for_an_interruption_is_kept_off_spot_that_is_there() -> None:
    (order,) = orders(on_spot([saving(NET_S - 1)]), OrderKind.CONSTRAIN)

    assert (order.names, order.text) == (("1",), "on-demand")
    assert not orders(on_spot([saving(NET_S)]), OrderKind.CONSTRAIN)


def test_it_is_let_on_spot_where_on_demand_is_refused() -> None:
    made = on_spot([saving(NET_S - 1)], refused(Market.ON_DEMAND))

    assert not orders(made, OrderKind.CONSTRAIN)


def asking(text: str, *, restarts: int = 0) -> Job:
    comment = f"{SAVES} tidegate:deadline={text}"
    return replace(saving(0.0, restarts=restarts), deadline_s=None, comment=comment)


# 2027-01-15 08:00:00 UTC.
@pytest.mark.parametrize(
    "text",
    ["1800000000", "2027-01-15T08:00", "2027-01-15T08:00Z", "2027-01-15T09:00:00+01:00"],
)
def test_a_comment_says_a_deadline(text: str) -> None:
    assert due_s(asking(text)) == NOW_S


def test_of_two_deadlines_the_earlier_one_counts() -> None:
    both = replace(asking(f"{NOW_S + 60:.0f}"), deadline_s=NOW_S + 30)

    assert due_s(both) == NOW_S + 30
    assert due_s(replace(both, deadline_s=NOW_S + 90)) == NOW_S + 60


def test_a_deadline_in_the_comment_is_waited_for_like_that_of_slurm() -> None:
    made = plan(snapshot([asking(f"{NOW_S + 8 * HOUR_S:.0f}")], resting=NO_SPOT))

    assert why_not(made).kind is Why.SPARE_TIME
    assert advice(asking("1"), made.unmet[0].why_nots)[0].endswith("JobId=1 Comment=")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tomorrow", "is no instant: epoch seconds, or like 2027-01-31T18:00"),
        ("", "is no instant"),
        ("2027-13-45T08:00Z", "is no instant"),
        ("9" * 40, "is no instant"),
    ],
)
def test_a_deadline_that_cannot_be_read_is_told_at_once(text: str, said: str) -> None:
    made = plan(snapshot([asking(text)]))

    assert not bought(made)
    assert why_not(made).kind is Why.DEADLINE
    assert f"tidegate:deadline={text[:40]} {said}" in why_not(made).sentence
    assert advice(asking(text), made.unmet[0].why_nots)[0].startswith("correct it: scontrol update")


@pytest.mark.parametrize("left_s", [-HOUR_S, 0.0, HOUR_S, HOUR_S + BOOT_S - 1])
def test_a_deadline_that_nothing_can_meet_is_told_at_once(left_s: float) -> None:
    late = asking(f"{NOW_S + left_s:.0f}")

    made = plan(snapshot([late]))

    assert not bought(made)
    assert why_not(made).kind is Why.DEADLINE
    assert (
        f"would end {BOOT_S + HOUR_S - left_s:.0f} s after its deadline" in why_not(made).sentence
    )
    assert "ask less time: scontrol update JobId=1" in advice(late, made.unmet[0].why_nots)[0]


def test_a_job_that_saved_its_work_before_is_not_given_up_for_its_time_limit() -> None:
    """Nobody knows how little of it is left to do; Slurm would cancel it by its own deadline."""
    again = asking(f"{NOW_S + HOUR_S:.0f}", restarts=1)

    assert bought(plan(snapshot([again]))) == [(Market.ON_DEMAND, 1)]
    assert not bought(plan(snapshot([replace(again, comment=again.comment[len(SAVES) :])])))
    assert not bought(plan(snapshot([replace(again, deadline_s=NOW_S + HOUR_S)])))


def test_jobs_that_differ_in_their_deadline_alone_are_judged_apart() -> None:
    soon, far = asking(f"{NOW_S + NET_S:.0f}"), asking(f"{NOW_S + 9 * HOUR_S:.0f}")

    made = plan(snapshot([soon, replace(far, job_id="2")], resting=NO_SPOT))

    assert [each.for_jobs for each in launches(made)] == [("1",)]
    assert [each.job_id for each in made.unmet] == ["2"]


def test_who_waits_takes_no_place_under_a_cap_from_one_with_less_time() -> None:
    far, soon = asking(f"{NOW_S + 9 * HOUR_S:.0f}"), asking(f"{NOW_S + NET_S:.0f}")
    two = [replace(far, account="physics"), replace(soon, job_id="2", account="physics")]
    cap = Association("account physics", "physics", in_all=1)

    made = plan(snapshot(two, resting=NO_SPOT, associations=[cap]))

    assert [each.for_jobs for each in launches(made)] == [("2",)]


def test_what_is_waited_for_is_what_saves_most() -> None:
    of = cluster(pool(types=(T4, T4_BIG)))

    made = plan(snapshot([saving(8 * HOUR_S)], of=of, resting=refused(Market.SPOT, of=of)))

    assert why_not(made).offering == str(Offering(T4.name, ZONE, Market.SPOT))


def told(one: Job, market: Market | None = None, left_s: float = 0.0) -> str:
    """What why says of its deadline. `market`: where it runs."""
    asked = replace(one, deadline_s=NOW_S + left_s)
    if market is None:
        seen = snapshot([asked])
    else:
        asked = replace(asked, state="RUNNING", node_names=("i-1",))
        here = offering(market=market)
        seen = snapshot([asked], [node()], instances=[instance(on=here)], records=[record(on=here)])
    return answer("1", seen, None).needs[-1]


@pytest.mark.parametrize(
    ("left_s", "market", "said"),
    [
        (8 * HOUR_S, None, "an interruption until 2027-01-15 14:48:00 UTC, then on demand alone"),
        (NET_S - 1, None, "there is no time for an interruption any more: on demand comes first"),
        (HOUR_S, None, "nothing that is bought now ends in time"),
        (8 * HOUR_S, Market.ON_DEMAND, "it runs where nobody takes its nodes back"),
        (8 * HOUR_S, Market.SPOT, "taken back before 2027-01-15 14:53:00 UTC, it could run again"),
        (HOUR_S, Market.SPOT, "taken back now it ends in time only by what it has saved"),
    ],
)
def test_why_says_what_the_deadline_decides(
    left_s: float, market: Market | None, said: str
) -> None:
    assert said in told(saving(0.0), market, left_s)


def test_why_says_nothing_of_a_deadline_where_there_is_none() -> None:
    plain = snapshot([replace(saving(0.0), deadline_s=None)])

    assert not any("deadline" in each for each in answer("1", plain, None).needs)


def test_why_says_of_a_deadline_that_is_over_when_it_was() -> None:
    assert told(saving(0.0), left_s=-60.0).startswith("deadline 2027-01-15 07:59:00 UTC, 60 s ago")
