"""A cluster file made fit for machines in namespaces, and what of it they cannot have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from local.cloud import ZONES
from tidegate.wire.config import load_cluster
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

# How far the clock of AWS may go ahead of the machines', all in all.
LATER_MAX_S = 3600.0
BOOT_BOUND_S = 900.0


def write_sandbox_file(folder: Path, source: Path | None) -> tuple[Path, list[str]]:
    """The file to deploy, and the keys of the source that do not count here.

    Errors: BadConfig, when the source is no cluster file.
    """
    made: dict[str, Any] = yaml.safe_load(DEMO.read_text())
    left_out: list[str] = []
    if source is not None:
        load_cluster(source)
        given, _ = read_yaml(source)
        left_out = list(_left_out(given))
        made = {**made, **{key: given[key] for key in KEPT if key in given}}
        made["pools"] = {name: _pool(pool) for name, pool in _mapping(given["pools"]).items()}
    else:
        made["name"] = "sandbox"
    # Functions whose clock went ahead see new machines as older than they are.
    made["timings"]["boot_bound_s"] = LATER_MAX_S + BOOT_BOUND_S
    written = folder / "cluster.yaml"
    written.write_text(yaml.safe_dump(made, sort_keys=False))
    return written, left_out


def _left_out(given: dict[str, object]) -> Iterator[str]:
    yield from (key for key in given if key not in (*KEPT, *ADAPTED))
    for name, pool in _mapping(given["pools"]).items():
        known = (*KEPT_OF_POOLS, "zones", "capacity_types")
        yield from (f"pools.{name}.{key}" for key in pool if key not in known)


def _pool(given: dict[str, Any]) -> dict[str, Any]:
    """In this cloud's zones, and bought by the hour: what is reserved on AWS is not here."""
    markets = [each for each in given.get("capacity_types", SOLD) if each in SOLD]
    return {
        **{key: given[key] for key in KEPT_OF_POOLS if key in given},
        "zones": list(ZONES[: len(given["zones"])]),
        "capacity_types": markets or ["on-demand"],
    }


def _mapping(found: object) -> dict[str, Any]:
    assert isinstance(found, dict), "load_cluster has read it"
    return found
