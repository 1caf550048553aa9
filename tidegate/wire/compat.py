"""What speaks against a cluster file's pools, by the facts of `tidegate/data/compat.yaml`."""

from collections.abc import Iterator

from tidegate.core.model.cluster import Pool
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.compat_facts import Finding, facts_of, load_compat, sources
from tidegate.wire.compat_software import Card, card_rules, software_of, software_rules
from tidegate.wire.config import ClusterFile
from tidegate.wire.node_models import GpuModel

# Source: EKS's notes on g7, "rejects p3, p3dn, g6f".
NO_FRACTIONS_FROM = 595
# Estimates, no vendor's words: `make vm` prints what an idle head with agent, slurmdbd and MariaDB
# has in use, some 430 MiB on Debian 13. Jobs, records and updates of packages come on top.
HEAD_LEAST_MIB = 1024
HEAD_MIB = 2 * HEAD_LEAST_MIB
HEAD_MIB_WITH_DATABASE = 4 * HEAD_LEAST_MIB
HEAD_SOURCE = "an estimate from the virtual machines of docs/vm.md"


def findings(file: ClusterFile) -> tuple[Finding, ...]:
    """Everything that speaks against the file's pools on its image, errors first."""
    pools = file.cluster.pools
    has = {pool.name: software_of(file, pool.name) for pool in pools}
    found = [
        each
        for pool in pools
        for card in _cards(pool, file.gpu[pool.name])
        for each in card_rules(card, has[pool.name])
    ]
    found += [
        each for pool in pools if not file.gpu[pool.name].wanted_profiles for each in _counts(pool)
    ]
    found += [each for pool in pools if pool.name in file.efa for each in _efa(pool, file)]
    found += [each for name, gpu in file.gpu.items() for each in _shared(name, gpu, file)]
    found += [each for pool in pools for each in _fractions(pool, file)]
    found += [each for pool in pools for each in _mixed(pool)]
    found += _own_image(file)
    found += _head(file)
    found += [each for software in has.values() for each in software_rules(software)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.is_error))


def _cards(pool: Pool, gpu: GpuModel) -> Iterator[Card]:
    """The pool's instance types with NVIDIA GPUs that the facts know."""
    types, gpus = load_compat()["instance_types"], load_compat()["gpus"]
    for each in pool.instance_types:
        if row := types.get(each.name):
            has_nvswitch = facts_of(each.name).has_nvswitch
            place = f"pools.{pool.name}: {each.name}"
            yield Card(place, row["gpu"], gpus[row["gpu"]], has_nvswitch, gpu.wanted_profiles)


def _counts(pool: Pool) -> Iterator[Finding]:
    for each in pool.instance_types:
        row = load_compat()["instance_types"].get(each.name)
        # Of a fraction of a GPU EC2 says none.
        if row and row["count"] and row["count"] != each.gpus:
            place = f"pools.{pool.name}: {each.name}"
            text = f"{each.gpus} GPUs in the catalogue, {row['count']} in the facts"
            yield Finding("R13", False, place, text, sources(["moto521"]))


def _mixed(pool: Pool) -> Iterator[Finding]:
    """A job without GPUs takes what is cheapest, and idle nodes of any type before it."""
    plain = [each.name for each in pool.instance_types if not each.gpus]
    if plain and len(plain) < len(pool.instance_types):
        text = (
            f"has types without GPUs ({plain[0]}) beside types with GPUs: a job without GPUs may"
            " take room on a node with idle GPUs, which then stays for it; use two pools"
        )
        yield Finding("R23", False, f"pools.{pool.name}", text, "Slurm, select/cons_tres")


def _head(file: ClusterFile) -> Iterator[Finding]:
    """The least for the system with slurmctld and the agent, and what lets them breathe."""
    row = load_catalogue().get(file.head.instance_type)
    if row is None or file.existing.head:
        return
    name, mib = row.instance_type.name, row.instance_type.memory_mib
    has_more = file.slurm.has_accounting or file.monitoring.prometheus
    wanted = HEAD_MIB_WITH_DATABASE if has_more else HEAD_MIB
    is_error = mib < HEAD_LEAST_MIB
    if not is_error and mib >= wanted:
        return
    beside = ", with a database or Prometheus beside them" if has_more else ""
    text = (
        f"{name} has {mib} MiB: slurmctld and the agent{beside} want {wanted}, or the kernel may"
        " end one of them; take a larger one"
    )
    yield Finding("R24", is_error, "head.instance_type", text, HEAD_SOURCE)


def _fractions(pool: Pool, file: ClusterFile) -> Iterator[Finding]:
    """A fraction of a GPU is a vGPU: its driver is NVIDIA's GRID one, which AWS's images lack."""
    rows = load_compat()["instance_types"]
    image = file.image_of(pool.name)
    driver = file.software.driver if image else None
    for each in pool.instance_types:
        if each.gres != "gpu" or not each.gpus or (rows.get(each.name) or {"count": 1})["count"]:
            continue
        place = f"pools.{pool.name}: {each.name}"
        if not image:
            text = (
                "needs NVIDIA's GRID driver, which no image of AWS's or Canonical's has: name one"
            )
            yield Finding("R25", True, place, f"{text} of your own (ami-...)", sources(["ekskmod"]))
        elif driver and int(driver.split(".")[0]) >= NO_FRACTIONS_FROM:
            text = f"driver branch {NO_FRACTIONS_FROM} and later refuse it, the image has {driver}"
            yield Finding("R06", True, place, text, sources(["eksg7"]))


def _shared(pool: str, gpu: GpuModel, file: ClusterFile) -> Iterator[Finding]:
    if gpu.mps and gpu.compute_mode == "default":
        text = "with mps: programs that miss the server run beside it, not through it"
        yield Finding("R16", False, f"pools.{pool}.gpu.compute_mode", text, sources(["mps"]))
    if gpu.wanted_profiles and not (file.image_of(pool) or file.images):
        text = "the image must hold nvidia-mig-parted; AWS's is not known to"
        key = "mig" if gpu.mig else "mig_profiles"
        yield Finding("R19", False, f"pools.{pool}.gpu.{key}", text, sources(["dlami"]))
    if gpu.compute_mode == "prohibited":
        text = "prohibited: no program may use the GPU"
        yield Finding("R16", False, f"pools.{pool}.gpu.compute_mode", text, sources(["nvsmi"]))


def _own_image(file: ClusterFile) -> Iterator[Finding]:
    if file.containers and not file.has_own_nodes:
        yield _containers(file)
    if file.has_lustre and not file.has_own_images:
        yield _lustre("lustre" if file.lustre else "file_systems")
    if file.ships_logs and file.installs_driver and not file.has_own_nodes:
        text = "image: install has no CloudWatch agent; take dlami, or an image of your own"
        yield Finding("R20", True, "logs.nodes", text, sources(["dlami"]))
    if file.os == "al2023" and file.installs_driver:
        for pool in file.cluster.pools:
            is_neuron = any(each.gres == "neuron" for each in pool.instance_types)
            if is_neuron and not file.image_of(pool.name):
                text = "image: install-al2023 brings no Neuron driver; take dlami or install"
                yield Finding("R20", True, f"pools.{pool.name}", text, sources(["dlami"]))
    if file.users and not (file.directory or file.has_own_images):
        text = "AWS's and Canonical's images know no directory of yours: bake one with sssd.conf"
        yield Finding("R20", True, "users", text, sources(["dlami"]))


def _containers(file: ClusterFile) -> Finding:
    """Head and login nodes get these as they boot, where they have no image of their own."""
    lacks = "AWS's and Canonical's images hold no enroot and pyxis"
    if file.images:
        text = f"{lacks}: nodes power off until the first image is baked (`tidegate image bake`)"
        return Finding("R20", False, "containers", text, sources(["dlami"]))
    remedy = "bake them (`images: {}`), or name an image that holds them"
    text = f"{lacks}, and a node has no time to build them: {remedy}"
    return Finding("R20", True, "containers", text, sources(["dlami"]))


def _lustre(place: str) -> Finding:
    text = (
        "each boot installs FSx for Lustre's client from AWS's packages, which know some kernels"
        " alone: on an image with another one no head comes up and no node joins; name images of"
        " your own that hold it (mount.lustre), or have kernel 6.8 (linux-aws-lts-24.04)"
    )
    return Finding("R20", False, place, text, sources(["dlami"]))


def _efa(pool: Pool, file: ClusterFile) -> Iterator[Finding]:
    """A pool's one launch template has the network interfaces of all its types."""
    place = f"pools.{pool.name}.efa"
    facts = {each.name: facts_of(each.name) for each in pool.instance_types}
    layouts = {name: (each.efa_interfaces, each.network_cards) for name, each in facts.items()}
    for name, (interfaces, _) in layouts.items():
        if not interfaces:
            yield Finding("R07", True, place, f"{name} has no EFA", sources(["moto521"]))
    if len(set(layouts.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, (count, _) in sorted(layouts.items()))
        text = f"instance types of one pool need as many EFA interfaces each, have {counts}"
        yield Finding("R07", True, place, text, sources(["moto521"]))
    if file.installs_driver and not file.image_of(pool.name):
        text = "image: install brings no EFA software; take dlami, or an image of your own"
        yield Finding("R18", True, place, text, sources(["efalog"]))
    network = file.network
    if max(count for count, _ in layouts.values()) > 1 and not (network.vpc or network.is_private):
        text = (
            "EC2 gives no public address to an instance with several network interfaces, and the"
            " own subnets have no other way out: set network.nat or network.endpoints"
        )
        yield Finding("R17", True, place, text, sources(["efaguide"]))
