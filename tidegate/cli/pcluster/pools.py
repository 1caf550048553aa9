"""Queues and their compute resources as partitions and pools."""

import re
from collections.abc import Container

from pydantic import TypeAdapter, ValidationError

from tidegate.cli.pcluster import asking
from tidegate.cli.pcluster.custom import of_pool
from tidegate.cli.pcluster.network import Places, own_subnets, stand_in_zone
from tidegate.cli.pcluster.outcome import OTHER_SLURM, Gap, Translated, Yaml
from tidegate.cli.pcluster.partitions import complete, settings
from tidegate.cli.pcluster.shape import (
    ComputeResource,
    Configuration,
    PlacementGroup,
    Queue,
    Reservation,
)
from tidegate.core.model.frozen import frozen
from tidegate.wire import names as wire_names
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.rules import MAX_PLACEHOLDERS

MARKETS = {"ONDEMAND": "on-demand", "SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}
ARM = "arm64"
# For head and login nodes of arm64 whose own type cannot be had.
ARM_MACHINE = "m7g.large"
USUAL_JOB_NODES: int = PoolModel.model_fields["max_job_nodes"].default
_LABEL: TypeAdapter[str] = TypeAdapter(wire_names.Label, config={"defer_build": True})
STAND_IN_TYPE = "p5.48xlarge"
STAND_IN_START, STAND_IN_END = "2027-01-01T00:00:00Z", "2027-06-01T00:00:00Z"


@frozen
class _Asked:
    """A compute resource, its queue, its place; zones that are known, and stand-ins for all."""

    queue: Queue
    resource: ComputeResource
    place: str
    zones: list[str]
    stand_ins: list[str]

    @property
    def queue_place(self) -> str:
        return f"Scheduling.SlurmQueues[{self.queue.name}]"

    @property
    def reservation(self) -> Reservation:
        own = self.resource.capacity_reservation_target
        return own or self.queue.capacity_reservation_target or Reservation()


def pools(old: Configuration, idle_s: int, region: str, places: Places, done: Translated) -> None:
    """Fills `partitions`, `pools` and `reservations`."""
    made: Yaml = {}
    partitions: Yaml = {}
    whole_cores: dict[str, str] = {}
    done.file |= {"partitions": partitions, "pools": made}
    for queue in old.queues:
        names: list[str] = []
        stand_ins = [stand_in_zone(old, each, region, places) for each in queue.subnets]
        zones = [zone for each in queue.subnets if (zone := places.zone(each))]
        for resource in queue.compute_resources or ():
            place = f"Scheduling.SlurmQueues[{queue.name}].ComputeResources[{resource.name}]"
            all_zones = list(dict.fromkeys(stand_ins)) or [f"{region}a"]
            known = list(dict.fromkeys(zones)) if len(zones) == len(queue.subnets) else []
            asked = _Asked(queue, resource, place, known, all_zones)
            types = _types(asked, old, done)
            if types is not None:
                name = _pool_name(queue.name, resource.name, made)
                pool = _pool(asked, types, idle_s, done)
                if not types:
                    done.gaps.append(_type_gap(asked, name))
                said_s = old.timeouts.compute_node_bootstrap_timeout
                made[name] = pool | of_pool(queue, name, said_s, done) | _image(queue, name, done)
                if own := own_subnets(old, queue.subnets, places):
                    made[name]["subnets"] = own
                if resource.disable_simultaneous_multithreading:
                    whole_cores[name] = f"{place}.DisableSimultaneousMultithreading"
                names.append(name)
                if not known:
                    subnets = ", ".join(queue.subnets) or "AWS's choice"
                    gap = Gap(("pools", name, "zones"), f"those of {subnets}", all_zones)
                    done.gaps.append(gap)
        if names:
            partitions[queue.name] = {"pools": names, **settings(queue, done)}
    if len(partitions) > 1:
        next(iter(partitions.values()))["default"] = True
    complete(done)
    _whole_cores(whole_cores, done)
    _job_sizes(done)
    for pool in made.values():  # a pool's name is a feature of its nodes anyway
        pool["labels"] = [each for each in pool["labels"] if each not in made]


def _types(asked: _Asked, old: Configuration, done: Translated) -> list[str] | None:
    """Those that a pool may have; none: its reservation's; None: the resource is left out."""
    if asked.resource.most == 0:
        done.notes.append(f"{asked.place}: MaxCount is 0, so there is no pool of it")
        return None
    wanted = asked.resource.types or _types_of(asked.reservation, old)
    known: list[str] = []
    for each in wanted:
        row = load_catalogue().get(each)
        if row is None:
            why = f"{each} is not in the catalogue of instance types"
            done.lose(asked.place, "instance-type", why)
        else:
            known.append(each)
    if wanted and not known:
        done.lose(asked.place, "instance-type", "none of its types is left: it has no pool")
        return None
    return known


def _types_of(reservation: Reservation, old: Configuration) -> list[str]:
    """What another resource says of the same reservation, which has one type."""
    wanted = reservation.capacity_reservation_id
    for queue in old.queues:
        for resource in queue.compute_resources or ():
            target = resource.capacity_reservation_target or queue.capacity_reservation_target
            if target and target.capacity_reservation_id == wanted and resource.types:
                return resource.types
    return []


def _type_gap(asked: _Asked, pool: str) -> Gap:
    command = asking.of_reservation(str(asked.reservation.capacity_reservation_id))
    text = f"that of {command}; where it has GPUs, jobs know its nodes by the label gpu too"
    return Gap(("pools", pool, "instance_types"), text, [STAND_IN_TYPE])


def _pool(asked: _Asked, types: list[str], idle_s: int, done: Translated) -> Yaml:
    resource = asked.resource
    pool: Yaml = {
        "instance_types": types,
        "zones": list(asked.zones),
        "capacity_types": _markets(asked, types, done),
        "limits": {"nodes": resource.most},
        "idle_s": idle_s,
    }
    if resource.most > USUAL_JOB_NODES:
        pool["max_job_nodes"] = resource.most
    if resource.least:
        pool["min_nodes"] = resource.least
    if resource.efa and resource.efa.enabled:
        pool["efa"] = True
        for each in types:
            if not load_catalogue()[each].instance_type.is_efa:
                done.lose(f"{asked.place}.Efa", "efa", f"{each} has no EFA interface")
    if _is_close(asked, done):
        pool["placement_group"] = True
    pool["labels"] = _labels(asked, types, done)
    return pool


def _image(queue: Queue, name: str, done: Translated) -> Yaml:
    """The queue's own, where the cluster has another one or none."""
    image = queue.own_image
    if image is None or image == done.file.get("image"):
        return {}
    path = ("pools", name, "image")
    done.gaps.append(Gap(path, f"{OTHER_SLURM} ({image})", image, is_open=False))
    return {"image": image}


def is_arm(old: Configuration) -> bool:
    """Whether nodes are arm64; then all are, and so is the head."""
    resources = [each for queue in old.queues for each in queue.compute_resources or ()]
    rows = [load_catalogue().get(name) for each in resources for name in each.types]
    return any(row and row.instance_type.arch == ARM for row in rows)


def _is_close(asked: _Asked, done: Translated) -> bool:
    """Whether nodes are in a placement group; the resource's own word counts before the queue's."""
    own = asked.resource.networking.placement_group if asked.resource.networking else None
    of_queue = asked.queue.networking.placement_group if asked.queue.networking else None
    group = own or of_queue or PlacementGroup()
    if group.enabled is False or not (group.enabled or group.named):
        return False
    place = asked.place if own else asked.queue_place
    if group.named and not done.has_lost(f"{place}.Networking.PlacementGroup"):
        means = f"gangs are in a group of the stack's own, not in {group.named}"
        done.lose(f"{place}.Networking.PlacementGroup", "placement-group", means)
    return True


def _labels(asked: _Asked, types: list[str], done: Translated) -> list[str]:
    """What jobs may say with --constraint there, beside a type's name, which is a feature here too.

    Source: ParallelCluster's cookbook, slurm_parallelcluster_<queue>_partition.conf, Feature=.
    """
    resource = asked.resource
    words = {
        "static": resource.least > 0,
        "dynamic": resource.most > resource.least,
        "efa": bool(resource.efa and resource.efa.enabled),
        "gpu": any(_has_gpus(each) for each in types),
    }
    own = [resource.name] if _is_label(resource.name) else []
    if not own:
        # Nodes of a family have its name for a feature anyway.
        if {resource.name} == {each.split(".")[0] for each in types}:
            return [word for word, is_borne in words.items() if is_borne]
        means = f"nodes have no feature {resource.name}: jobs with this --constraint are refused"
        done.lose(f"{asked.place}.Name", "without-harm", means, is_heavy=False)
    return [*own, *(word for word, is_borne in words.items() if is_borne and word not in own)]


def _has_gpus(name: str) -> bool:
    """Trainium and Inferentia are no GPUs there."""
    device = load_catalogue()[name].instance_type
    return device.gpus > 0 and device.gres == "gpu"


def _markets(asked: _Asked, types: list[str], done: Translated) -> list[str]:
    """Of a group ParallelCluster buys on demand what no reservation of it has room for."""
    market = MARKETS[asked.queue.capacity_type or "ONDEMAND"]
    target = asked.reservation
    place = f"{asked.place}.CapacityReservationTarget"
    if target.capacity_reservation_id and market != "spot":
        kind = "capacity-block" if market == "capacity-block" else "reserved"
        _reserve(asked, target.capacity_reservation_id, kind, next(iter(types), None), done)
        return [kind]
    group = target.capacity_reservation_resource_group_arn
    if market == "spot" and (target.capacity_reservation_id or group):
        done.lose(place, "without-harm", "spot instances are in no reservation", is_heavy=False)
    if group and market == "on-demand":
        groups: list[str] = done.file.setdefault("reservation_groups", [])
        if group not in groups:
            groups.append(group)
        return ["reserved", "on-demand"]
    if group and market == "capacity-block":
        means = f"{group} is not used: nodes are bought {_on_demand(asked)}"
        done.lose(place, "on-demand-instead", f"{means}; name its blocks one by one")
    elif market == "capacity-block":
        means = f"no capacity block is named: nodes are bought {_on_demand(asked)}"
        done.lose(f"{asked.place}.CapacityType", "on-demand-instead", means)
    return ["spot" if market == "spot" else "on-demand"]


def _on_demand(asked: _Asked) -> str:
    kept = asked.resource.least
    return f"on demand, and {kept} are kept all the time" if kept else "on demand"


def _reserve(
    asked: _Asked, id: str, kind: str, instance_type: str | None, done: Translated
) -> None:
    """ParallelCluster names a reservation by its id alone; EC2 knows the rest of it.

    It has room for all resources that name it, or ParallelCluster refuses the file
    (CapacityReservationSizeValidator).
    """
    entries: list[Yaml] = done.file.setdefault("reservations", [])
    if known := next((each for each in entries if each["id"] == id), None):
        known["count"] += asked.resource.most
        return
    index = str(len(entries))
    zone = asked.zones[0] if len(asked.zones) == 1 else None
    entry: Yaml = {"id": id, "kind": kind, "instance_type": instance_type, "zone": zone}
    if kind == "reserved":
        entry["targeted"] = True  # its launch templates name it, whatever it is
    entry |= {"count": asked.resource.most, "starts_at": None}
    stand_ins = {"instance_type": STAND_IN_TYPE, "zone": asked.stand_ins[0]}
    stand_ins["starts_at"] = STAND_IN_START
    if kind == "capacity-block":
        entry["ends_at"] = None
        stand_ins["ends_at"] = STAND_IN_END
    entries.append(entry)
    for key, stand_in in stand_ins.items():
        if entry[key] is None:
            path = ("reservations", index, key)
            done.gaps.append(
                Gap(path, f"see {asking.of_reservation(id)}, for its count too", stand_in)
            )


def _pool_name(queue: str, resource: str, taken: Container[str]) -> str:
    """At most 31 characters that a pool may have, a letter first, and no other pool or feature."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{queue}-{resource}".lower())
    name = name if name[0].isalpha() else f"p{name}"
    short = name[:28].rstrip("-")
    names = (name[:31].rstrip("-"), *(f"{short}-{number}" for number in range(2, 100)))
    return next(each for each in names if each not in taken and _is_label(each))


def _is_label(word: str) -> bool:
    try:
        _LABEL.validate_python(word)
    except ValidationError:
        return False
    return True


def _whole_cores(places: dict[str, str], done: Translated) -> None:
    """`places`: of what says so, by pool. A type has one count of CPUs in a cluster here."""
    made, asked = done.file["pools"], dict(places)
    while both := [
        (name, each)
        for name in asked
        for other in made.keys() - asked.keys()
        for each in sorted({*made[name]["instance_types"]} & {*made[other]["instance_types"]})
        if load_catalogue()[each].threads_per_core > 1
    ]:
        name, each = min(both)
        means = f"{each} has two threads of each core, as in another compute resource: a job that"
        done.lose(asked.pop(name), "threads", f"{means} wants N cores asks for 2 x N CPUs")
    for name in asked:
        made[name]["threads_per_core"] = 1


def _job_sizes(done: Translated) -> None:
    """Slurm takes a job as large as a pool, as long as slurm.conf has room for its placeholders."""
    made = done.file["pools"]
    groups: dict[str, int] = {}
    for pool in made.values():
        for each in pool["instance_types"]:
            size = pool.get("max_job_nodes", USUAL_JOB_NODES)
            groups[each] = max(groups.get(each, 0), size)
    if sum(groups.values()) <= MAX_PLACEHOLDERS:
        return
    most = max(1, MAX_PLACEHOLDERS // len(groups))
    for name, pool in made.items():
        size = min(most, pool["limits"]["nodes"])
        pool["max_job_nodes"] = size
        if size < pool["limits"]["nodes"]:
            means = f"Slurm refuses a job of more than {size} nodes, of {pool['limits']['nodes']}"
            done.lose(f"pools.{name}.max_job_nodes", "job-size", means)
