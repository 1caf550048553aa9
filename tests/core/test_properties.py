"""What holds for every plan, whatever is drawn."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.reading import launches
from tests.core.test_planner import shuffled
from tests.make import (
    A10G,
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
from tidegate.core.explain.plan import describe
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import InstanceType, Offering
from tidegate.core.model.plan import Plan, Served, Unmet
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.wire.decisions import decode_verdicts, encode_verdicts

TYPES = {each.name: each for each in (T4, T4_BIG, A10G)}

FEW = settings(max_examples=40, derandomize=True)

limits = st.builds(
    Limits,
    gpus=st.none() | st.integers(0, 20),
    nodes=st.none() | st.integers(0, 8),
    usd_per_hour=st.none() | st.floats(0, 12),
    vcpus=st.none() | st.integers(0, 200),
    memory_mib=st.none() | st.integers(0, 900_000),
)


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    """Jobs of few shapes, so that some are equal; some gangs, arrays and impossible ones."""
    made: list[Job] = []
    for number in range(draw(st.integers(0, 25))):
        made.append(
            job(
                number,
                nodes=draw(st.sampled_from((1, 1, 1, 2, 3))),
                gpus=draw(st.sampled_from((0, 1, 1, 2, 4, 8))),
                gpu_type=draw(st.sampled_from(("t4", "", "a10g"))),
                cpus=draw(st.sampled_from((1, 3, 16))),
                memory_mib=draw(st.sampled_from((500, 20_000))),
                count=draw(st.sampled_from((1, 1, 4))),
                priority=draw(st.integers(0, 3)),
                is_exclusive=draw(st.sampled_from((False, False, True))),
                reason=draw(st.sampled_from(("Resources", "None", "Dependency"))),
                time_limit_s=draw(st.sampled_from((None, 600.0, 90_000.0))),
                is_requeueable=draw(st.booleans()),
            )
        )
    return made


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A queue, nodes that are idle or busy or booting, and limits of pool and cluster."""
    t4 = pool(limits=draw(limits), weight=draw(st.sampled_from((1, 5))))
    of = cluster(
        replace(t4, max_job_time_s=draw(st.sampled_from((None, None, 3600.0)))),
        pool("a10g", (A10G,), limits=draw(limits), zones=("us-east-1a", "us-east-1b")),
        limits=draw(limits),
    )
    names = [f"i-{n}" for n in range(draw(st.integers(0, 5)))]
    nodes = [
        node(name, T4_BIG, idle_s=500, gpus_alloc=used, state="MIXED" if used else "IDLE")
        for name in names
        if (used := draw(st.integers(-1, 3))) >= 0
    ]
    on = offering(T4_BIG)
    return snapshot(
        draw(queues()),
        nodes,
        of=of,
        instances=[instance(name, on) for name in names],
        records=[record(name, on) for name in names],
    )


def used(snapshot: Snapshot, made: Plan, of_pool: str = "") -> Counter[str]:
    """What instances and launches take of each dimension, the dearest offering counting."""
    total: Counter[str] = Counter()
    held: list[tuple[str, tuple[Offering, ...], int, float]]
    held = [(r.pool, (r.offering,), 1, r.usd_per_hour) for r in snapshot.nodes]
    held += [(x.pool, x.offerings, x.count, x.usd_per_hour_each) for x in launches(made)]
    for name, offerings, count, usd in held:
        if of_pool in ("", name):
            types = [TYPES[each.instance_type] for each in offerings]
            total["nodes"] += count
            total["gpus"] += count * max(each.gpus for each in types)
            total["vcpus"] += count * max(each.vcpus for each in types)
            total["memory_mib"] += count * max(each.memory_mib for each in types)
            total["usd_per_hour"] += count * usd  # type: ignore[assignment]
    return total


@FEW
@given(snapshots(), st.integers(0, 1000))
def test_the_order_of_a_snapshot_changes_not_one_byte_of_the_plan(snapshot: Snapshot, seed: int):
    assert repr(plan(shuffled(snapshot, seed))) == repr(plan(snapshot))


@FEW
@given(snapshots())
def test_a_launch_passes_no_limit(snapshot: Snapshot):
    made = plan(snapshot)

    scopes = [("", snapshot.cluster.limits), *((p.name, p.limits) for p in snapshot.cluster.pools)]
    for scope, limit in scopes:
        before, after = used(snapshot, Plan((), (), ()), scope), used(snapshot, made, scope)
        for dimension, most in (
            ("nodes", limit.nodes),
            ("gpus", limit.gpus),
            ("vcpus", limit.vcpus),
            ("memory_mib", limit.memory_mib),
            ("usd_per_hour", limit.usd_per_hour),
        ):
            if most is not None and after[dimension] > before[dimension]:
                assert after[dimension] <= most + 0.002, (scope, dimension)


@FEW
@given(snapshots())
def test_every_pending_job_has_one_verdict_with_a_reason(snapshot: Snapshot):
    made = plan(snapshot)

    assert snapshot.digest is not None
    every: list[Served | Unmet] = [*made.served, *made.unmet]
    verdicts = [each.job_id for each in every]
    assert sorted(verdicts) == sorted(each.job_id for each in snapshot.digest.reading.jobs)
    assert all(each.reason for each in every)
    assert "unknown" not in describe(made)


@FEW
@given(snapshots())
def test_the_verdicts_of_every_plan_can_be_stored_and_read(snapshot: Snapshot):
    verdicts = verdicts_of(plan(snapshot), snapshot)

    assert decode_verdicts(encode_verdicts(verdicts)) == verdicts


@FEW
@given(snapshots())
def test_a_job_has_as_many_places_as_it_asks_and_no_node_more_jobs_than_fit(snapshot: Snapshot):
    made = plan(snapshot)

    assert snapshot.digest is not None
    jobs = {each.job_id: each for each in snapshot.digest.reading.jobs}
    room = {each.name: each for each in snapshot.digest.reading.nodes}
    filled: dict[str, Counter[str]] = {}
    for each in made.served:
        asked = jobs[each.job_id]
        if asked.nodes > 1:
            assert len(each.by) % asked.nodes == 0
        assert 0 < len(each.by) <= asked.nodes * asked.count
        for name in each.by:
            filled.setdefault(name, Counter()).update(
                gpus=asked.shape.gpus, cpus=asked.shape.cpus, memory=asked.shape.memory_mib
            )
    for name, takes in filled.items():
        kind = _type_of(name)
        alloc = (room[name].gpus_alloc, room[name].cpus_alloc) if name in room else (0, 0)
        assert takes["gpus"] <= kind.gpus - alloc[0], name
        assert takes["cpus"] <= kind.vcpus - alloc[1], name
        assert takes["memory"] <= kind.slurm_memory_mib, name


def _type_of(name: str) -> InstanceType:
    return TYPES[name.split()[1]] if name.startswith("new ") else T4_BIG


@FEW
@given(snapshots())
def test_no_node_is_bought_that_no_job_uses(snapshot: Snapshot):
    made = plan(snapshot)

    new = {name for each in made.served for name in each.by if name.startswith("new ")}
    assert sum(each.count for each in launches(made)) == len(new)
    by_job = {each.job_id: each for each in made.served}
    assert all(job_id in by_job for each in launches(made) for job_id in each.for_jobs)


@FEW
@given(snapshots(), st.integers(1, 8))
def test_more_budget_never_takes_from_the_first_in_the_queue(snapshot: Snapshot, more: int):
    """The first job whose fate a wider limit changes is served by it."""
    less = replace(snapshot, cluster=_with_nodes(snapshot, more))
    wide = replace(snapshot, cluster=_with_nodes(snapshot, 2 * more))

    assert snapshot.digest is not None
    for before, after in zip(_tasks(less), _tasks(wide), strict=True):
        if before != after:
            assert after[1] > before[1], before[0]
            break


def _with_nodes(snapshot: Snapshot, nodes: int):
    limit = Limits(nodes=len(snapshot.nodes) + nodes)
    pools = tuple(replace(each, limits=Limits()) for each in snapshot.cluster.pools)
    return replace(snapshot.cluster, limits=limit, pools=pools)


def _tasks(snapshot: Snapshot) -> Sequence[tuple[str, int]]:
    """How many places each job has, in the order of the queue."""
    made = plan(snapshot)
    assert snapshot.digest is not None
    by = {each.job_id: len(each.by) for each in made.served}
    key = lambda j: (-j.priority, -j.nodes * max(j.shape.gpus, 1), int(j.job_id))  # noqa: E731
    return [(j.job_id, by.get(j.job_id, 0)) for j in sorted(snapshot.digest.reading.jobs, key=key)]
