"""GPUs that jobs share: what is bought for parts of them, and what Slurm then finds."""

from collections import Counter
from dataclasses import replace
from itertools import chain
from random import Random

import pytest

from bench.fractions import ROWS, drawn, fewest
from tests.core.reading import launches, why
from tests.core.shared_gpus import (
    ONE_A100,
    P4D,
    PROFILES,
    SERVED_T4,
    SERVED_T4_BIG,
    SHARED_T4,
    SHARED_T4_BIG,
    asks,
    cut,
    mps,
    shards,
    waiting,
)
from tests.make import NOW_S, T4, job, node, placement, snapshot
from tidegate.core.buy.parts import Instances, Shards
from tidegate.core.explain.lost import gpus
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.devices import Devices
from tidegate.core.model.ec2 import (
    MIG_TAG,
    TAG_VALUE_MAX,
    Instance,
    InstanceState,
    Market,
    Offering,
)
from tidegate.core.model.ledger import Launch, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.mig import devices, layouts
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Job, Node, Shape
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

TYPES = {each.name: each for each in (P4D, ONE_A100)}
SHARED = cut(SHARED_T4, SHARED_T4_BIG)
SERVED = cut(SERVED_T4, SERVED_T4_BIG)


def bought(made: Plan) -> list[tuple[str, int, str]]:
    return [(each.offerings[0].instance_type, each.count, each.layout) for each in launches(made)]


def records(made: Plan, of: Cluster) -> tuple[NodeRecord, ...]:
    """What the ledger knows once EC2 gave all of it."""
    return tuple(
        NodeRecord(
            f"i-{each.launch_id}-{number}",
            each.launch_id,
            each.pool,
            each.offerings[0],
            NOW_S,
            of.prices[each.offerings[0]],
            layout=each.layout,
            for_jobs=each.for_jobs[:20],
        )
        for each in launches(made)
        for number in range(each.count)
    )


def test_one_node_is_cut_for_jobs_of_several_sizes() -> None:
    made = plan(waiting(asks("4g.20gb"), asks("2g.10gb"), asks("1g.5gb"), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 1, "1=1g.5gb:1/2g.10gb:1/4g.20gb:1")]
    assert made.unmet == ()


def test_the_rest_of_a_gpu_becomes_what_is_asked_for_most() -> None:
    made = plan(waiting(asks("3g.20gb"), asks("2g.10gb"), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 1, "1=2g.10gb:2/3g.20gb:1")]


def test_nodes_that_are_cut_alike_share_a_launch() -> None:
    made = plan(waiting(asks("3g.20gb", 10), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 5, "1=3g.20gb:2")]


def test_the_node_is_told_its_layout_by_a_tag() -> None:
    of = cut()
    launch = launches(plan(waiting(asks("3g.20gb", 3), of=of)))[0]

    assert dict(fleet_request(launch, "test", placement(of)).tags)[MIG_TAG] == launch.layout


def test_cpus_bound_what_a_node_is_cut_for() -> None:
    made = plan(waiting(asks("1g.5gb", 7, cpus=4), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 3, "1=1g.5gb:7")]


def test_a_gang_gets_nodes_of_its_own_profile() -> None:
    made = plan(waiting(asks("2g.10gb", nodes=3, gpus=2), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 3, "1=2g.10gb:3")]


def test_no_type_that_would_have_to_be_cut_stands_behind_one_that_is_not() -> None:
    """Its boot ends without a layout, and the launch has none."""
    of = cut(T4, ONE_A100)
    spot = replace(of.pools[0], markets=(Market.SPOT,))
    usd = {T4.name: 0.5, ONE_A100.name: 0.51}
    prices = {each: usd[each.instance_type] for _, each in spot.offerings()}
    made = plan(waiting(job("cpu", gpus=0), of=replace(of, pools=(spot,), prices=prices)))
    (launch,) = launches(made)

    assert {each.instance_type for each in launch.offerings} == {T4.name}
    assert launch.layout == ""


def test_a_node_for_jobs_without_gpus_is_cut_as_the_pool_says_first() -> None:
    made = plan(waiting(job(1, gpus=0), of=cut(ONE_A100)))

    assert bought(made) == [("p4x.4xlarge", 1, "1=1g.5gb:7")]


@pytest.mark.parametrize(
    ("job_", "said"),
    [
        (job(1, gpu_type="a100"), "which must name one of a100_1g.5gb, a100_1g.10gb"),
        (job(1, gpu_type=""), "which must name one of a100_1g.5gb, a100_1g.10gb"),
        (asks("3g.20gb", gpus=17, job_id=1), "holds 16 MIG instances 3g.20gb, the job asks 17"),
        (shards(1, 1), "the GPUs of p4d.24xlarge are not shared in shards"),
        (mps(1, 50), "the GPUs of p4d.24xlarge are not shared in mps of any type"),
    ],
)
def test_a_job_that_no_layout_serves_hears_why(job_: Job, said: str) -> None:
    made = plan(waiting(job_))

    assert launches(made) == []
    assert said in why(made)


def test_a_limit_on_gpus_counts_gpus_and_not_their_instances() -> None:
    made = plan(waiting(asks("1g.5gb", 20), of=cut(ONE_A100, limits=Limits(gpus=2))))

    assert bought(made) == [("p4x.4xlarge", 2, "1=1g.5gb:7")]


def a100(*used: tuple[str, int, int], busy: bool = False) -> Node:
    kinds = tuple(Devices(f"a100_{name}", count, alloc) for name, count, alloc in used)
    state = "MIXED+DYNAMIC_NORM" if busy else "IDLE+DYNAMIC_NORM"
    one = node("i-1", ONE_A100, state=state)
    gpus, alloc = sum(each.count for each in kinds), sum(each.alloc for each in kinds)
    return replace(one, gpus=gpus, gpus_alloc=alloc, devices=kinds)


def there(*jobs: Job, node_: Node, of: Cluster) -> Plan:
    on = next(each for _, each in of.pools[0].offerings())
    known = NodeRecord("i-1", "l-0", "mig", on, NOW_S - 900, 1.0, Phase.JOINED)
    alive = Instance("i-1", on, InstanceState.RUNNING, NOW_S - 900, "l-0", "mig")
    return plan(snapshot(jobs, [node_], of=of, records=[known], instances=[alive]))


def test_a_free_instance_of_the_type_is_waited_for_and_none_of_another() -> None:
    node_ = a100(("1g.5gb", 3, 3), ("2g.10gb", 2, 1), busy=True)

    fits = there(asks("2g.10gb"), node_=node_, of=cut(ONE_A100))
    others = there(asks("1g.5gb"), asks("2g.10gb", 2), node_=node_, of=cut(ONE_A100))

    assert bought(fits) == []
    assert bought(others) == [("p4x.4xlarge", 1, "1=1g.5gb:5/2g.10gb:1")]


def test_status_counts_gpus_and_not_their_parts() -> None:
    of = cut(ONE_A100)
    on = next(each for _, each in of.pools[0].offerings())
    alive = Instance("i-1", on, InstanceState.RUNNING, NOW_S - 900, "l-0", "mig")
    known = NodeRecord("i-1", "l-0", "mig", on, NOW_S - 900, 1.0, Phase.JOINED)
    for used, busy in ((("1g.5gb", 7, 0), 0), (("1g.5gb", 7, 2), 1), (("3g.20gb", 2, 2), 1)):
        seen = snapshot([], [a100(used)], of=of, records=[known], instances=[alive])
        assert (gpus(seen).configured, gpus(seen).usable, gpus(seen).busy) == (1, 1, busy)


def test_a_job_that_takes_any_instance_gets_what_is_left() -> None:
    node_ = a100(("1g.5gb", 3, 3), ("2g.10gb", 2, 1), busy=True)

    made = there(job(1, gpu_type=""), job(2, gpu_type=""), node_=node_, of=cut(ONE_A100))

    assert [each.job_id for each in made.served] == ["1"]


def test_shards_are_packed_onto_gpus_and_never_over_two() -> None:
    """Three shards of four beside two would be five."""
    made = plan(waiting(shards(1, 3), shards(2, 2), shards(3, 1), shards(4, 2), of=SHARED))

    assert bought(made) == [("g4dn.xlarge", 2, "")]
    assert len({each.by for each in made.served}) == 2


def test_more_shards_than_a_gpu_has_are_refused_with_the_reason() -> None:
    made = plan(waiting(shards(1, 5), of=SHARED))

    assert bought(made) == []
    assert "has 4 shards, the job asks 5 of one GPU" in why(made)


def test_jobs_that_mps_serves_are_packed_onto_gpus_and_never_over_two() -> None:
    """60 and 40 of a hundred, 30 and 60: what would be 190 of 200 takes two GPUs."""
    jobs = [mps(1, 60), mps(2, 30), mps(3, 60), mps(4, 40)]
    made = plan(waiting(*jobs, of=SERVED))
    again = plan(snapshot(jobs, of=SERVED, records=records(made, SERVED)))

    assert bought(made) == [("g4dn.xlarge", 2, "")]
    assert len({each.by for each in made.served}) == 2
    assert bought(again) == []


@pytest.mark.parametrize(
    ("job_", "said"),
    [
        (mps(1, 300), "has 100 mps, the job asks 300 of one GPU"),
        (shards(1, 1), "are not shared in shards of any type"),
    ],
)
def test_what_mps_does_not_serve_is_refused_with_the_reason(job_: Job, said: str) -> None:
    made = plan(waiting(job_, of=SERVED))

    assert bought(made) == []
    assert said in why(made)


def t4(*, gpus_alloc: int = 0, shared: int = 0) -> Node:
    one = node("i-1", SHARED_T4_BIG, state="MIXED+DYNAMIC_NORM", gpus_alloc=gpus_alloc)
    return replace(one, shards=16, gpus_shared=shared)


def test_a_gpu_that_mps_serves_is_no_whole_one_and_takes_what_is_left() -> None:
    sixty = replace(mps(1, 60), state="RUNNING", node_names=("i-1",))
    node_ = replace(t4(shared=1, gpus_alloc=2), shards=400, shared_gres="mps")

    fits = there(sixty, mps(4, 40), mps(5, 100), node_=node_, of=SERVED)
    more = there(sixty, mps(4, 41), mps(5, 100), node_=node_, of=SERVED)
    whole = there(sixty, mps(4, 40), job(5, gpus=2, memory_mib=1), node_=node_, of=SERVED)

    assert [bool(bought(made)) for made in (fits, more, whole)] == [False, True, True]


def test_a_gpu_of_which_a_shard_is_in_use_is_no_whole_one() -> None:
    three = [replace(shards(n, 1), state="RUNNING", node_names=("i-1",)) for n in (1, 2, 3)]

    whole = there(*three, job(4, gpus=4, memory_mib=1), node_=t4(shared=1), of=SHARED)
    fewer = there(*three, job(4, gpus=3, memory_mib=1), node_=t4(shared=1), of=SHARED)
    shard = there(*three, shards(4, 1), node_=t4(shared=1, gpus_alloc=3), of=SHARED)
    two = there(*three, shards(4, 2), node_=t4(shared=1, gpus_alloc=3), of=SHARED)

    assert [bool(bought(made)) for made in (whole, fewer, shard, two)] == [True, False, False, True]


def test_of_shards_that_may_be_spread_no_more_is_counted_on_than_one_gpu_must_have() -> None:
    """Two GPUs with three shards of eight free: one has two of them, whichever it is."""
    used = [replace(shards(n, 1), state="RUNNING", node_names=("i-1",)) for n in range(1, 6)]

    two = there(*used, shards(9, 2), node_=t4(shared=2, gpus_alloc=2), of=SHARED)
    three = there(*used, shards(9, 3), node_=t4(shared=2, gpus_alloc=2), of=SHARED)

    assert [bool(bought(made)) for made in (two, three)] == [False, True]


def test_what_slurm_tells_of_each_shared_gpu_is_counted_on() -> None:
    used = [replace(mps(n, 60), state="RUNNING", node_names=("i-1",)) for n in (1, 2)]
    node_ = replace(t4(shared=2, gpus_alloc=2), shards=400, shared_gres="mps")
    exact = replace(node_, shards_used=(60, 60))

    unknown = there(*used, mps(3, 40), mps(4, 40), node_=node_, of=SERVED)
    known = there(*used, mps(3, 40), mps(4, 40), node_=exact, of=SERVED)
    more = there(*used, mps(3, 41), node_=exact, of=SERVED)

    assert [bool(bought(made)) for made in (unknown, known, more)] == [True, False, True]


def test_what_is_taken_back_is_as_it_was_before() -> None:
    shard = Shape(gpus=2, gres="shard")
    for parts in (Shards("t4", 4, 2), Shards("t4", 4, 2, (2,)), Shards("t4", 4, 0, (2, 3))):
        after = parts.less(shard, 1)
        assert after.plus(shard, parts) == parts
    for shape in (Shape(gpus=2, gpu_type="b"), Shape(gpus=3)):
        instances = Instances((("a", 1), ("b", 4)))
        assert instances.less(shape, 1).plus(shape, instances) == instances


def queue(chance: Random) -> list[Job]:
    names = chance.sample([each.name for each in PROFILES], chance.randint(1, 5))
    return [
        asks(
            name,
            chance.randint(1, 30),
            gpus=chance.choice([1, 1, 1, 2]),
            cpus=chance.choice([1, 1, 2, 6]),
            memory_mib=chance.choice([1_000, 16_000]),
            priority=chance.randint(1, 3),
            job_id=str(number),
            time_limit_s=chance.choice([600.0, 3_600.0]),
        )
        for number, name in enumerate(names, 1)
    ]


def assert_cut_by_the_rules(launch: Launch, gpus: int) -> None:
    told = [part.split("=") for part in launch.layout.split()]
    assert sum(int(count) for count, _ in told) == gpus
    for _, parts in told:
        cut_into = dict(part.split(":") for part in parts.split("/"))
        counts = tuple(int(cut_into.get(each.name, 0)) for each in PROFILES)
        assert counts in layouts(PROFILES), parts
    assert len(launch.layout) <= TAG_VALUE_MAX


def assert_slurm_can_start_all(
    made: Plan, jobs: list[Job], records_: tuple[NodeRecord, ...]
) -> None:
    """No more instances of a type are promised than the layouts have, and no CPUs twice."""
    asked = {each.job_id: each.shape for each in jobs}
    on_node: dict[str, list[Shape]] = {}
    for each in made.served:
        for name in each.by:
            on_node.setdefault(name, []).append(asked[each.job_id])
    for name, shapes in on_node.items():
        assert sum(shape.cpus for shape in shapes) <= TYPES[name.split()[1]].vcpus
    has: Counter[str] = Counter()
    for one in records_:
        has.update(dict(devices(one.layout, PROFILES)))
    wants: Counter[str] = Counter()
    for shape in chain(*on_node.values()):
        wants[shape.gpu_type] += shape.gpus
    assert wants <= has
    assert len(on_node) == len(records_)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_waits_is_bought_once_and_can_start(seed: int) -> None:
    """Drawn queues of jobs that ask for instances: layouts that NVIDIA allows, room for every job,
    and nothing more while those nodes boot, nor when the queue is told in another order.
    """
    chance = Random(seed)
    jobs, of = queue(chance), cut(P4D, ONE_A100)

    made = plan(waiting(*jobs, of=of))

    for launch in launches(made):
        assert_cut_by_the_rules(launch, TYPES[launch.offerings[0].instance_type].gpus)
    known = records(made, of)
    if not made.unmet:
        assert_slurm_can_start_all(made, jobs, known)
    # Where CPUs are short Slurm may fill a node with other jobs than it was bought for.
    if not made.unmet and all(each.shape.cpus == 1 for each in jobs):
        assert bought(plan(snapshot(jobs, of=of, records=known))) == []
    shuffled = chance.sample(jobs, len(jobs))
    assert bought(plan(waiting(*shuffled, of=of))) == bought(made)


@pytest.mark.parametrize("seed", range(3))
def test_layouts_of_their_own_take_a_quarter_fewer_gpus_than_the_best_single_profile(
    seed: int,
) -> None:
    """The figure of docs/fractions.md, on a few of its queues."""
    for row in ROWS:
        mixed, single, apart = fewest(row, drawn(row, seed))
        assert mixed <= 0.75 * single
        assert mixed <= apart


def test_a_launch_in_doubt_holds_its_instances() -> None:
    of = cut(ONE_A100)
    jobs = [asks("3g.20gb", 4), asks("1g.5gb", 3)]
    made = plan(waiting(*jobs, of=of))
    doubted = [
        LaunchRecord(each, NOW_S - 10, fleet_request(each, "test", placement(of)))
        for each in launches(made)
    ]

    again = plan(snapshot(jobs, of=of, launches=doubted))

    assert bought(again) == []
    assert again.unmet == ()


def test_a_booting_node_that_nobody_knows_the_layout_of_is_counted_on_by_nobody() -> None:
    of = cut(ONE_A100)
    on = Offering(ONE_A100.name, "us-east-1a", of.pools[0].markets[0])
    adopted = NodeRecord("i-1", "l-0", "mig", on, NOW_S - 10, 3.0)

    made = plan(snapshot([asks("1g.5gb")], of=of, records=[adopted]))

    assert bought(made) == [("p4x.4xlarge", 1, "1=1g.5gb:7")]
