"""A cluster file made fit for machines in namespaces, and what of it they cannot have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from local.cloud import ZONES
from tidegate.cli.pcluster.command import stand_in
from tidegate.wire.config import load_cluster
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
# Changed rather than left out.
ADAPTED = ("region", "pools", "slurm", "image", "shared_dir", "timings")
SOLD = ("spot", "on-demand")
# Whose jobs give way, by Slurm's own words: needs no part of Slurm that is not here.
PREEMPTION = ("preempttype", "preemptmode", "preemptexempttime")
BY_TIER = "preempt/partition_prio"
# What a partition says of preemption, and of a Slurm that knows accounts and QOS.
GIVES_WAY = ("preempt_mode", "grace_time_s")

# Of a configuration of ParallelCluster that names none; the zones here are its.
REGION = "us-east-1"
IMPORTED = "imported.yaml"

# How far the clock of AWS may go ahead of the machines', all in all.
LATER_MAX_S = 3600.0
BOOT_BOUND_S = 900.0


def write_sandbox_file(folder: Path, source: Path | None) -> tuple[Path, list[str]]:
    """The file to deploy, and the keys of the source that do not count here.

    A configuration of ParallelCluster is played as the import translates it. Errors: BadConfig,
    when the source is neither.
    """
    made: dict[str, Any] = yaml.safe_load(DEMO.read_text())
    left_out: list[str] = []
    if source is not None:
        source = _imported(folder, source)
        load_cluster(source)
        given, _ = read_yaml(source)
        preemption = _preemption(given)
        left_out = list(_left_out(given, preempts=bool(preemption)))
        # What the demo limits or pays is not said of this file.
        made = {key: value for key, value in made.items() if key not in KEPT}
        made |= {key: given[key] for key in KEPT if key in given}
        made["slurm"]["settings"] |= preemption
        made["partitions"] = {
            name: {key: value for key, value in each.items() if key not in _lost(bool(preemption))}
            for name, each in _mapping(given["partitions"]).items()
        }
        made["pools"] = {name: _pool(pool) for name, pool in _mapping(given["pools"]).items()}
    else:
        made["name"] = "sandbox"
    # Functions whose clock went ahead see new machines as older than they are.
    made["timings"]["boot_bound_s"] = LATER_MAX_S + BOOT_BOUND_S
    written = folder / "cluster.yaml"
    written.write_text(yaml.safe_dump(made, sort_keys=False))
    return written, left_out


def _imported(folder: Path, source: Path) -> Path:
    """The cluster file that a configuration of ParallelCluster becomes, or the source itself."""
    given, _ = read_yaml(source)
    if "Scheduling" not in given:
        return source
    made = folder / IMPORTED
    made.write_text(stand_in(source, REGION))
    return made


def _left_out(given: dict[str, object], *, preempts: bool) -> Iterator[str]:
    yield from (key for key in given if key not in (*KEPT, *ADAPTED))
    for name, partition in _mapping(given["partitions"]).items():
        yield from (f"partitions.{name}.{key}" for key in partition if key in _lost(preempts))
    for name, pool in _mapping(given["pools"]).items():
        known = (*_kept_of(pool), "zones", "capacity_types")
        yield from (f"pools.{name}.{key}" for key in pool if key not in known)


def _preemption(given: dict[str, object]) -> dict[str, Any]:
    """The lines of slurm.conf by which jobs of a lower tier give way; by QOS they do not here."""
    settings = _mapping(_mapping(given.get("slurm", {})).get("settings", {}))
    kept = {key: value for key, value in settings.items() if key.lower() in PREEMPTION}
    is_by_tier = any(str(value).lower() == BY_TIER for value in kept.values())
    return kept if is_by_tier else {}


def _lost(preempts: bool) -> tuple[str, ...]:
    """What a partition cannot say of a Slurm without accounting."""
    return NEED_ACCOUNTING if preempts else (*NEED_ACCOUNTING, *GIVES_WAY)


def _kept_of(pool: dict[str, Any]) -> tuple[str, ...]:
    """What is bought by the hour in place of a reservation is not kept without jobs."""
    if _markets(pool):
        return KEPT_OF_POOLS
    return tuple(each for each in KEPT_OF_POOLS if each != "min_nodes")


def _markets(pool: dict[str, Any]) -> list[str]:
    return [each for each in pool["capacity_types"] if each in SOLD]


def _pool(given: dict[str, Any]) -> dict[str, Any]:
    """In this cloud's zones, and bought by the hour: what is reserved on AWS is not here."""
    return {
        **{key: given[key] for key in _kept_of(given) if key in given},
        "zones": list(ZONES[: len(given["zones"])]),
        "capacity_types": _markets(given) or ["on-demand"],
    }


def _mapping(found: object) -> dict[str, Any]:
    assert isinstance(found, dict), "load_cluster has read it"
    return found
