"""A cluster file made fit for machines in namespaces, and what of it they cannot have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from local.cloud import ZONES
from local.sandbox import file_systems, hooks, network, prepaid
from local.sandbox.hooks import Script, Scripts
from tidegate.cli.pcluster.command import stand_in
from tidegate.wire.catalogue import USUAL_ARCH
from tidegate.wire.config import ClusterFile, load_cluster
from tidegate.wire.partition_model import NEED_ACCOUNTING
from tidegate.wire.yaml_file import read_yaml

# How Slurm runs where no machine has a kernel, GPUs and memory of its own.
DEMO = Path(__file__).parents[1] / "demo" / "cluster.yaml"

# What is the same here and on AWS: what is bought, for whom and when.
KEPT = (
    *("name", "limits", "budget", "budget_by_account", "budget_by_user", "partitions"),
    "prices_usd_per_hour",
    *("waiting", "time_limit_ratio", "time_limit_ratio_by_account", "hazards_per_hour"),
)
KEPT_OF_POOLS = (
    *("instance_types", "requirements", "weight", "limits", "budget", "idle_s", "max_job_nodes"),
    *("max_job_time_s", "labels", "min_nodes", "headroom_nodes", "headroom", "flexibility"),
    *("boot_s", "checkpoint_s", "rebalance", "disruption"),
)
KEPT_OF_LOGIN = ("instance_type", "count", "root_gib", "ssh_from")
# Changed rather than left out.
ADAPTED = (
    *("region", "pools", "slurm", "image", "shared_dir", "timings", "reservations", "network"),
)
# What needs machines that boot: simulated ones do not.
BOOTED = ("hooks", "login", "file_systems", "lustre")
BOOTED_OF_POOLS = ("hooks", "efa")
SOLD = ("spot", "on-demand")
# Whose jobs give way, by Slurm's own words: needs no part of Slurm that is not here.
PREEMPTION = ("preempttype", "preemptmode", "preemptexempttime")
BY_TIER = "preempt/partition_prio"
# What a partition says of preemption, and of a Slurm that knows accounts and QOS.
GIVES_WAY = ("preempt_mode", "grace_time_s")

SHARED_DIR = "/shared"
# Of pools that are not of the head's architecture: an image is of one.
OTHER_IMAGE = "ami-00000001"
# Of a pool's nodes without jobs: each is a machine that boots here.
MIN_NODES = 4

# Of a configuration of ParallelCluster that names none; the zones here are its.
REGION = "us-east-1"
IMPORTED = "imported.yaml"

# How far the clock of AWS may go ahead of the machines', all in all.
LATER_MAX_S = 3600.0
BOOT_BOUND_S = 900.0


@dataclass(frozen=True, slots=True)
class SandboxFile:
    """The file to deploy. `left_out`: keys of the source that do not count here.

    `told`: what is else in it, in sentences. `scripts`: of hooks, by the source's name of them.
    """

    path: Path
    left_out: Sequence[str] = ()
    told: Sequence[str] = ()
    scripts: Mapping[str, Script] = field(default_factory=dict)


def write_sandbox_file(
    folder: Path, source: Path | None, *, own_hooks: Path | None = None, boots: bool = True
) -> SandboxFile:
    """A configuration of ParallelCluster is played as the import translates it.

    `own_hooks`: a folder with scripts of its hooks; the source's own when left out. `boots`:
    machines run their user data. Errors: BadConfig, when the source is neither.
    """
    made: dict[str, Any] = yaml.safe_load(DEMO.read_text())
    written = folder / "cluster.yaml"
    # Functions whose clock went ahead see new machines as older than they are.
    made["timings"]["boot_bound_s"] = LATER_MAX_S + BOOT_BOUND_S
    if source is None:
        made["name"] = "sandbox"
        written.write_text(yaml.safe_dump(made, sort_keys=False))
        return SandboxFile(written)
    file = _imported(folder, source)
    loaded = load_cluster(file)
    given, _ = read_yaml(file)
    scripts = Scripts(own_hooks or source.parent, has_checksums=file == source)
    # What the demo limits or pays is not said of this file.
    made = {key: value for key, value in made.items() if key not in KEPT}
    played = _Played(given, loaded, scripts, boots=boots)
    made |= played.sections()
    made["slurm"]["settings"] |= played.preemption
    if boots and (bound_s := _mapping(given.get("timings", {})).get("boot_bound_s")):
        made["timings"]["boot_bound_s"] = LATER_MAX_S + max(BOOT_BOUND_S, float(bound_s))
    written.write_text(yaml.safe_dump(made, sort_keys=False))
    said = (*prepaid.told(played.reservations, played.given_reservations), *played.changed())
    return SandboxFile(
        written, list(played.left_out()), (*said, *hooks.told(scripts.found)), scripts.found
    )


def _imported(folder: Path, source: Path) -> Path:
    """The cluster file that a configuration of ParallelCluster becomes, or the source itself."""
    given, _ = read_yaml(source)
    if "Scheduling" not in given:
        return source
    made = folder / IMPORTED
    made.write_text(stand_in(source, REGION))
    return made


def _kinds(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a file says of each kind of login nodes; of one without a name: ""."""
    if "login" not in given:
        return {}
    login = _mapping(given["login"])
    return {n: _mapping(k) for n, k in login["kinds"].items()} if "kinds" in login else {"": login}


class _Played:
    """A file's parts as they are here."""

    def __init__(
        self, given: dict[str, Any], file: ClusterFile, scripts: Scripts, *, boots: bool
    ) -> None:
        self._given = given
        self._cluster_file, self._cluster = file, file.cluster
        self._archs = {each.name: each.instance_types[0].arch for each in file.cluster.pools}
        kinds = file.login_kinds
        self._login_archs = dict(
            zip(_kinds(given), (each.model.arch for each in kinds), strict=True)
        )
        self._network = _mapping(given.get("network", {}))
        self._scripts = scripts
        self._boots = boots
        self._pools = _mapping(given["pools"])
        self._zones = _zones(given)
        self.preemption = _preemption(given)
        self.given_reservations = [dict(each) for each in given.get("reservations", ())]
        now = datetime.now(UTC)
        self.reservations = [
            prepaid.begun(each, now) | {"zone": self._zones[each["zone"]]}
            for each in self.given_reservations
        ]

    def sections(self) -> dict[str, Any]:
        given = self._given
        made: dict[str, Any] = {key: given[key] for key in KEPT if key in given}
        made["partitions"] = {
            name: {key: value for key, value in each.items() if key not in self._lost()}
            for name, each in _mapping(given["partitions"]).items()
        }
        made["pools"] = {name: self._pool(name, pool) for name, pool in self._pools.items()}
        if self.reservations:
            made["reservations"] = self.reservations
        is_needed = self._boots and ("lustre" in given or bool(self._cluster_file.efa))
        if made_network := network.played(self._network, self._zones, is_needed=is_needed):
            made["network"] = made_network
        return made | (self._booted() if self._boots else {})

    def _booted(self) -> dict[str, Any]:
        given, made = self._given, dict[str, Any]()
        if mounted := file_systems.played(given, SHARED_DIR):
            made["file_systems"] = mounted
        if "hooks" in given:
            made["hooks"] = self._scripts.played(given["hooks"])
        if "login" in given:
            made["login"] = self._logins()
        return made

    def _logins(self) -> dict[str, Any]:
        """The one kind of login nodes, or all of them."""
        kinds = {
            name: self._login(given, self._login_archs[name])
            for name, given in _kinds(self._given).items()
        }
        return kinds.get("", {"kinds": kinds})

    def _login(self, given: dict[str, Any], arch: str) -> dict[str, Any]:
        """An image is of one architecture; that of the head is x86_64."""
        made = {key: given[key] for key in KEPT_OF_LOGIN if key in given}
        if arch != USUAL_ARCH:
            made["image"] = OTHER_IMAGE
        if "hooks" in given:
            made["hooks"] = self._scripts.played(given["hooks"])
        return made

    def _pool(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """In this cloud's zones; what only a group has reserved is bought by the hour."""
        made = {key: given[key] for key in self._kept_of(name) if key in given}
        zones = dict.fromkeys(self._zones[each] for each in given["zones"])
        made |= {"zones": list(zones), "capacity_types": self._markets(name) or ["on-demand"]}
        if "min_nodes" in made:
            made["min_nodes"] = min(int(made["min_nodes"]), MIN_NODES)
        if self._archs[name] != USUAL_ARCH:
            made["image"] = OTHER_IMAGE
        if self._boots and "efa" in given:
            made["efa"] = given["efa"]
        if self._boots and "hooks" in given:
            made["hooks"] = self._scripts.played(given["hooks"])
        return made

    def _markets(self, name: str) -> list[str]:
        pool = self._cluster.pool(name)
        assert pool is not None, "it is in the file"
        held = {each.offering for each in self._cluster.reservations}
        paid = {each.market for _, each in pool.offerings() if each in held}
        return [each.value for each in pool.markets if each in paid or each.value in SOLD]

    def _kept_of(self, name: str) -> tuple[str, ...]:
        """What is bought by the hour in place of a reservation is not kept without jobs."""
        if self._markets(name):
            return KEPT_OF_POOLS
        return tuple(each for each in KEPT_OF_POOLS if each != "min_nodes")

    def _lost(self) -> tuple[str, ...]:
        """What a partition cannot say of a Slurm without accounting."""
        return NEED_ACCOUNTING if self.preemption else (*NEED_ACCOUNTING, *GIVES_WAY)

    def left_out(self) -> Iterator[str]:
        booted = BOOTED if self._boots else ()
        yield from (key for key in self._given if key not in (*KEPT, *ADAPTED, *booted))
        yield from (f"network.{key}" for key in network.left_out(self._network))
        slurm = _mapping(self._given.get("slurm", {}))
        yield from (f"slurm.{key}" for key in slurm if key not in ("version", "settings"))
        for key in _mapping(slurm.get("settings", {})):
            if key not in self.preemption:
                yield f"slurm.settings.{key}"
        if self._boots:
            yield from file_systems.left_out(self._given, SHARED_DIR)
            for name, login in _kinds(self._given).items():
                place = f"login.kinds.{name}" if name else "login"
                known = (*KEPT_OF_LOGIN, "zone", "hooks")
                yield from (f"{place}.{key}" for key in login if key not in known)
        for name, partition in _mapping(self._given["partitions"]).items():
            yield from (f"partitions.{name}.{key}" for key in partition if key in self._lost())
        of_pools = BOOTED_OF_POOLS if self._boots else ()
        for name, pool in self._pools.items():
            known = (*self._kept_of(name), *of_pools, "zones", "capacity_types")
            yield from (f"pools.{name}.{key}" for key in pool if key not in known)

    def changed(self) -> Iterator[str]:
        """Another shared folder, and pools that keep fewer nodes than they say."""
        if (directory := self._given.get("shared_dir", SHARED_DIR)) != SHARED_DIR:
            yield f"The shared folder is {SHARED_DIR} here, instead of {directory}"
        for name, pool in self._pools.items():
            wanted = int(pool.get("min_nodes", 0))
            if wanted > MIN_NODES and self._markets(name):
                yield f"Kept without jobs: {MIN_NODES} nodes of {name}, instead of {wanted}"


def _zones(given: dict[str, Any]) -> dict[str, str]:
    """Zone -> the one of this cloud that stands for it: the same where it has it."""
    pools = _mapping(given["pools"]).values()
    named = sorted({zone for each in pools for zone in each["zones"]})
    free = [each for each in ZONES if each not in named] or list(ZONES)
    others = [each for each in named if each not in ZONES]
    return {each: each for each in named if each in ZONES} | {
        each: free[number % len(free)] for number, each in enumerate(others)
    }


def _preemption(given: dict[str, object]) -> dict[str, Any]:
    """The lines of slurm.conf by which jobs of a lower tier give way; by QOS they do not here."""
    settings = _mapping(_mapping(given.get("slurm", {})).get("settings", {}))
    kept = {key: value for key, value in settings.items() if key.lower() in PREEMPTION}
    is_by_tier = any(str(value).lower() == BY_TIER for value in kept.values())
    return kept if is_by_tier else {}


def _mapping(found: object) -> dict[str, Any]:
    assert isinstance(found, dict), "load_cluster has read it"
    return found
