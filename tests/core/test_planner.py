"""What the planner decides, read as sentences."""

import dataclasses
import itertools
import random
from dataclasses import replace

from tests.core.reading import ended, launches, orders, why
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    node,
    offering,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.explain.plan import describe
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import InstanceState, Market
from tidegate.core.model.ledger import LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Adopt, Mark, Resume
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Association
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request


def test_a_waiting_job_buys_the_cheapest_node_that_holds_it() -> None:
    made = plan(snapshot([job(gpus=1)]))

    assert [(x.offerings, x.count) for x in launches(made)] == [((offering(T4),), 1)]
    assert "cheapest" in launches(made)[0].reason


def test_pool_weight_comes_before_price() -> None:
    dear = pool("fast", (T4_BIG,), weight=50)

    made = plan(snapshot([job()], of=cluster(pool(), dear)))

    assert launches(made)[0].pool == "fast"


def test_two_jobs_share_a_node_that_has_room_for_both() -> None:
    made = plan(snapshot([job(1, gpus=2), job(2, gpus=2)]))

    assert [(x.offerings[0], x.count) for x in launches(made)] == [(offering(T4_BIG), 1)]
    assert [each.job_id for each in made.served] == ["1", "2"]


def test_equal_jobs_are_bought_in_one_request() -> None:
    made = plan(snapshot([job(1), job(2), job(3)]))

    assert [(x.count, x.for_jobs) for x in launches(made)] == [(3, ("1", "2", "3"))]
    assert [x.by for x in made.served] == [(f"new {T4.name} {n}",) for n in (1, 2, 3)]
    assert not made.is_cut


def test_an_existing_idle_node_is_used_before_a_new_one_is_bought() -> None:
    made = plan(snapshot([job()], [node()], instances=[instance()], records=[record()]))

    assert launches(made) == []
    assert made.served[0].by == ("i-1",)


def test_a_booting_node_is_not_bought_twice() -> None:
    booting = record(phase=Phase.LAUNCHED)

    made = plan(snapshot([job()], instances=[instance()], records=[booting]))

    assert launches(made) == []
    assert "booting" in made.served[0].reason


def test_a_fresh_instance_that_ec2_does_not_show_yet_still_counts() -> None:
    made = plan(snapshot([job()], records=[record(phase=Phase.LAUNCHED, age_s=5)]))

    assert launches(made) == []


def test_a_launch_in_doubt_counts_as_on_its_way_and_is_resumed_after_its_lease() -> None:
    launch = launches(plan(snapshot([job()])))[0]
    request = fleet_request(launch, "test", placement(cluster()))
    young = LaunchRecord(launch, NOW_S - 10, request)
    old = LaunchRecord(launch, NOW_S - 60, request)

    assert plan(snapshot([job()], launches=[young])).actions == ()
    assert [type(a) for a in plan(snapshot([job()], launches=[old])).actions] == [Resume]


def test_a_launch_in_doubt_and_its_first_instance_count_once() -> None:
    launch = launches(plan(snapshot([job()])))[0]
    request = fleet_request(launch, "test", placement(cluster()))
    in_doubt = LaunchRecord(launch, NOW_S - 10, request)
    shown = instance(age_s=5, launch_id=launch.launch_id)
    two = cluster(pool(limits=Limits(nodes=2)))

    made = plan(snapshot([job(1), job(2)], of=two, instances=[shown], launches=[in_doubt]))

    assert [(x.count, x.for_jobs) for x in launches(made)] == [(1, ("2",))]


def test_limits_hold_within_one_plan_and_the_rest_is_told_why() -> None:
    small = cluster(pool(limits=Limits(gpus=2)))

    made = plan(snapshot([job(1), job(2), job(3)], of=small))

    assert launches(made)[0].count == 2
    assert why(made, "3") == "pool t4 is limited to 2 GPUs, 2 are used and 1 more node is needed"


def test_money_limits_are_debited_by_the_price() -> None:
    small = cluster(pool(types=(T4,), limits=Limits(usd_per_hour=0.45)))

    made = plan(snapshot([job(1), job(2), job(3)], of=small))

    assert launches(made)[0].count == 2
    assert "0.45 USD per hour" in why(made, "3")


def test_a_resting_offering_is_left_alone_and_the_next_one_is_taken() -> None:
    rests = Resting(offering(T4), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none left")

    made = plan(snapshot([job()], resting=[rests]))

    assert launches(made)[0].offerings == (offering(T4, Market.ON_DEMAND),)


def test_when_all_offerings_rest_the_reason_names_ec2s_error_and_the_time() -> None:
    only = cluster(pool(types=(T4,), markets=(Market.SPOT,)))
    rests = Resting(offering(T4), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none left")

    made = plan(snapshot([job()], of=only, resting=[rests]))

    assert why(made) == (
        "g4dn.xlarge/us-east-1a/spot rests for 60 s more "
        "after EC2 said InsufficientInstanceCapacity"
    )


def test_a_job_that_no_type_holds_is_told_what_is_missing() -> None:
    made = plan(snapshot([job(gpus=8)]))

    assert "g4dn.12xlarge has 4 GPUs, the job asks 8" in why(made)


def test_an_array_gets_no_more_nodes_than_its_limit_lets_start() -> None:
    made = plan(snapshot([job("4", count=2)]))

    assert launches(made)[0].count == 2


def test_jobs_that_would_not_start_anyway_buy_nothing() -> None:
    made = plan(snapshot([job(1, reason="Dependency"), job(2, reason="JobHeldUser")]))

    assert launches(made) == []
    assert why(made, "1") == "it waits for another job"


def test_no_gpu_is_bought_over_the_cap_of_an_association() -> None:
    cap = Association(scope="account lab", account="lab", in_all=2)
    jobs = [job(n, account="lab") for n in range(1, 6)]

    made = plan(snapshot(jobs, associations=[cap]))

    assert sum(x.count for x in launches(made)) == 2
    assert why(made, "3") == "account lab allows 2 GPUs in all, 2 are used or promised"


def test_an_idle_node_that_nothing_needs_is_released_in_one_guarded_order() -> None:
    made = plan(snapshot([], [node(idle_s=61)], instances=[instance()], records=[record()]))

    order = orders(made, OrderKind.RELEASE)[0]
    assert (order.names, order.only_if) == (("i-1",), ("IDLE",))


def test_a_node_is_kept_until_it_idled_long_enough_or_while_a_job_needs_it() -> None:
    fresh = plan(snapshot([], [node(idle_s=59)], instances=[instance()], records=[record()]))
    needed = plan(snapshot([job()], [node(idle_s=99)], instances=[instance()], records=[record()]))

    assert fresh.actions == needed.actions == ()


def test_a_release_on_its_way_is_not_repeated_and_its_node_is_no_capacity() -> None:
    on_its_way = PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30)

    made = plan(
        snapshot(
            [job()],
            [node(idle_s=99)],
            instances=[instance()],
            records=[record(order=on_its_way)],
        )
    )

    assert orders(made, OrderKind.RELEASE) == []
    assert launches(made)[0].count == 1


def test_a_released_node_is_ended() -> None:
    done = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.DONE)
    known = record(order=PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30))

    made = plan(snapshot(instances=[instance()], records=[known], results=[done]))

    assert ended(made) == ["i-1"]
    assert any(isinstance(a, Mark) and a.phase is Phase.RELEASED for a in made.actions)


def test_a_job_that_slipped_in_keeps_its_node() -> None:
    kept = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.KEPT, "job 7 runs")
    known = record(order=PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30))
    busy = node(state="MIXED+DYNAMIC_NORM", gpus_alloc=1)

    made = plan(snapshot([], [busy], instances=[instance()], records=[known], results=[kept]))

    assert ended(made) == []
    assert orders(made, OrderKind.RELEASE) == []


def test_a_reclaimed_nodes_job_gets_a_replacement_in_the_same_plan() -> None:
    lost = record(phase=Phase.INTERRUPTED)
    busy = node(state="MIXED+DRAIN+DYNAMIC_NORM", gpus_alloc=1)

    made = plan(snapshot([job(7, on=["i-1"])], [busy], instances=[instance()], records=[lost]))

    assert launches(made)[0].for_jobs == ("7",)
    assert orders(made, OrderKind.RELEASE) == []


def test_a_node_whose_notice_came_before_its_first_digest_is_not_ended_under_its_job() -> None:
    known = replace(record(phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + 100)
    over = replace(known, reclaim_at_s=NOW_S - 100)

    assert ended(plan(snapshot(instances=[instance()], records=[known]))) == []
    assert ended(plan(snapshot(instances=[instance()], records=[over]))) == ["i-1"]


def test_a_dead_instance_leaves_slurm_and_its_job_runs_elsewhere() -> None:
    gone = instance(state=InstanceState.TERMINATED)
    looks_busy = node(state="MIXED+DYNAMIC_NORM", gpus_alloc=1)

    one = cluster(pool(limits=Limits(nodes=1)))
    jobs = [job(7, on=["i-1"])]

    made = plan(snapshot(jobs, [looks_busy], of=one, instances=[gone], records=[record()]))

    assert [order.names for order in orders(made, OrderKind.DELETE)] == [("i-1",)]
    assert launches(made)[0].for_jobs == ("7",)


def test_a_node_drained_by_an_operator_is_left_alone() -> None:
    drained = node(state="IDLE+DRAIN+DYNAMIC_NORM", idle_s=999, reason="bad fan")

    made = plan(snapshot([], [drained], instances=[instance()], records=[record()]))

    assert made.actions == ()


def test_while_the_head_is_silent_nothing_is_bought_or_released() -> None:
    made = plan(
        snapshot([job(2)], [node(idle_s=99)], instances=[instance()], records=[record()], age_s=301)
    )

    assert made.actions == ()
    assert "last heard 301 s ago" in made.notes[0]


def test_every_pending_job_has_exactly_one_verdict() -> None:
    jobs = [
        job(n, gpus=g, reason=r)
        for n, (g, r) in enumerate(
            itertools.product((1, 4, 8), ("Resources", "Dependency", "QOSGrpGRES", "None"))
        )
    ]

    made = plan(snapshot(jobs, of=cluster(pool(limits=Limits(gpus=5)))))

    verdicts = [(each.job_id, each.reason) for each in made.served]
    verdicts += [(each.job_id, each.reason) for each in made.unmet]
    assert sorted(job_id for job_id, _ in verdicts) == sorted(each.job_id for each in jobs)
    assert all(reason for _, reason in verdicts)


def test_a_busy_node_that_ec2_does_not_show_keeps_its_job_and_gets_no_new_one() -> None:
    busy = node(state="MIXED+DYNAMIC_NORM", gpus_alloc=1)

    made = plan(snapshot([job(7, on=["i-1"])], [busy], records=[record()]))

    assert orders(made, OrderKind.REQUEUE) == []
    assert launches(made) == []
    assert orders(made, OrderKind.DRAIN)[0].names == ("i-1",)


def test_an_instance_without_a_record_counts_and_is_taken_into_the_ledger() -> None:
    one = cluster(pool(limits=Limits(nodes=1)))
    jobs = [job(1, priority=9), job(2, gpus=4)]
    made = plan(snapshot(jobs, of=one, instances=[replace(instance(), template="digest-1")]))

    assert launches(made) == []
    (adopted,) = (a.record for a in made.actions if isinstance(a, Adopt))
    assert (adopted.instance_id, adopted.pool, adopted.template) == ("i-1", "t4", "digest-1")


def test_a_node_drained_without_a_reason_is_a_forgotten_gate_and_is_released() -> None:
    drained = node(state="IDLE+DRAIN+DYNAMIC_NORM")

    made = plan(snapshot([], [drained], instances=[instance()], records=[record()]))

    assert orders(made, OrderKind.RELEASE)[0].names == ("i-1",)


def test_a_gated_node_that_an_operator_drained_stays_drained() -> None:
    drained = node(state="IDLE+DRAIN+DYNAMIC_NORM", reason="bad ECC")

    made = plan(snapshot([], [drained], instances=[instance()], records=[record(gated_for="9")]))

    assert made.actions == ()


def test_an_old_digest_does_not_prove_that_a_node_never_registered() -> None:
    booting = record(phase=Phase.LAUNCHED, age_s=905)

    made = plan(snapshot(instances=[instance(age_s=905)], records=[booting], age_s=290))

    assert ended(made) == []


def test_a_node_of_a_pool_that_left_the_cluster_file_is_let_go() -> None:
    made = plan(
        snapshot(
            [], [node(idle_s=1)], instances=[instance(pool="old")], records=[record(pool="old")]
        )
    )

    assert "not in the cluster file" in orders(made, OrderKind.RELEASE)[0].text


def test_an_answered_release_is_not_asked_again_at_once() -> None:
    kept = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.KEPT, "job 99 wants it")
    known = record(order=PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30))

    made = plan(
        snapshot([], [node(idle_s=500)], instances=[instance()], records=[known], results=[kept])
    )

    assert orders(made, OrderKind.RELEASE) == []


def test_a_node_that_one_describe_leaves_out_still_counts_against_the_limit() -> None:
    small = cluster(pool(types=(T4,), limits=Limits(nodes=1)))
    busy = node(state="ALLOCATED", gpus_alloc=1)

    made = plan(snapshot([job(1, on=["i-1"]), job(2)], [busy], of=small, records=[record()]))

    assert launches(made) == []


def test_the_order_of_the_snapshot_does_not_matter() -> None:
    names = [f"i-{n}" for n in range(6)]
    seen = snapshot(
        [job(n, gpus=1 + n % 4, nodes=1 + n % 2, priority=n % 3) for n in range(20)],
        [node(n, T4_BIG, idle_s=70) for n in names],
        instances=[instance(n, offering(T4_BIG)) for n in names],
        records=[record(n, offering(T4_BIG)) for n in names],
    )
    first = describe(plan(seen))

    for seed in range(20):
        assert describe(plan(shuffled(seen, seed))) == first


def shuffled(snapshot: Snapshot, seed: int) -> Snapshot:
    chance = random.Random(seed)

    def mixed[T](values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(chance.sample(values, len(values)))

    assert snapshot.digest is not None
    reading = snapshot.digest.reading
    reading = dataclasses.replace(reading, jobs=mixed(reading.jobs), nodes=mixed(reading.nodes))
    return dataclasses.replace(
        snapshot,
        digest=dataclasses.replace(snapshot.digest, reading=reading),
        instances=mixed(snapshot.instances),
        nodes=mixed(snapshot.nodes),
    )
