"""What Slurm prints of reservations, and of the nodes that jobs exclude."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate.adapters.slurm_text import ParseError, instant_s, number, value, words
from tidegate.core.model.slurm import Job, NodeReservation

# What `Exclusions` reads: the base id of an array, or the job's own, and its list.
EXCLUDED_FORMAT = "%F|%x"

_CPUS = re.compile(r"(?:^|,)cpu=([0-9]{1,15})(?=,|$)", re.ASCII)
_ROW = re.compile(r"([0-9]{1,12})\|(\S+)", re.ASCII)
# Flags with a value: PURGE_COMP=00:10:00.
_FLAG = re.compile(r"[A-Z_]+")


def records(text: str) -> tuple[Mapping[str, str], ...]:
    """The fields of each reservation in `scontrol show reservation -o`; () when there is none."""
    lines = [line for line in text.split("\n") if line.startswith("ReservationName=")]
    if not lines and text.strip() and not text.startswith("No reservations in the system"):
        raise ParseError(f"scontrol show reservation printed none but {text[:80]!r}.")
    return tuple(dict(p.split("=", 1) for p in line.split() if "=" in p) for line in lines)


def reservation(
    found: Mapping[str, str], nodes: tuple[str, ...], ours: frozenset[str]
) -> NodeReservation:
    """`nodes`: the names in its node list, `ours`: those of Tidegate's nodes."""
    cpus = _CPUS.search(found.get("TRES", ""))
    try:
        return NodeReservation(
            name=found["ReservationName"],
            nodes=tuple(name for name in nodes if name in ours),
            starts_at_s=instant_s(found["StartTime"]),
            ends_at_s=instant_s(found["EndTime"]),
            flags=tuple(flag[0] for word in words(found["Flags"]) if (flag := _FLAG.match(word))),
            users=words(found.get("Users", "")),
            accounts=words(found.get("Accounts", "")),
            partition=value(found.get("PartitionName", "")),
            cpus=number(cpus[1]) if cpus else None,
        )
    except KeyError as error:
        raise ParseError(f"scontrol show reservation printed no {error}.") from error


@dataclass(slots=True)
class Exclusions:
    """The nodes that pending jobs exclude (`-x`), asked for when a job is new.

    22.05 has no field for them beside the others. What `scontrol update` changes later is not
    seen: at worst a node is bought where one would have done. `read`: what `squeue` prints,
    `unfold`: the names in each folded list.
    """

    read: Callable[[], str]
    unfold: Callable[[Sequence[str]], Mapping[str, tuple[str, ...]]]
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def with_excluded(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """The jobs, with the nodes that each excludes."""
        pending = {_key(job) for job in jobs if job.is_pending}
        if not pending <= self._known.keys():
            lists = dict(_ROW.findall(self.read()))
            folded = self.unfold([text for text in lists.values() if "[" in text])
            found = {key: folded.get(text) or words(text) for key, text in lists.items()}
            self._known |= {key: found.get(key, ()) for key in pending}
        if len(self._known) > 2 * len(pending) + 100:
            self._known = {key: self._known[key] for key in pending}
        if not any(self._known.values()):
            return tuple(jobs)
        return tuple(
            replace(job, excluded_nodes=names)
            if job.is_pending and (names := self._known.get(_key(job), ()))
            else job
            for job in jobs
        )


def _key(job: Job) -> str:
    """Tasks of an array exclude the same nodes."""
    return job.array_job_id or job.job_id
