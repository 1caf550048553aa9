"""A ParallelCluster 3 configuration as a cluster file, and what of it has no equivalent.

Source: AWS ParallelCluster guide v3, "Cluster configuration file", Slurm scheduler.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.wire.catalogue import load_catalogue

type Yaml = dict[str, Any]

MARKETS = {"ONDEMAND": "on-demand", "SPOT": "spot"}

# Read below; everything else of a configuration is told as left out.
_READ = frozenset(
    {
        *("Region", "HeadNode", "HeadNode.InstanceType", "HeadNode.Networking"),
        *("HeadNode.Networking.SubnetId", "Scheduling", "Scheduling.Scheduler"),
        *("Scheduling.SlurmQueues", "Scheduling.SlurmSettings", "Image", "Image.CustomAmi"),
        "Scheduling.SlurmSettings.ScaledownIdletime",
    }
)
_READ_OF_QUEUE = frozenset({"Name", "CapacityType", "ComputeResources", "Networking", "Image"})
_READ_OF_RESOURCE = frozenset({"Name", "InstanceType", "Instances", "MinCount", "MaxCount", "Efa"})

INSTEAD = {
    "HeadNode.Ssh": "no SSH port: people use Session Manager, or a login node of their own",
    "Scheduling.SlurmSettings.Database": "accounting: put its lines into slurm.settings",
    "SharedStorage": "the stack has an EFS of its own at shared_dir; for Lustre see lustre",
    "Monitoring": "alarms and metrics: see alarm_email, metrics and logs",
    "DirectoryService": "users of the head exist on every node; a directory goes into the image",
    "LoginNodes": "not there",
    "Iam": "roles are the stack's own; see permissions_boundary",
}


@dataclass(slots=True)
class Translated:
    """`file`: a cluster file, not yet complete where ParallelCluster says nothing of it."""

    file: Yaml
    left_out: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)


def translate(text: Yaml, name: str) -> Translated:
    """One pool for each compute resource, one partition for each queue."""
    done = Translated({"name": name, "region": text.get("Region") or "us-east-1"})
    head = _part(text, "HeadNode")
    if head.get("InstanceType"):
        done.file["head"] = {"instance_type": head["InstanceType"]}
    if image := _part(text, "Image").get("CustomAmi"):
        done.file["image"] = image
        done.to_do.append("image: ParallelCluster's own images have another Slurm; build one")
    scheduling = _part(text, "Scheduling")
    if scheduling.get("Scheduler", "slurm") != "slurm":
        done.left_out.append(
            f"Scheduling.Scheduler: {scheduling['Scheduler']}, only slurm is known"
        )
    idle_min = _given(_part(scheduling, "SlurmSettings"), "ScaledownIdletime", 10)
    pools: Yaml = {}
    partitions: Yaml = {}
    for queue in scheduling.get("SlurmQueues") or ():
        names = _pools_of(queue, idle_min, pools, done)
        if names:
            partitions[queue["Name"]] = {"pools": names}
    if partitions:
        next(iter(partitions.values()))["default"] = True
    done.file |= {"partitions": partitions, "pools": pools}
    done.left_out += [
        f"{path}: {INSTEAD.get(path, INSTEAD.get(path.split('.')[0], 'no equivalent'))}"
        for path in _unread(text)
    ]
    _network(text, done)
    return done


def _pools_of(queue: Mapping[str, Any], idle_min: int, pools: Yaml, done: Translated) -> list[str]:
    place = f"Scheduling.SlurmQueues.{queue.get('Name')}"
    market = MARKETS.get(queue.get("CapacityType") or "ONDEMAND")
    if market is None:
        done.left_out.append(f"{place}.CapacityType: {queue['CapacityType']}, see reservations")
        market = "on-demand"
    done.left_out += [f"{place}.{each}: no equivalent" for each in queue.keys() - _READ_OF_QUEUE]
    if _part(_part(queue, "Networking"), "PlacementGroup").get("Enabled"):
        done.to_do.append(f"{place}: had a placement group; see placement_group of the pools")
    names: list[str] = []
    for resource in queue.get("ComputeResources") or ():
        where = f"{place}.{resource.get('Name')}"
        types = [each["InstanceType"] for each in resource.get("Instances") or ()]
        types = types or [resource["InstanceType"]]
        unknown = [each for each in types if each not in load_catalogue()]
        done.left_out += [f"{where}: {each} is not in the catalogue" for each in unknown]
        done.left_out += [
            f"{where}.{each}: no equivalent" for each in resource.keys() - _READ_OF_RESOURCE
        ]
        if known := [each for each in types if each in load_catalogue()]:
            pool = _pool_name(queue["Name"], resource["Name"], pools)
            pools[pool] = _pool(resource, known, market, idle_min)
            names.append(pool)
    return names


def _pool(resource: Mapping[str, Any], types: list[str], market: str, idle_min: int) -> Yaml:
    pool: Yaml = {
        "instance_types": types,
        "zones": [],
        "capacity_types": [market],
        "limits": {"nodes": _given(resource, "MaxCount", 10)},
        "idle_s": idle_min * 60,
    }
    if resource.get("MinCount"):
        pool["min_nodes"] = resource["MinCount"]
    return pool


def _pool_name(queue: str, resource: str, taken: Container[str]) -> str:
    """At most 31 characters, and none that another pool has."""
    name = f"{queue}-{resource}".lower().replace("_", "-")
    names = (name[:31], *(f"{name[:28]}-{number}" for number in range(2, 100)))
    return next(each for each in names if each not in taken)


def _network(text: Yaml, done: Translated) -> None:
    """Subnets are known by their ids only; their zones and VPC must be filled in."""
    head = _part(_part(text, "HeadNode"), "Networking").get("SubnetId")
    subnets = [head] if head else []
    for queue in _part(text, "Scheduling").get("SlurmQueues") or ():
        subnets += _part(queue, "Networking").get("SubnetIds") or ()
    known = sorted(set(subnets))
    done.to_do.append("pools.*.zones: name the availability zones of the queues' subnets")
    if known:
        done.to_do.append(f"network: name the VPC, and the zone of each of {', '.join(known)}")


def _unread(text: Yaml) -> Iterator[str]:
    """Paths of what `translate` does not look at, as high up as possible."""

    def walk(part: Mapping[str, Any], place: str) -> Iterator[str]:
        for name, value in part.items():
            path = f"{place}.{name}" if place else name
            if path not in _READ:
                yield path
            elif isinstance(value, dict):
                yield from walk(value, path)

    return walk(text, "")


def _given(text: Mapping[str, Any], name: str, default: int) -> int:
    """ParallelCluster's default counts where there is no value, which YAML may also say."""
    value: int | None = text.get(name)
    return default if value is None else value


def _part(text: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = text.get(name)
    return value if isinstance(value, dict) else {}
