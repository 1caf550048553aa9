"""Builders: everything has a default but what a test is about."""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.model.calendar import ALWAYS_UP, Wanted
from tidegate.core.model.cluster import (
    Cluster,
    Estimate,
    Limits,
    Partition,
    Pool,
    Timings,
    group_target,
    named_key,
    reserved_key,
)
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import (
    Instance,
    InstanceState,
    InstanceType,
    Market,
    Offering,
    Template,
)
from tidegate.core.model.ledger import LaunchRecord, NodeRecord, Phase
from tidegate.core.model.orders import OrderResult, PendingOrder
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Association, Job, Node, NodeState, Reading, SetBy, Shape
from tidegate.core.model.snapshot import Epoch, Snapshot
from tidegate.service.requests import Placement

NOW_S = 1_800_000_000.0
UNLIMITED = Limits()
ZONE = "us-east-1a"
# What the watcher of a spot node drains it with.
NOTICED = str(DrainReason(DrainCode.NOTICED, "EC2 says so", until_s=NOW_S))
SAVING = str(DrainReason(DrainCode.SAVING, "the node saves its jobs"))
T4 = InstanceType("g4dn.xlarge", vcpus=4, memory_mib=16384, gpus=1, gpu_type="t4")
T4_BIG = InstanceType("g4dn.12xlarge", vcpus=48, memory_mib=196608, gpus=4, gpu_type="t4")
A10G = InstanceType("g5.12xlarge", vcpus=48, memory_mib=196608, gpus=4, gpu_type="a10g")
USD_PER_HOUR = {
    "g4dn.xlarge": {Market.SPOT: 0.2, Market.ON_DEMAND: 0.526},
    "g4dn.12xlarge": {Market.SPOT: 1.5, Market.ON_DEMAND: 3.912},
    "g5.12xlarge": {Market.SPOT: 2.0, Market.ON_DEMAND: 5.672},
}


def offering(type_: InstanceType = T4, market: Market = Market.SPOT, zone: str = ZONE) -> Offering:
    return Offering(type_.name, zone, market)


def pool(
    name: str = "t4",
    types: Sequence[InstanceType] = (T4, T4_BIG),
    *,
    zones: Sequence[str] = (ZONE,),
    markets: Sequence[Market] = (Market.SPOT, Market.ON_DEMAND),
    weight: int = 1,
    limits: Limits = UNLIMITED,
    idle_s: float = 60.0,
) -> Pool:
    return Pool(name, tuple(types), tuple(zones), tuple(markets), weight, limits, idle_s)


def cluster(*pools: Pool, limits: Limits = UNLIMITED, timings: Timings | None = None) -> Cluster:
    made = pools or (pool(), pool("a10g", (A10G,)))
    prices = {
        each: USD_PER_HOUR[each.instance_type][each.market]
        for one in made
        for _, each in one.offerings()
    }
    partition = Partition("gpu", tuple(one.name for one in made), is_default=True)
    return Cluster("test", made, (partition,), prices, limits, timings or Timings())


def at_estimates(of: Cluster, beside_usd_per_hour: float = 0.0) -> Cluster:
    """The cluster of a file that names no prices: the same ones, until the market says others."""
    estimates = {
        each: Estimate(USD_PER_HOUR[each.instance_type][Market.ON_DEMAND], beside_usd_per_hour)
        for each in of.prices
    }
    return replace(of, estimates=estimates)


def job(
    job_id: int | str = 1,
    *,
    nodes: int = 1,
    gpus: int = 1,
    gpu_type: str = "t4",
    cpus: int = 1,
    memory_mib: int = 1000,
    state: str = "PENDING",
    reason: str = "Resources",
    on: Sequence[str] = (),
    **more: object,
) -> Job:
    shape = Shape(gpus, gpu_type, cpus, memory_mib, bool(more.pop("is_exclusive", False)))
    return Job(
        job_id=str(job_id),
        state="RUNNING" if on else state,
        partitions=("gpu",),
        nodes=nodes,
        shape=shape,
        user=str(more.pop("user", "ada")),
        reason=reason,
        node_names=tuple(on),
        **more,  # type: ignore[arg-type]
    )


def node(
    name: str = "i-1",
    type_: InstanceType = T4,
    *,
    state: str = "IDLE+DYNAMIC_NORM",
    gpus_alloc: int = 0,
    idle_s: float = 0.0,
    reason: str = "",
    set_by: SetBy = SetBy.UNKNOWN,
) -> Node:
    return Node(
        name=name,
        state=NodeState.parse(state),
        cpus=type_.vcpus,
        memory_mib=type_.slurm_memory_mib,
        gpus=type_.gpus,
        gpu_type=type_.gpu_type,
        cpus_alloc=gpus_alloc,
        gpus_alloc=gpus_alloc,
        reason=reason,
        last_busy_at_s=NOW_S - idle_s,
        set_by=set_by,
    )


def instance(
    name: str = "i-1",
    on: Offering | None = None,
    *,
    age_s: float = 100.0,
    state: InstanceState = InstanceState.RUNNING,
    pool: str = "t4",
    launch_id: str = "l-0",
) -> Instance:
    return Instance(name, on or offering(), state, NOW_S - age_s, launch_id, pool)


def record(
    name: str = "i-1",
    on: Offering | None = None,
    *,
    age_s: float = 100.0,
    pool: str = "t4",
    phase: Phase = Phase.JOINED,
    gated_for: str = "",
    order: PendingOrder | None = None,
) -> NodeRecord:
    found = on or offering()
    usd = USD_PER_HOUR[found.instance_type][found.market]
    return NodeRecord(name, "l-0", pool, found, NOW_S - age_s, usd, phase, gated_for, order=order)


def digest(
    jobs: Sequence[Job] = (),
    nodes: Sequence[Node] = (),
    *,
    results: Sequence[OrderResult] = (),
    associations: Sequence[Association] = (),
    sequence: int = 1,
) -> Digest:
    reading = Reading("22.05.8", tuple(jobs), tuple(nodes), tuple(associations))
    stamp = Stamp("i-head", NOW_S - 1000, sequence)
    return Digest("test", stamp, NOW_S, reading, tuple(results))


def snapshot(
    jobs: Sequence[Job] = (),
    nodes: Sequence[Node] = (),
    *,
    of: Cluster | None = None,
    instances: Sequence[Instance] = (),
    records: Sequence[NodeRecord] = (),
    launches: Sequence[LaunchRecord] = (),
    resting: Sequence[Resting] = (),
    results: Sequence[OrderResult] = (),
    associations: Sequence[Association] = (),
    age_s: float = 1.0,
    wanted: Wanted = ALWAYS_UP,
) -> Snapshot:
    return Snapshot(
        now_s=NOW_S,
        cluster=of or cluster(),
        epoch=Epoch("abcd", 7),
        digest=digest(jobs, nodes, results=results, associations=associations),
        digest_age_s=age_s,
        instances=tuple(instances),
        nodes=tuple(records),
        launches=tuple(launches),
        resting=tuple(resting),
        wanted=wanted,
    )


def placement(of: Cluster) -> Placement:
    zones = {zone for one in of.pools for zone in one.zones}
    return Placement(
        {
            key: Template(f"lt-{key}", "1")
            for one in of.pools
            for key in (
                one.name,
                reserved_key(one.name),
                *(named_key(one.name, group_target(arn)) for arn in of.reservation_groups),
                *(named_key(one.name, each.target) for each in of.named_reservations(one)),
            )
        },
        {zone: f"subnet-{zone}" for zone in zones},
    )
