"""A look as samples for Prometheus: what they say, and that a cluster's size does not count."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.make import (
    A10G,
    NOW_S,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tests.service.conftest import World
from tests.service.test_describe import looked_at
from tidegate.agent.metrics import exposition
from tidegate.core.model import prometheus as metrics
from tidegate.core.model.cluster import Limits, SpendingBudget, account_scope
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Charge, Phase
from tidegate.core.model.plan import Plan, Unmet
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.prometheus import Metric, Sample
from tidegate.core.model.resting import BootFailure, Resting
from tidegate.core.model.slurm import SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.spend import day_of, month_of
from tidegate.core.planner import plan
from tidegate.service.control import Round
from tidegate.service.describe import look_verdicts
from tidegate.service.outcome import Outcome
from tidegate.service.samples import code_of, look_samples
from tidegate.wire.decisions import (
    decode_record,
    decode_verdicts,
    encode_record,
    encode_verdicts,
)

NOTHING = Plan((), (), ())


def value(samples: Sequence[Sample], metric: Metric, **labels: str) -> float:
    """That of the one series of these labels."""
    wanted = metric.of(0.0, **labels)
    (found,) = [each for each in samples if replace(each, value=0.0) == wanted]
    return found.value


def samples_of(seen: Snapshot, made: Plan = NOTHING) -> tuple[Sample, ...]:
    return look_samples(Round(seen, made, Outcome()))


def test_jobs_count_by_the_code_of_their_verdict_and_arrays_by_their_tasks() -> None:
    jobs = [
        job(1, begins_at_s=NOW_S - 100),
        job(2, begins_at_s=NOW_S - 900, count=40),
        job(3, gpus=64, begins_at_s=NOW_S - 50),
    ]
    rests = WhyNot(Why.RESTING, "it rests")
    small = WhyNot(Why.TOO_SMALL, "it is too small")
    made = Plan((), (), (Unmet("2", "", (small, rests)), Unmet("3", "", (small,))))

    found = samples_of(snapshot(jobs), made)

    assert value(found, metrics.JOBS_WAITING, verdict="resting") == 40
    assert value(found, metrics.JOBS_OLDEST_WAIT, verdict="resting") == 900
    assert value(found, metrics.JOBS_WAITING, verdict="too-small") == 1
    assert value(found, metrics.JOBS_WAITING, verdict="limit") == 0


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([Why.RESTING], "resting"),
        ([Why.RESTING, Why.LIMIT], "limit"),
        ([Why.TOO_SMALL, Why.FUTILE], "futile"),
        ([Why.NODES], "nodes"),
        ([], "other"),
    ],
)
def test_what_people_decided_goes_before_what_ec2_answers(kinds: list[Why], code: str) -> None:
    assert code_of(kinds) == code


def test_a_job_of_a_clock_that_was_put_back_has_waited_for_nothing() -> None:
    made = Plan((), (), (Unmet("1", ""),))

    found = samples_of(snapshot([job(1, begins_at_s=NOW_S + 3600)]), made)

    assert value(found, metrics.JOBS_OLDEST_WAIT, verdict="other") == 0


def test_nodes_are_told_by_pool_capacity_type_and_state() -> None:
    names = ["i-booting", "i-idle", "i-busy", "i-sick", "i-theirs", "i-down"]
    drain = "IDLE+DRAIN+DYNAMIC_NORM"
    nodes = [
        node("i-idle"),
        node("i-busy", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1),
        node("i-sick", state=drain, reason="tidegate-health: Xid 79", set_by=SetBy.ROOT),
        node("i-theirs", state=drain, reason="for a test", set_by=SetBy.USER),
        node("i-down", state="DOWN+DYNAMIC_NORM"),
    ]
    phases = {"i-booting": Phase.LAUNCHED}
    seen = snapshot(
        [],
        nodes,
        instances=[instance(name) for name in names],
        records=[record(name, phase=phases.get(name, Phase.JOINED)) for name in names],
    )

    found = samples_of(seen)

    spot = {"pool": "t4", "capacity_type": "spot"}
    states = {"booting": 1, "idle": 1, "busy": 1, "unhealthy": 2, "drained": 1, "leaving": 0}
    for state, count in states.items():
        assert value(found, metrics.NODES, **spot, state=state) == count, state
    assert value(found, metrics.NODES, pool="a10g", capacity_type="on-demand", state="idle") == 0
    assert value(found, metrics.PRICE, **spot) == pytest.approx(6 * 0.2)
    assert value(found, metrics.NODES_LOST) == 3
    assert value(found, metrics.GPUS, state="paid") == 6
    assert value(found, metrics.GPUS, state="busy") == 1


def test_money_is_told_of_cluster_pools_and_what_has_a_budget() -> None:
    lab = account_scope("lab")
    day, month = day_of(NOW_S).name, month_of(NOW_S).name
    of = replace(
        cluster(limits=Limits(nodes=4)),
        budgets={
            "cluster": SpendingBudget(usd_per_day=100.0),
            lab: SpendingBudget(usd_per_month=50.0),
        },
    )
    spent = (Charge(day, "cluster", 81.0), Charge(month, lab, 5.0), Charge(day, "account x", 9.0))
    seen = snapshot(of=of, instances=[instance()], records=[record(age_s=0.0)])

    found = samples_of(replace(seen, spent=spent))

    assert value(found, metrics.SPENT, scope="cluster", period="day") == pytest.approx(81.0)
    assert value(found, metrics.BUDGET, scope="cluster", period="day") == 100
    assert value(found, metrics.SPENT, scope=lab, period="month") == 5
    assert value(found, metrics.LIMIT_USED, scope="cluster", resource="nodes") == 0.25
    assert not [each for each in found if "account x" in str(each.labels)]


def test_what_rests_is_told_by_its_cause_until_its_time() -> None:
    def rests(code: str, until_s: float = NOW_S + 60) -> Resting:
        return Resting(offering(), until_s, 1, code, "")

    resting = [
        rests("InsufficientInstanceCapacity"),
        rests(BootFailure.STAGE),
        rests("x", NOW_S - 1),
    ]
    failed = FailedLaunch("l-1", NOW_S - 100, NOW_S - 10)
    seen = replace(snapshot(resting=resting), pool_history=(PoolHistory("t4", (failed,)),))

    found = samples_of(seen)

    assert value(found, metrics.RESTING, reason="refused") == 1
    assert value(found, metrics.RESTING, reason="boot-failed") == 1
    assert value(found, metrics.RESTING, reason="interrupted") == 0
    assert value(found, metrics.POOL_FAILED, pool="t4") == 1
    assert value(found, metrics.POOL_FAILED, pool="a10g") == 0


def test_every_metric_of_the_planner_is_told_in_each_look_and_travels_with_the_verdicts(
    world: World,
) -> None:
    world.of = replace(world.of, limits=Limits(nodes=9), budgets={"cluster": SpendingBudget(10.0)})
    world.report([job(1)])

    verdicts = look_verdicts(world.look())

    assert verdicts is not None
    assert {each.name for each in verdicts.samples} == {each.name for each in metrics.OF_PLANNER}
    assert decode_verdicts(encode_verdicts(verdicts)).samples == verdicts.samples


def test_verdicts_of_a_planner_that_knew_no_samples_are_read() -> None:
    verdicts = look_verdicts(looked_at(Round(snapshot(), NOTHING, Outcome())))
    assert verdicts is not None

    record = decode_record(encode_verdicts(verdicts))
    assert record.pop("samples")

    assert decode_verdicts(encode_record(record)) == replace(verdicts, samples=())


def test_two_thousand_nodes_are_a_scrape_of_200_kb_and_take_the_planner_little_time() -> None:
    """Measured: 30 kB for 20 pools, however many nodes; 60 ms with 5,000 jobs."""
    markets = (Market.SPOT, Market.ON_DEMAND)
    names = [f"pool-{number}" for number in range(20)]
    pools = [pool(name, (A10G,), markets=markets, limits=Limits(nodes=200)) for name in names]
    of = replace(cluster(*pools), budgets={"cluster": SpendingBudget(1e6, 1e7)})
    on = offering(A10G)
    ids = [f"i-{number:017x}" for number in range(2000)]
    seen = snapshot(
        [job(number, begins_at_s=NOW_S - number) for number in range(5000)],
        [node(each, A10G) for each in ids],
        of=of,
        instances=[instance(each, on, pool=names[n % 20]) for n, each in enumerate(ids)],
        records=[record(each, on, pool=names[n % 20]) for n, each in enumerate(ids)],
    )
    made = plan(seen)

    began_s = time.process_time()
    found = samples_of(seen, made)
    took_s = time.process_time() - began_s

    assert sum(each.value for each in found if each.name == metrics.NODES.name) == 2000
    assert len(exposition(found)) < 200_000
    assert took_s < 2.0
