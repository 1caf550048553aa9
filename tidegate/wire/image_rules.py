"""Rules of a cluster file on the nodes' image and what is in it."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import login_words
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.node_models import HEAD_OS, OS_OF_IMAGE, GpuModel
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem, and_
from tidegate.wire.repositories import OWN_SLURM

# What jobs bring with them, whatever the image.
OF_JOBS = frozenset({"cuda", "nccl"})


def _architectures(parts: Parts) -> Iterator[Problem]:
    """A job's program runs on one architecture, and so does an image."""
    for name, partition in parts.partitions.items():
        pools = {pool: parts.pools[pool].arch for pool in partition.pools if pool in parts.pools}
        if len(set(pools.values())) > 1:
            told = and_([f"{pool} ({arch})" for pool, arch in pools.items()])
            text = f"has {told}: Slurm would start a job on either; give each a partition"
            yield Problem(("partitions", name, "pools"), text)
    if not parts.is_own_image:
        return
    archs = {f"pool {name}": pool.arch for name, pool in parts.pools.items() if not pool.image}
    has_own_head = parts.head and parts.existing and not parts.existing.head
    if parts.head and has_own_head and parts.head.image is None:
        archs["the head"] = parts.head.arch
        for place, login in parts.logins.items():
            if login.image is None:
                archs[login_words(str(place[-1]))] = login.arch
    if len(set(archs.values())) > 1:
        told = and_([f"{what} ({arch})" for what, arch in archs.items()])
        yield Problem(("image",), f"an image is of one architecture, but is for {told}")


def _login_image(parts: Parts) -> Iterator[Problem]:
    """Login nodes have the head's own image where they name none."""
    head = parts.head
    for place, login in parts.logins.items() if head and head.image else ():
        if head and not login.image and login.arch != head.arch:
            named = ".".join(map(str, place))
            text = (
                f"{login.instance_type} is {login.arch}, and head.image, which login nodes have"
                f" when they name none, is for {head.arch}: take a type of {head.arch}, or name"
                f" {named}.image"
            )
            yield Problem((*place, "instance_type"), text)


def _gpu_settings(parts: Parts) -> Iterator[Problem]:
    """Settings of GPUs that no node has."""
    for name, pool in parts.pools.items():
        without = [each.name for each in pool.selected if each.gres != "gpu" or not each.gpus]
        if without and pool.gpu != GpuModel():
            text = f"{without[0]} has no NVIDIA GPU, so there is nothing to set"
            yield Problem(("pools", name, "gpu"), text)


def _layouts(parts: Parts) -> Iterator[Problem]:
    """The planner knows one shape of an instance type, and so do the placeholders."""
    seen: dict[str, str] = {}
    for name, pool in parts.pools.items():
        for each in pool.selected:
            other = parts.pools[seen.setdefault(each.name, name)].gpu
            if other.wanted_profiles != pool.gpu.wanted_profiles:
                key = "mig" if pool.gpu.mig or not pool.gpu.mig_profiles else "mig_profiles"
                text = (
                    f"{each.name} is cut in another way in pool {seen[each.name]}; a type has one"
                )
                yield Problem(("pools", name, "gpu", key), f"{text} layout")
                break
            counted, others = _counted(pool.gpu), _counted(other)
            if counted != others:
                text = f"{each.name} has another count in pool {seen[each.name]}; a type has one"
                yield Problem(("pools", name, "gpu", counted[0] or others[0]), text)
                break


def _threads(parts: Parts) -> Iterator[Problem]:
    """The same of its CPUs."""
    seen: dict[str, tuple[str, int]] = {}
    for name, pool in parts.pools.items():
        for each in pool.selected:
            other, cpus = seen.setdefault(each.name, (name, each.cpus))
            if cpus != each.cpus:
                text = (
                    f"{each.name} has {cpus} CPUs in pool {other}, and {each.cpus} here; a type "
                    "has one count of them: say the same in both pools, or have the type in one"
                )
                yield Problem(("pools", name, "threads_per_core"), text)
                break


def _counted(gpu: GpuModel) -> tuple[str, int]:
    """What Slurm counts of each GPU: the key that says it, and how many."""
    return gpu.shared_by, gpu.shards_per_gpu or gpu.mps_per_gpu or 0


def _choices(parts: Parts) -> Iterator[Problem]:
    """A layout is for the GPUs of one instance type, so a launch names no other."""
    for name, pool in parts.pools.items():
        least = pool.flexibility.min_types
        if pool.gpu.mig_profiles and pool.flexibility.strict and least > 1:
            text = (
                f"{least} with strict, but a node with gpu.mig_profiles is cut for jobs as one type"
            )
            yield Problem(("pools", name, "flexibility", "min_types"), text)


def _shards_beside_layouts(parts: Parts) -> Iterator[Problem]:
    """Where shards are counted, a job gets no device of a node's second type, and starts all the
    same: seen on 22.05, not on 24.11 (tests/contracts/test_shares_contract.py).
    """
    cut = [name for name, pool in parts.pools.items() if pool.gpu.mig_profiles]
    if not cut or (parts.slurm and parts.slurm.version >= "24.11"):
        return
    for name, pool in parts.pools.items():
        if key := pool.gpu.shared_by:
            counted = "shards are" if pool.gpu.shards_per_gpu else "mps is"
            text = (
                f"and gpu.mig_profiles of pool {cut[0]}: before 24.11 Slurm starts jobs without"
                f" their instance where {counted} counted; choose one, or another slurm.version"
            )
            yield Problem(("pools", name, "gpu", key), text)


def _task_prolog(parts: Parts) -> Iterator[Problem]:
    """Slurm runs one, and without ours no task finds its part of a GPU or its role."""
    slurm = parts.slurm
    own = [key for key in (slurm.settings if slurm else ()) if key.lower() == "taskprolog"]
    needs = bool(parts.job_role_keys) or any(
        pool.efa or pool.job_role or pool.gpu.mig or pool.gpu.mig_profiles or pool.gpu.has_mps
        for pool in parts.pools.values()
    )
    if own and needs and not parts.containers:
        text = (
            "by Tidegate's own tasks hear of efa, mig, mig_profiles, mps, mps_per_gpu and job_role,"
            " and Slurm runs one: leave it out, or those"
        )
        yield Problem(("slurm", "settings", own[0]), text)


def _software(parts: Parts) -> Iterator[Problem]:
    """What AWS's and Canonical's images hold is known; only images of one's own may say it."""
    if parts.has_own_image or not parts.software:
        return
    for name in sorted(parts.software.model_fields_set - OF_JOBS):
        text = f"is known for image: {parts.image}; only an image of your own (ami-...) says it"
        yield Problem(("software", name), text)


def _head_image(parts: Parts) -> Iterator[Problem]:
    """The agent needs Python 3.12, and an image of one's own is also the head's by default."""
    if not (parts.is_own_image and parts.software and parts.head and parts.existing):
        return
    os = parts.software.os or HEAD_OS
    if os != HEAD_OS and not (parts.head.image or parts.existing.head):
        text = (
            f"must name an image of {HEAD_OS}, or one with Python 3.12 or 3.13: the agent needs"
            f" it, and software.os says that {parts.image} is {os}"
        )
        yield Problem(("head", "image"), text)


def _repositories(parts: Parts) -> Iterator[Problem]:
    """Head and nodes run one Slurm: that of their system, or of the repository for it."""
    slurm = parts.slurm
    if slurm is None or parts.head is None or parts.existing is None:
        return
    who: dict[str, list[str]] = {}
    if not (parts.is_own_image or parts.head.image or parts.existing.head):
        who.setdefault(HEAD_OS, []).append("the head")
    if parts.image in OS_OF_IMAGE and not parts.has_own_images_alone:
        who.setdefault(OS_OF_IMAGE[parts.image], []).append("nodes")
    for os, machines in who.items():
        if os in slurm.repositories or OWN_SLURM.get(os) == slurm.version:
            continue
        has = f"has Slurm {OWN_SLURM[os]}" if os in OWN_SLURM else "has none that is new enough"
        text = f"must name one with Slurm {slurm.version} for {and_(machines)}: {os} {has}"
        yield Problem(("slurm", "repositories"), text)
    for os in slurm.repositories:
        if os not in who:
            installed = ", ".join(f"{and_(machines)}: {each}" for each, machines in who.items())
            text = f"no machine installs from it ({installed or 'images of your own have Slurm'})"
            yield Problem(("slurm", "repositories", os), text)
        elif os == "al2023" and slurm.repositories[os].suite:
            yield Problem(("slurm", "repositories", os, "suite"), "is apt's; dnf knows none")


def _baked(parts: Parts) -> Iterator[Problem]:
    """What is baked is made from an image of AWS's, for the pools, and can reach its packages."""
    if parts.images is None:
        return
    if parts.is_own_image:
        text = f"{parts.image} is baked already; take dlami or install for image, or leave this out"
        yield Problem(("images",), text)
    if parts.network and parts.network.proxy:
        text = "a build knows no network.proxy; bake with `tidegate image plan` in a pipeline of"
        yield Problem(("images",), f"{text} your own, and name its image (image: ami-...)")
    archs = {pool.arch for pool in parts.pools.values() if not pool.image}
    is_complete = len(parts.pools) == len(parts.all_pools)
    if parts.has_own_images_alone:
        text = (
            "every pool has an image of its own, so no node would have what is baked: leave it out"
        )
        yield Problem(("images",), text)
    for arch, name in parts.images.instance_types.items():
        place = ("images", "instance_types", arch)
        row = load_catalogue().get(name)
        if row and row.instance_type.arch != arch:
            yield Problem(place, f"{name} is {row.instance_type.arch}: it runs no image for {arch}")
        elif arch not in archs and is_complete:
            yield Problem(place, f"no pool is {arch}, so no image is baked for it")


IMAGE_RULES = (
    _architectures,
    _login_image,
    _gpu_settings,
    _layouts,
    _threads,
    _choices,
    _shards_beside_layouts,
    _task_prolog,
    _software,
    _head_image,
    _repositories,
    _baked,
)
