"""Rules across the parts of a cluster file.

They run on every part that is sound in itself, so that a mistake in one pool does not hide
the problems of the others. A part with a mistake of its own is left out, not guessed at.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.wire.arns import foreign_arns
from tidegate.wire.check_rules import CHECK_RULES
from tidegate.wire.data_repository_rules import DATA_REPOSITORY_RULES
from tidegate.wire.headroom_rules import HEADROOM_RULES
from tidegate.wire.image_rules import IMAGE_RULES
from tidegate.wire.job_role_rules import JOB_ROLE_RULES
from tidegate.wire.kept_rules import KEPT_RULES
from tidegate.wire.monitoring import remote_write_problems
from tidegate.wire.partition_rules import PARTITION_RULES
from tidegate.wire.parts import Parts, parts_of
from tidegate.wire.places import REGIONS, is_local_zone
from tidegate.wire.pool_models import LimitsModel, PoolModel
from tidegate.wire.prices import OnDemandPrice, on_demand_price, price_usd_per_hour
from tidegate.wire.problems import Place, Problem, and_, did_you_mean
from tidegate.wire.reservation_rules import RESERVATION_RULES
from tidegate.wire.savings_plan_model import bought_on_demand, plan_problems
from tidegate.wire.secrets import secrets_in
from tidegate.wire.selection import MIB_PER_GIB
from tidegate.wire.sense_rules import SENSE_RULES
from tidegate.wire.stopped_rules import STOPPED_RULES
from tidegate.wire.subnet_rules import SUBNET_RULES
from tidegate.wire.topology_rules import TOPOLOGY_RULES

# Every placeholder is a node that slurmctld walks in each pass.
MAX_PLACEHOLDERS = 250
MAX_SUMMANDS = 12


def problems_across(data: Mapping[str, object]) -> list[Problem]:
    """Everything that is wrong between the parts of a file."""
    parts = parts_of(data)
    found = [problem for rule in RULES for problem in rule(parts)]
    return [*found, *secrets_in(data), *foreign_arns(data, parts.region)]


def _partition_pools(parts: Parts) -> Iterator[Problem]:
    """Partitions name pools that exist, and every pool is in a partition."""
    for name, partition in parts.partitions.items():
        for index, pool in enumerate(partition.pools):
            if pool not in parts.all_pools:
                hint = did_you_mean(pool, parts.all_pools)
                yield Problem(("partitions", name, "pools", index), f"no pool named {pool}{hint}")
    if len(parts.partitions) < len(parts.all_partitions) or not parts.all_partitions:
        return
    used = {pool for partition in parts.partitions.values() for pool in partition.pools}
    for name in sorted(parts.all_pools - used):
        yield Problem(("pools", name), "no partition has this pool, so no job can reach it")


def _pre_warmed_pools(parts: Parts) -> Iterator[Problem]:
    """What is pre-warmed is a pool."""
    for index, each in enumerate(parts.schedules.pre_warm if parts.schedules else ()):
        for pool in each.nodes:
            if pool not in parts.all_pools:
                place = ("schedules", "pre_warm", index, "nodes", pool)
                yield Problem(place, f"no pool of this name{did_you_mean(pool, parts.all_pools)}")


def _named_partitions(parts: Parts) -> Iterator[Problem]:
    """What has a price of waiting, a rule of idle GPUs or advice of its own is a partition."""
    waiting = parts.waiting.by_partition if parts.waiting else ()
    ruled = parts.idle_gpus.by_partition if parts.idle_gpus else ()
    exempt = parts.idle_gpus.exempt.partitions if parts.idle_gpus else ()
    advice = parts.slurm.advice if parts.slurm else None
    advised = ((i, each.partition) for i, each in enumerate(advice.classes if advice else ()))
    named: list[tuple[tuple[str | int, ...], str]] = [
        *((("waiting", "by_partition", name), name) for name in waiting),
        *((("idle_gpus", "by_partition", name), name) for name in ruled),
        *((("idle_gpus", "exempt", "partitions", i), name) for i, name in enumerate(exempt)),
        *((("slurm", "advice", "classes", i, "partition"), name) for i, name in advised if name),
    ]
    for place, name in named:
        if name not in parts.all_partitions:
            hint = did_you_mean(name, parts.all_partitions)
            yield Problem(place, f"no partition of this name{hint}")


def _default_partition(parts: Parts) -> Iterator[Problem]:
    """One partition takes the jobs that name none."""
    defaults = [name for name, partition in parts.partitions.items() if partition.default]
    is_complete = len(parts.partitions) == len(parts.all_partitions)
    if len(defaults) > 1:
        yield Problem(("partitions",), f"only one may be the default, now {and_(defaults)} are")
    elif not defaults and is_complete and len(parts.partitions) > 1:
        yield Problem(("partitions",), "one of them must have default: true")


def _zones(parts: Parts) -> Iterator[Problem]:
    """Zones belong to the region and have a subnet."""
    subnets = parts.network.subnets if parts.network and parts.network.vpc else None
    places: dict[Place, str] = {("network", "subnets", zone): zone for zone in subnets or ()}
    if parts.head and parts.head.zone:
        places[("head", "zone")] = parts.head.zone
    for login, kind in parts.logins.items():
        if kind.zone:
            places[(*login, "zone")] = kind.zone
    for name, pool in parts.pools.items():
        for index, zone in enumerate(pool.zones):
            places[("pools", name, "zones", index)] = zone
    of_pools = [zone for place, zone in places.items() if place[0] == "pools"]
    is_beside = bool(of_pools) and all(map(is_local_zone, of_pools))
    if is_beside and parts.head and not parts.head.zone:  # nodes use its mount target
        text = "missing: all pools are in local zones, where EFS has no mount target"
        yield Problem(("head", "zone"), f"{text}; name a zone of the region's own")
    for place, zone in places.items():
        if parts.region and not _is_in_region(zone, parts.region):
            why = _one_region(zone) if place[0] == "pools" else ""
            yield Problem(place, f"{zone} is not a zone of {parts.region}{why}")
        elif subnets is not None and zone not in subnets:
            yield Problem(place, f"{zone} has no subnet in network.subnets")
        elif place[0] in ("head", "login") and is_local_zone(zone):
            yield Problem(place, f"{zone} is a local zone, where EFS has no mount target")
        elif parts.region and subnets is None and is_local_zone(zone):
            yield Problem(place, f"{zone} is a local zone: it needs a subnet in network.subnets")


def _existing(parts: Parts) -> Iterator[Problem]:
    """What exists is in a VPC that exists."""
    if not (parts.existing and parts.network) or parts.network.vpc:
        return
    for name in ("head", "file_system"):
        if getattr(parts.existing, name):
            yield Problem(("existing", name), "needs network.vpc, the VPC that it is in")


def _login(parts: Parts) -> Iterator[Problem]:
    """A login node is configured as the head that the deployment makes."""
    if parts.logins and parts.existing and parts.existing.head:
        text = "a head that was there before has login nodes of its own: leave login out"
        yield Problem(("login",), text)


def _monitoring(parts: Parts) -> Iterator[Problem]:
    """A head that is there already is left as it is."""
    if parts.monitoring and parts.monitoring.prometheus and parts.existing and parts.existing.head:
        text = (
            "existing.head is not changed: scrape it with a Prometheus of your own, as"
            " docs/monitoring.md says"
        )
        yield Problem(("monitoring", "prometheus"), text)
    if parts.monitoring and parts.region and parts.network:
        yield from remote_write_problems(parts.monitoring, parts.region, parts.network)


def _one_region(zone: str) -> str:
    """What to do instead, for who means it; nothing where AWS has no such region."""
    other = next((each for each in REGIONS if _is_in_region(zone, each)), "")
    return f"; for nodes in {other} see docs/second-region.md" if other else ""


def _is_in_region(zone: str, region: str) -> bool:
    """`us-east-1a` and the local zone `us-east-1-bos-1a` are in us-east-1."""
    rest = zone.removeprefix(region)
    return rest != zone and (len(rest) == 1 or rest.startswith("-"))


def _labels(parts: Parts) -> Iterator[Problem]:
    """A label that is also a pool's name would select both."""
    for name, pool in parts.pools.items():
        for index, label in enumerate(pool.labels):
            if label in parts.all_pools:
                text = f"{label} is the name of a pool, a feature that its nodes have anyway"
                yield Problem(("pools", name, "labels", index), text)


def _placeholders(parts: Parts) -> Iterator[Problem]:
    """slurm.conf gets a group of placeholders for each instance type; pools share it."""
    groups: dict[str, int] = {}
    for pool in parts.pools.values():
        for each in pool.selected:
            groups[each.name] = max(groups.get(each.name, 0), pool.max_job_nodes)
    total = sum(groups.values())
    if total > MAX_PLACEHOLDERS:
        summands = " + ".join(f"{count} {name}" for name, count in sorted(groups.items()))
        if len(groups) > MAX_SUMMANDS:
            summands = f"{len(groups)} instance types, the largest group has {max(groups.values())}"
        text = f"need {total} placeholders in slurm.conf, at most {MAX_PLACEHOLDERS} are possible"
        yield Problem(("pools",), f"{text}; lower max_job_nodes: {summands}")


def _prices(parts: Parts) -> Iterator[Problem]:
    """Every instance type and capacity type that a pool pays for has a price."""
    missing: dict[Place, list[str]] = {}
    for name, pool in parts.pools.items():
        for each in pool.selected:
            for market in pool.paid_markets:
                if _has_no_price(parts, each.name, market):
                    place: Place = ("prices_usd_per_hour", each.name, market.value)
                    missing.setdefault(place, []).append(name)
    for place, pools in missing.items():
        yield Problem(place, f"missing, used by pool {and_(pools)}")
    for name, prices in parts.prices.items():
        spot, on_demand = prices.get(Market.SPOT), prices.get(Market.ON_DEMAND)
        if spot is not None and on_demand is not None and spot > on_demand:
            text = f"{spot:g}, more than {on_demand:g} on demand: are they swapped?"
            yield Problem(("prices_usd_per_hour", name, "spot"), text)


def _has_no_price(parts: Parts, instance_type: str, market: Market) -> bool:
    is_unsound = instance_type in parts.all_priced and instance_type not in parts.prices
    return not is_unsound and _price(parts, instance_type, market) is None


def _price(parts: Parts, instance_type: str, market: Market) -> float | None:
    return price_usd_per_hour(
        parts.prices.get(instance_type, {}), instance_type, market, parts.region
    )


def _savings_plans(parts: Parts) -> Iterator[Problem]:
    """Each Savings Plan pays for something that some pool buys on demand."""
    if len(parts.pools) == len(parts.all_pools):
        types = bought_on_demand(parts.pools)
        yield from plan_problems(parts.savings_plans.items(), types, partial(_on_demand, parts))


def _on_demand(parts: Parts, name: str) -> OnDemandPrice | None:
    return on_demand_price(parts.prices.get(name, {}), name, parts.region, parts.discount)


def _limits(parts: Parts) -> Iterator[Problem]:
    """A pool whose smallest or cheapest node breaks a limit could never start anything."""
    for name, pool in parts.pools.items():
        yield from _too_small(("pools", name, "limits"), pool.limits, name, pool, parts)
        if parts.limits:
            yield from _too_small(("limits",), parts.limits, name, pool, parts)


def _too_small(
    place: Place, limits: LimitsModel, name: str, pool: PoolModel, parts: Parts
) -> Iterator[Problem]:
    for key, limit, unit in (
        ("gpus", limits.gpus, "GPUs"),
        ("vcpus", limits.vcpus, "vCPUs"),
        ("memory_gib", limits.memory_gib, "GiB"),
    ):
        size, instance_type = min((_size(each, key), each.name) for each in pool.selected)
        if limit is not None and size > limit:
            text = f"{limit:g}, but {instance_type}, the smallest of pool {name}, has {size:g}"
            yield Problem((*place, key), f"{text} {unit}: nothing could ever start")
    offers = [
        (price, each.name, market)
        for each in pool.selected
        for market in pool.paid_markets
        if (price := _price(parts, each.name, market)) is not None
    ]
    is_known = len(offers) == len(pool.selected) * len(pool.capacity_types)
    if limits.usd_per_hour is not None and is_known and min(offers)[0] > limits.usd_per_hour:
        price, instance_type, market = min(offers)
        text = f"{limits.usd_per_hour:g}, but {instance_type} {market}, the cheapest of pool"
        yield Problem(
            (*place, "usd_per_hour"),
            f"{text} {name}, costs {price:g} USD per hour: nothing could ever start",
        )


def _security_groups(parts: Parts) -> Iterator[Problem]:
    """A group is of one VPC; nobody can have one of the VPC that the stack is about to make."""
    if parts.network is None or parts.network.vpc:
        return
    text = "needs network.vpc: the VPC that the groups are in"
    if parts.head and parts.head.security_groups:
        yield Problem(("head", "security_groups"), text)
    for place, kind in parts.logins.items():
        if kind.security_groups:
            yield Problem((*place, "security_groups"), text)
    for name, pool in parts.pools.items():
        if pool.security_groups:
            yield Problem(("pools", name, "security_groups"), text)


def _containers(parts: Parts) -> Iterator[Problem]:
    """What tasks hear of by Slurm's TaskProlog alone. pyxis enters the container before that runs,
    and a task whose TaskProlog is not in there fails: its issues 83 and 163.
    """
    if not parts.containers:
        if parts.has_container_cache:
            yield Problem(("container_cache",), "needs containers: pyxis")
        return
    text = "needs Slurm's TaskProlog, with which tasks in containers of pyxis fail"
    for name, pool in parts.pools.items():
        for key in ("mig", "mig_profiles", "mps", "mps_per_gpu"):
            if getattr(pool.gpu, key):
                yield Problem(("pools", name, "gpu", key), text)


def _size(each: InstanceType, key: str) -> float:
    sizes = {"gpus": each.gpus, "vcpus": each.vcpus, "memory_gib": each.memory_mib / MIB_PER_GIB}
    return sizes[key]


RULES = (
    *(_partition_pools, _default_partition, _pre_warmed_pools, _named_partitions, _zones),
    *(_existing, _login, _monitoring, _labels, _placeholders, *CHECK_RULES, *IMAGE_RULES),
    *(_prices, _savings_plans, *RESERVATION_RULES, *KEPT_RULES, _limits),
    *(_security_groups, _containers, *JOB_ROLE_RULES, *PARTITION_RULES),
    *HEADROOM_RULES,
    *STOPPED_RULES,
    *SUBNET_RULES,
    *TOPOLOGY_RULES,
    *SENSE_RULES,
    *DATA_REPOSITORY_RULES,
)
