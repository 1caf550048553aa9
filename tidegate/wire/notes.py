"""What a cluster file that is right means and its author may not: said by `tidegate validate`."""

from collections.abc import Iterator

from tidegate.core.fleet.worth import kept_s
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.deployment import Nat
from tidegate.wire.login import login_kinds
from tidegate.wire.models import ClusterModel
from tidegate.wire.node_models import OS_OF_IMAGE
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.problems import and_

_ON_HEAD = ("prologslurmctld", "epilogslurmctld", "resvprolog", "resvepilog", "mailprog")
_ON_NODES = ("taskprolog", "taskepilog", "healthcheckprogram", "unkillablestepprogram")
_OF_THE_SYSTEM = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/etc/tidegate/")
_SEVERAL_GPUS = "multiple_sharing_gres_pj"


def notes(model: ClusterModel, cluster: Cluster) -> Iterator[str]:
    """Sentences for whoever wrote the file, each with what to say instead."""
    yield from model.waiting.notes()
    yield from model.slurm.notes()
    yield from model.network.notes()
    yield from _unreachable_packages(model)
    yield from _programs_of_nobody(model)
    yield from _other_architectures(model)
    yield from _large_jobs(model)
    yield from _jobs_of_several_gpus(model)
    for name, pool in model.pools.items():
        yield from _of_pool(model, name, pool)
    yield from _without_ultraservers(cluster)
    if model.prefetch:
        yield from _diskless(model)
    yield from _never_stopped(cluster)


def _of_pool(model: ClusterModel, name: str, pool: PoolModel) -> Iterator[str]:
    for sentence in pool.selection().left_out:
        yield f"pools.{name}: left out {sentence}"
    metal = [each.name for each in pool.selected if load_catalogue()[each.name].is_bare_metal]
    if metal and len(metal) < len(pool.selected):
        yield (
            f"pools.{name}: {metal[0]} is bare metal and others are not, but all are taken to boot"
            f" in {pool.boot_s:g} s (boot_s), and the cheapest is bought: give bare metal a pool of"
            " its own"
        )
    limits = [each for each in (pool.limits.nodes, model.limits.nodes) if each is not None]
    most, job_nodes = min(limits, default=None), pool.max_job_nodes
    is_said = "max_job_nodes" in pool.model_fields_set
    if most is None or (pool.limits.nodes is None and not is_said):
        return
    if job_nodes < most and not is_said:
        yield (
            f"pools.{name}.max_job_nodes: {job_nodes} when left out, and there may be {most} nodes:"
            f" Slurm refuses a job of more than {job_nodes}; say max_job_nodes: {most}, or"
            f" {job_nodes} when that is meant"
        )
    if job_nodes > most and is_said:
        yield (
            f"pools.{name}.max_job_nodes: {job_nodes}, but limits.nodes allows {most}: a job of"
            f" more than {most} would wait for ever; say max_job_nodes: {most}"
        )


def _without_ultraservers(cluster: Cluster) -> Iterator[str]:
    """Nothing but their blocks gives such a pool nodes."""
    held = {each.offering for each in cluster.reservations}
    for pool in cluster.pools:
        sold = [on for of, on in pool.offerings() if is_in_ultraserver(of.name)]
        if sold and not held.intersection(sold):
            name = sold[0].instance_type
            yield (
                f"pools.{pool.name}: no node comes before a Capacity Block of {name} stands in"
                " reservations; tidegate capacity shows what EC2 offers for its jobs, and buys it"
            )


def _unreachable_packages(model: ClusterModel) -> Iterator[str]:
    """Ubuntu's archive is none of AWS's services, as Amazon Linux's on S3 is."""
    network = model.network
    is_closed = network.endpoints and not network.vpc and network.nat is Nat.NONE
    is_installed = any(pool.image is None for pool in model.pools.values())
    has_another_way = network.proxy or network.connected or not is_installed
    if is_closed and not has_another_way and OS_OF_IMAGE.get(model.image, "").startswith("ubuntu"):
        yield (
            f"image: {model.image} lacks packages that each boot takes from Ubuntu's archive, which"
            " is not reached by network.endpoints: no node would join; name an image of yours that"
            " holds them (docs/images.md), or set network.nat"
        )


def _programs_of_nobody(model: ClusterModel) -> Iterator[str]:
    """What slurm.conf has run, and nothing in the file can have brought to where that is."""
    every = [model.hooks, *(pool.hooks for pool in model.pools.values())]
    on_nodes = any(each.on_node_start or each.on_node_configured for each in every)
    on_nodes = on_nodes or any(pool.image for pool in model.pools.values())
    brought = dict.fromkeys(_ON_HEAD, bool(model.hooks.on_head_configured))
    brought |= dict.fromkeys(_ON_NODES, on_nodes)
    shared = (model.shared_dir, *(each.directory for each in model.file_systems))
    there = (*_OF_THE_SYSTEM, *(f"{each}/" for each in shared))
    for name, value in model.slurm.settings.items():
        is_lacking = model.image in OS_OF_IMAGE and not brought.get(name.lower(), True)
        if is_lacking and value.startswith("/") and not value.startswith(there):
            where, hook = ("the head", "head") if name.lower() in _ON_HEAD else ("nodes", "node")
            yield (
                f"slurm.settings.{name} is {value}, which nothing in this file brings to {where}:"
                f" have hooks.on_{hook}_configured put it there, or keep it below"
                f" {model.shared_dir}"
            )


def _other_architectures(model: ClusterModel) -> Iterator[str]:
    """Slurm runs all of them together; what people build where they work is of one."""
    if model.existing.head:
        return
    kinds = [kind.model for kind in login_kinds(model.login, ())]
    archs = sorted({kind.arch for kind in kinds} or {model.head.arch})
    where = "login nodes" if kinds else "the head"
    others = [name for name, pool in model.pools.items() if pool.arch not in archs]
    if others:
        theirs = model.pools[others[0]].arch
        yield (
            f"pools.{', '.join(others)}: nodes are {theirs}, and {where} {and_(archs)}: programs"
            " that are compiled there do not run on these nodes; compile in jobs, on nodes of"
            " theirs"
        )


def _jobs_of_several_gpus(model: ClusterModel) -> Iterator[str]:
    """Source: Slurm 23.11, slurm.conf(5): shards of a job may then be of several GPUs of a node."""
    said = next((n for n in model.slurm.settings if n.lower() == "selecttypeparameters"), "")
    words = model.slurm.settings.get(said, "").lower().split(",")
    names = [name for name, pool in model.pools.items() if pool.gpu.shared_by]
    if _SEVERAL_GPUS in words and names:
        yield (
            f"slurm.settings.{said} has {_SEVERAL_GPUS.upper()}: Slurm gives a job shards or mps of"
            " several GPUs, but no node is bought for a job that asks for more than one GPU has"
            f" (pools.{', '.join(names)}; docs/fractions.md)"
        )


def _large_jobs(model: ClusterModel) -> Iterator[str]:
    """Of pools without a number of nodes of their own, for all of them at once."""
    most = model.limits.nodes or 0
    usual = PoolModel.model_fields["max_job_nodes"].default
    names = [
        name
        for name, pool in model.pools.items()
        if pool.limits.nodes is None
        and "max_job_nodes" not in pool.model_fields_set
        and usual < min(most, *_by_gpus(pool))
    ]
    if names:
        yield (
            f"pools.{', '.join(names)}: max_job_nodes is {usual} when left out, and limits.nodes"
            f" allows {most}: Slurm refuses a job of more than {usual}; say max_job_nodes: {most},"
            f" or {usual} when that is meant"
        )


def _by_gpus(pool: PoolModel) -> Iterator[float]:
    """How many nodes the pool's limit on GPUs allows; without one any number."""
    smallest = min(each.gpus for each in pool.selected)
    yield float("inf")
    if pool.limits.gpus and smallest:
        yield pool.limits.gpus // smallest


def _diskless(model: ClusterModel) -> Iterator[str]:
    for name, pool in model.pools.items():
        if not any(each.local_nvme_gib for each in pool.pool(name).instance_types):
            yield f"pools.{name}: no type has a disk of its own, so prefetch does nothing for it"


def _never_stopped(cluster: Cluster) -> Iterator[str]:
    for pool in cluster.pools:
        if not kept_s(cluster, pool):
            yield (
                f"pools.{pool.name}.stopped_nodes: auto keeps none, since waiting costs nothing for"
                " the jobs of its partitions (waiting.usd_per_job_hour): say a price, or a number"
            )
