"""What is known to be wrong with a cluster's Slurm, from `tidegate/data/slurm_faults.yaml`."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.wire.compat_facts import Finding
from tidegate.wire.config import ClusterFile
from tidegate.wire.own_table import own_table

CHANGELOG = "SchedMD's CHANGELOG"


@frozen
class SlurmFault:
    """A fault of the patches `first` to `until` - 1 of a release; None: of all from `first` on.

    `verdict`: "handled" by Tidegate, "warn" or "refuse". `when`: what a cluster that can meet it
    has, accounting, prometheus or shards; "" for every one.
    """

    name: str
    release: str
    first: int
    until: int | None
    verdict: str
    what: str
    advice: str
    source: str = CHANGELOG
    when: str = ""

    def has(self, patch: int) -> bool:
        return self.first <= patch and (self.until is None or patch < self.until)


def slurm_findings(file: ClusterFile) -> tuple[Finding, ...]:
    """What speaks against the file's Slurm: of the system's own by its patch, else in one line."""
    has = _parts(file)
    told = [
        each
        for each in faults()
        if each.release == file.slurm.version
        and each.verdict != "handled"
        and (not each.when or each.when in has)
    ]
    patch = _own_patch(file)
    return tuple(_of_patch(told, patch) if patch is not None else _of_release(told))


def _parts(file: ClusterFile) -> set[str]:
    found = {"accounting"} if file.slurm.accounting else set()
    shares = any(t.shards_per_gpu for pool in file.cluster.pools for t in pool.instance_types)
    found |= {"prometheus"} if file.monitoring.prometheus else set()
    return found | ({"shards"} if shares else set())


@cache
def faults() -> tuple[SlurmFault, ...]:
    """All that we know of; read once per process."""
    return tuple(
        SlurmFault(
            name=row["id"],
            release=row["release"],
            first=row["from"],
            until=row["until"],
            verdict=row["verdict"],
            what=row["what"],
            advice=row["advice"],
            source=row.get("source", CHANGELOG),
            when=row.get("when", ""),
        )
        for row in _load()["faults"]
    )


@cache
def _load() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = own_table("slurm_faults.yaml")
    return loaded


def _own_patch(file: ClusterFile) -> int | None:
    """Of the Slurm that the nodes' system has itself; None where packages are somebody else's."""
    own = _load()["patches"].get(file.os, "")
    if file.image_id or file.os in file.slurm.repositories:
        return None
    release, _, patch = own.rpartition(".")
    return int(patch) if release == file.slurm.version else None


def _of_patch(told: list[SlurmFault], patch: int) -> Iterator[Finding]:
    for each in told:
        if each.has(patch):
            place = f"slurm.version: {each.release}.{patch}"
            text = f"{each.what}; {each.advice}"
            yield Finding("R21", each.verdict == "refuse", place, text, each.source)


def _of_release(told: list[SlurmFault]) -> Iterator[Finding]:
    """Nobody knows which patch a repository or an image has."""
    mended = [each for each in told if each.until is not None]
    if mended:
        release, ends = mended[0].release, [each.until for each in mended if each.until is not None]
        list_ = "; ".join(f"{each.what} (before .{each.until})" for each in mended)
        text = f"take {release}.{max(ends)} or newer, older ones have faults: {list_}"
        yield Finding("R21", False, f"slurm.version: {release}", text, CHANGELOG)
    for each in told:
        if each.until is None:
            text = f"{each.what}; {each.advice}"
            yield Finding("R21", False, f"slurm.version: {each.release}", text, each.source)
