"""The log of decisions as events, one line each, by job, node or pool."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidegate.core.frozen import frozen
from tidegate.core.pool import Cluster

# An instance id or a job id: a number within neither.
WORD = re.compile(r"[\w+-]+(?:\.[\w+-]+)*")


@frozen
class Happened:
    """One thing that a look did or met. `kind`: decision, launched, refused, ended, trouble."""

    at_s: float
    look_id: str
    kind: str
    text: str
    pools: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


def happened(records: Iterable[Mapping[str, Any]], cluster: Cluster) -> Iterator[Happened]:
    """The events of stored looks, in their order; records of the version before are read too."""
    for record in records:
        at_s, look_id = float(record["at_s"]), str(record["look_id"])
        for part in record["rounds"]:
            plan_id = str(part["plan_id"] if "plan_id" in part else part["epoch"])
            for kind, text, pools, jobs in _round(part, cluster):
                yield Happened(at_s, plan_id, kind, text, pools, jobs)
        if record["trouble"]:
            yield Happened(at_s, look_id, "trouble", str(record["trouble"]))


type Entry = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def _round(part: Mapping[str, Any], cluster: Cluster) -> Iterator[Entry]:
    names = {pool.name for pool in cluster.pools}
    for text in part["decisions"]:
        pools = tuple(name for name in re.findall(r"pool (\S+)", text) if name in names)
        jobs = re.search(r" for job ([^:]*?)(?:, all or none)?:", text)
        yield "decision", text, pools, tuple(WORD.findall(jobs[1])) if jobs else ()
    for one in part["launched"]:
        text = f"EC2 gave {one['instance_id']} {one['offering']}"
        yield "launched", text, (str(one["pool"]),), tuple(one["jobs"])
    for one in part["refused"]:
        text = f"EC2 refused {one['offering']}: {one['code']}: {one['message']}"
        yield "refused", text, _sold_by(one["offering"], cluster), ()
    for name in part["ended"]:
        yield "ended", f"terminated {name}", (), ()
    for text in part["trouble"]:
        yield "trouble", text, (), ()


def _sold_by(offering: str, cluster: Cluster) -> tuple[str, ...]:
    return tuple(
        pool.name
        for pool in cluster.pools
        if any(str(each) == offering for _, each in pool.offerings())
    )


def is_about(event: Happened, *, job: str = "", node: str = "", pool: str = "") -> bool:
    """Whether it concerns each of those that are given; trouble concerns everybody."""
    if event.kind == "trouble":
        return True
    words = WORD.findall(event.text)
    return (
        (not job or job in event.jobs or job in _jobs_named(event.text))
        and (not node or node in words)
        and (not pool or pool in event.pools)
    )


def _jobs_named(text: str) -> list[str]:
    """Those of orders about jobs: `requeue 7, 8: ...`."""
    found = re.match(r"(?:requeue|signal|comment) ([^:]*):", text)
    return WORD.findall(found[1]) if found else []
