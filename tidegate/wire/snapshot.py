"""A snapshot as JSON: everything the planner may know beside the cluster file.

`tidegate plan --live --save FILE` writes one, `tidegate plan --snapshot FILE` reads one, and
both give the same plan. Times are epoch seconds.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, ValidationError, create_model

from tidegate.core.model.calendar import ALWAYS_UP
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import OVERRIDES_MAX, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Node, Reading
from tidegate.core.model.snapshot import Epoch, Snapshot
from tidegate.core.offers.market import at_market
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.described import Describer, as_core, as_json
from tidegate.wire.problems import Place, Problem, did_you_mean, problems_of, refusal, shown
from tidegate.wire.section import PositiveUsd, Section

VERSION: Literal[1] = 1
DRY_RUN = Epoch("dry-run", 0)

_make = Describer()
_OFFERING: Any = _make.model(Offering)

Instant = Annotated[float, Field(ge=0)]
# Source: EC2 user guide, "Quotas for EC2 Fleet": target capacity per fleet.
FLEET_NODES_MAX = 10_000


class PriceModel(Section):
    """A price that counts instead of the cluster file's."""

    offering: _OFFERING = Field(description="instance type, zone and market")
    usd_per_hour: PositiveUsd = Field(description="more than 0")


class HazardModel(Section):
    """How often EC2 interrupts a spot offering."""

    offering: _OFFERING = Field(description="instance type, zone and market")
    per_hour: Instant = Field(description="interruptions per hour")


class MarketModel(Section):
    """What was seen of the market; for all else the cluster file counts."""

    prices: tuple[PriceModel, ...] = Field(default=(), description="prices seen")
    hazards: tuple[HazardModel, ...] = Field(default=(), description="interruptions seen")


class _SnapshotBase(Section):
    """Everything the planner may know, beside the cluster file."""

    version: Literal[1] = Field(default=VERSION, description="of this format")
    market: MarketModel = Field(
        default_factory=MarketModel, description="prices and hazards beside the cluster file's"
    )


# Every field of the core's snapshot but these two, which are not as JSON has them.
_FIELDS: Mapping[str, Any] = {
    name: hint
    for name, hint in get_type_hints(Snapshot).items()
    if name not in ("cluster", "digest_age_s")
}
_DEFAULTS: Mapping[str, object] = {"epoch": DRY_RUN, "digest": None, "wanted": ALWAYS_UP}

SnapshotModel: Any = create_model(
    "Snapshot",
    __base__=_SnapshotBase,
    __doc__=_SnapshotBase.__doc__,
    digest_age_s=(
        Instant | None,
        Field(default=0.0, description="how old the digest is; null: the head was never heard"),
    ),
    **_make.fields(Snapshot, only=_FIELDS, defaults=_DEFAULTS),
)


@frozen
class ReadSnapshot:
    """A snapshot, and what was read on the safe side because nobody knows it."""

    snapshot: Snapshot
    notes: tuple[str, ...] = ()


def encode_snapshot(snapshot: Snapshot) -> str:
    """The snapshot without its cluster, which `decode_snapshot` gets from the cluster file.

    Prices and hazards are the cluster's own, so that a change of the file changes no plan.
    """
    cluster = snapshot.cluster
    data = {
        "version": VERSION,
        "digest_age_s": snapshot.digest_age_s if math.isfinite(snapshot.digest_age_s) else None,
        **{name: as_json(getattr(snapshot, name)) for name in _FIELDS},
        "market": {
            "prices": [
                {"offering": as_json(offering), "usd_per_hour": usd}
                for offering, usd in cluster.prices.items()
                if not offering.market.is_prepaid
            ],
            "hazards": [
                {"offering": as_json(offering), "per_hour": per_hour}
                for offering, per_hour in cluster.hazards.items()
            ],
        },
    }
    return json.dumps(data, indent=1, allow_nan=False)


def decode_snapshot(text: str, cluster: Cluster, name: str) -> ReadSnapshot:
    """Errors: BadConfig, whose message lists every problem with its path in `name`."""
    try:
        model = SnapshotModel.model_validate_json(text, strict=True)
    except ValidationError as error:
        problems = problems_of(error, SnapshotModel)
        raise refusal(name, [_told(each) for each in problems]) from error
    if broken := list(_broken_launches(model)):
        raise refusal(name, broken)
    snapshot = _snapshot(model, cluster)
    if found := list(_problems(snapshot, model)):
        raise refusal(name, found)
    return ReadSnapshot(snapshot, tuple(_notes(snapshot)))


def _told(problem: Problem) -> Problem:
    return problem if problem.place else Problem((), f"is no snapshot: {problem.text}")


def _snapshot(model: Any, cluster: Cluster) -> Snapshot:
    prices = {as_core(Offering, p.offering): p.usd_per_hour for p in model.market.prices}
    hazards = {as_core(Offering, h.offering): h.per_hour for h in model.market.hazards}
    age_s = math.inf if model.digest_age_s is None else model.digest_age_s
    given = replace(
        cluster,
        prices={**cluster.prices, **prices},
        hazards={**cluster.hazards, **hazards},
    )
    seen = {name: as_core(hint, getattr(model, name)) for name, hint in _FIELDS.items()}
    return Snapshot(
        cluster=at_market(given, seen["seen_market"], seen["now_s"]), digest_age_s=age_s, **seen
    )


def _broken_launches(model: Any) -> Iterator[Problem]:
    """What no launch of ours can be."""
    for number, record in enumerate(model.launches):
        at: Place = ("launches", number)
        if record.launch.count > FLEET_NODES_MAX:
            text = f"must be 0 to {FLEET_NODES_MAX}, what a fleet may have"
            yield Problem((*at, "launch", "count"), text)
        if not record.launch.offerings:
            yield Problem((*at, "launch", "offerings"), "must name at least one offering")
        if not 0 < len(record.request.overrides) <= OVERRIDES_MAX:
            text = f"must be 1 to {OVERRIDES_MAX}, what a fleet request may have"
            yield Problem((*at, "request", "overrides"), text)
        if record.request.min_count > record.request.count:
            text = f"must be at most the count, {record.request.count}"
            yield Problem((*at, "request", "min_count"), text)


def _problems(snapshot: Snapshot, model: Any) -> Iterator[Problem]:
    digest, cluster = snapshot.digest, snapshot.cluster
    if digest and digest.cluster != cluster.name:
        text = f"{shown(digest.cluster)}, but the cluster file describes {cluster.name}"
        yield Problem(("digest", "cluster"), text)
    reading = digest.reading if digest else Reading("", (), ())
    yield from _twice(("digest", "reading", "jobs"), "job_id", (j.job_id for j in reading.jobs))
    yield from _twice(("digest", "reading", "nodes"), "name", (n.name for n in reading.nodes))
    yield from _twice(("instances",), "instance_id", (i.instance_id for i in snapshot.instances))
    yield from _twice(("nodes",), "instance_id", (n.instance_id for n in snapshot.nodes))
    launches = (each.launch.launch_id for each in snapshot.launches)
    yield from _twice(("launches",), "launch", launches)
    rests = (" ".join(filter(None, map(str, r.key))) for r in snapshot.resting)
    yield from _twice(("resting",), "offering", rests)
    for index, node in enumerate(reading.nodes):
        yield from _overfull(("digest", "reading", "nodes", index), node)
    for place, offering in _offerings(snapshot, model):
        if offering.instance_type not in load_catalogue():
            hint = did_you_mean(offering.instance_type, load_catalogue())
            text = f"{shown(offering.instance_type)} is not a known instance type{hint}"
            yield Problem((*place, "offering", "instance_type"), text)


def _twice(place: Place, key: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(place, f"{key} {shown(name)} is there {count} times")


def _overfull(place: Place, node: Node) -> Iterator[Problem]:
    for key, used, has in (
        ("cpus_alloc", node.cpus_alloc, node.cpus),
        ("memory_alloc_mib", node.memory_alloc_mib, node.memory_mib),
        ("gpus_alloc", node.gpus_alloc, node.gpus),
    ):
        if used > has:
            yield Problem((*place, key), f"{used}, but the node has {has}")


def _offerings(snapshot: Snapshot, model: Any) -> Iterator[tuple[Place, Offering]]:
    for index, instance in enumerate(snapshot.instances):
        yield ("instances", index), instance.offering
    for index, record in enumerate(snapshot.nodes):
        yield ("nodes", index), record.offering
    for index, resting in enumerate(snapshot.resting):
        yield ("resting", index), resting.offering
    for index, price in enumerate(model.market.prices):
        yield ("market", "prices", index), as_core(Offering, price.offering)


def _notes(snapshot: Snapshot) -> Iterator[str]:
    """What is not an error, but not known either: read so that nothing is lost by it."""
    for node in snapshot.digest.reading.nodes if snapshot.digest else ():
        if node.state.strange:
            words = ", ".join(sorted(node.state.strange))
            yield f"node {node.name} has the state {words}, never seen: left alone, gets no job"
    known = {each.name for pool in snapshot.cluster.pools for each in pool.instance_types}
    for instance in snapshot.instances:
        if instance.offering.instance_type not in known:
            kind = instance.offering.instance_type
            yield f"{instance.instance_id} is a {kind}, which no pool has: it counts as it is"
