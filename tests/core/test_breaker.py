"""The circuit breaker: where every new node fails, few launches are begun in half an hour."""

from dataclasses import replace

from tests.core.reading import launches, why
from tests.make import NOW_S, cluster, instance, job, placement, pool, record, snapshot
from tidegate.core.model.ledger import LaunchRecord, Phase
from tidegate.core.model.pool_history import FAILED_MAX, FailedLaunch, PoolHistory
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

# Each is a launch of its own, if nothing stops them.
GANGS = [job(1, nodes=2), job(2, nodes=2)]
MINUTE_S = 60.0


def failed(number: int, launched_min: float, failed_min: float) -> FailedLaunch:
    """Minutes before now."""
    return FailedLaunch(
        f"l-{number}", NOW_S - launched_min * MINUTE_S, NOW_S - failed_min * MINUTE_S
    )


def seen(*failures: FailedLaunch, joined_min: float | None = None) -> Snapshot:
    joined_s = 0.0 if joined_min is None else NOW_S - joined_min * MINUTE_S
    pool_history = PoolHistory("t4", failures, joined_s)
    return replace(snapshot([job(1)], of=cluster(pool())), pool_history=(pool_history,))


def bought(of: Snapshot) -> int:
    return sum(launch.count for launch in launches(plan(of)))


def test_one_failure_changes_nothing():
    assert bought(seen(failed(1, 20, 5))) == 1


def test_after_three_failures_the_pool_is_closed_until_the_first_is_half_an_hour_ago():
    closed = seen(failed(1, 25, 20), failed(2, 18, 12), failed(3, 10, 1))
    made = plan(closed)

    assert launches(made) == []
    assert why(made) == (
        "pool t4: the last 3 launches gave no good node, nothing is bought until 08:05:00 UTC"
    )
    assert made.unmet[0].why_nots[0].until_s == NOW_S + 5 * MINUTE_S
    assert bought(replace(closed, now_s=NOW_S + 5 * MINUTE_S)) == 1


def test_a_node_that_joined_well_since_then_opens_it():
    failures = failed(1, 25, 20), failed(2, 18, 12), failed(3, 10, 5)

    assert bought(seen(*failures, joined_min=4)) == 1
    assert bought(seen(*failures, joined_min=6)) == 1  # one failure since
    assert bought(seen(*failures, joined_min=21)) == 0


def test_after_two_failures_one_launch_is_tried_at_a_time():
    two = seen(failed(1, 25, 10), failed(2, 25, 10))
    of = replace(two, digest=snapshot(GANGS).digest)
    flies = replace(
        of,
        nodes=(record("i-1", phase=Phase.LAUNCHED, age_s=60),),
        instances=(instance("i-1", age_s=60),),
        digest=snapshot([job(2, gpus=4)]).digest,
    )

    (bought,) = launches(plan(of))
    request = fleet_request(bought, "test", placement(of.cluster))
    in_doubt = replace(of, launches=(LaunchRecord(bought, NOW_S, request),), digest=flies.digest)

    assert [each.count for each in launches(plan(replace(of, pool_history=())))] == [4]
    assert bought.count == 2
    for tried in (flies, in_doubt):
        assert launches(plan(tried)) == []
        assert "one is tried at a time" in why(plan(tried), "2")


def test_the_failure_that_is_seen_now_counts_in_the_same_plan():
    ended = replace(record("i-1", phase=Phase.LAUNCHED, age_s=1000), launch_id="l-3")
    of = replace(
        seen(failed(1, 25, 10), failed(2, 25, 10)),
        nodes=(ended,),
        instances=(instance("i-1", age_s=1000),),
    )

    assert bought(of) == 0


def test_what_is_remembered_is_bounded():
    pool_history = PoolHistory("t4")
    for number in range(3 * FAILED_MAX):
        pool_history = pool_history.after_failure(failed(number, 10, 5))

    assert [each.launch_id for each in pool_history.failed] == [f"l-{n}" for n in range(16, 24)]


def test_jobs_go_to_another_pool_while_theirs_is_closed():
    closed = seen(failed(1, 25, 20), failed(2, 18, 12), failed(3, 10, 1))
    of = replace(closed, cluster=cluster(replace(pool(), weight=10), pool("spare")))

    assert [launch.pool for launch in launches(plan(replace(of, pool_history=())))] == ["t4"]
    assert [launch.pool for launch in launches(plan(of))] == ["spare"]
