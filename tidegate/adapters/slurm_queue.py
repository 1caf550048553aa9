"""squeue's output as core jobs: rows that nobody can forge, arrays, and one shape per node.

Pure. Whoever calls squeue draws a random separator per call, so that a comment or an account
with newlines and bars in it stays one field. Verified on Slurm 22.05 and 24.11.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tidegate.adapters.slurm_shape import REQUEST_FIELDS, Request, Unreadable, read_request
from tidegate.adapters.slurm_text import (
    ParseError,
    asked_licences,
    duration_s,
    instant_s,
    number,
    value,
    words,
)
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import WAITING_STATES, Job, Shape

# `-O` names; both versions know them all. Comment is last: it is the user's own text.
FIELDS = (
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "State",
    "Partition",
    "Feature",
    "tres-per-node",
    "tres-per-job",
    "tres-per-task",
    "tres-per-socket",
    "cpus-per-task",
    "cpus-per-tres",
    "mem-per-tres",
    "MinCPUs",
    "MinMemory",
    "NumNodes",
    "NumTasks",
    "NumCPUs",
    "NTPerNode",
    "tres-alloc",
    "OverSubscribe",
    "Reason",
    "Dependency",
    "PriorityLong",
    "TimeLimit",
    "UserName",
    "Account",
    "QOS",
    "Reservation",
    "Requeue",
    "NodeList",
    "ReqNodes",
    "Licenses",
    "MinTime",
    "StartTime",
    "EligibleTime",
    "Deadline",
    "HetJobID",
    "Comment",
    "RestartCnt",
    "BatchFlag",
)

type Row = Mapping[str, str]

# Of --exclusive: what 26.05 says in its own field, and earlier ones said in OverSubscribe.
_OLDER_WORDS = {"NO": "OK", "NODE": "NO"}

_HOLDS_THROTTLE = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"})
_INDEX_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", re.ASCII)
_ID = re.compile(r"[0-9]{1,12}", re.ASCII)


def output_format(separator: str, version: str = "") -> str:
    """The argument of `squeue -O`: every field is followed by the separator."""
    names = _newer(FIELDS) if says_exclusive(version) else FIELDS
    return ",".join(f"{name}:{separator}" for name in names)


def _newer(names: Iterable[str]) -> list[str]:
    return ["Exclusive" if name == "OverSubscribe" else name for name in names]


def says_exclusive(version: str) -> bool:
    """From 26.05 on OverSubscribe tells nothing of --exclusive: it says NO of nearly every job."""
    year, _, rest = version.partition(".")
    return year.isdecimal() and (int(year), rest[:2]) >= (26, "05")


def rows(text: str, separator: str, version: str = "") -> tuple[Row, ...]:
    """The rows of squeue's output; a row ends after its last field's separator.

    `version`: of who was asked; what newer ones say of --exclusive stands in the older words.
    """
    pieces = text.split(separator)
    if pieces[-1].strip() or (len(pieces) - 1) % len(FIELDS):
        raise ParseError(
            f"squeue printed {len(pieces) - 1} fields, which are not whole rows of {len(FIELDS)}."
        )
    starts = range(0, len(pieces) - 1, len(FIELDS))
    found = (_row(pieces[start : start + len(FIELDS)]) for start in starts)
    return tuple(map(_in_older_words, found) if says_exclusive(version) else found)


def _in_older_words(row: Row) -> Row:
    said = row["OverSubscribe"]
    return {**row, "OverSubscribe": _OLDER_WORDS.get(said, said)}


def _row(pieces: Sequence[str]) -> Row:
    row = dict(zip(FIELDS, pieces, strict=True))
    for name in ("JobID", "ArrayJobID"):
        # Every row but the first begins with the newline that ended the one before.
        row[name] = row[name].lstrip("\n")
    if not _ID.fullmatch(row["JobID"]) or not _ID.fullmatch(row["ArrayJobID"]):
        raise ParseError(f"squeue printed {row['JobID'][:40]!r} as a job id.")
    return row


def hostlists(found: Iterable[Row]) -> tuple[str, ...]:
    """The node lists that Slurm has folded (`i-0[1-3]`); only Slurm itself unfolds them."""
    lists = {row[name] for row in found for name in ("NodeList", "ReqNodes")}
    return tuple(sorted(text for text in lists if "[" in text))


def unclear_memory(found: Iterable[Row]) -> tuple[str, ...]:
    """The jobs whose row leaves open whether memory is per CPU or per node (22.05)."""
    asked = (row for row in found if value(row["cpus-per-tres"]))
    return tuple(row["JobID"] for row in asked if _request(row).is_memory_unclear)


def jobs(
    found: Sequence[Row],
    unfolded: Mapping[str, tuple[str, ...]],
    memory_per_cpu: Mapping[str, bool],
) -> tuple[Job, ...]:
    """The rows as jobs, in squeue's order.

    `unfolded`: the names in each of `hostlists`. `memory_per_cpu`: for `unclear_memory`,
    by job id. A row that cannot be read exactly is a job with a sentence in `unreadable`.
    """
    counts = _array_counts(found)
    return tuple(_job(row, counts, unfolded, memory_per_cpu) for row in found)


@frozen
class _Outcome:
    request: Request | None
    problem: str

    @property
    def is_memory_unclear(self) -> bool:
        return self.request is not None and self.request.is_memory_unclear


def _request(row: Row, is_memory_per_cpu: bool | None = None) -> _Outcome:
    return _request_of(tuple(row[name] for name in REQUEST_FIELDS), is_memory_per_cpu)


# Most jobs of a long queue ask for the same few shapes: this halves the time of a look.
@lru_cache(maxsize=4_096)
def _request_of(fields: tuple[str, ...], is_memory_per_cpu: bool | None) -> _Outcome:
    try:
        row = dict(zip(REQUEST_FIELDS, fields, strict=True))
        return _Outcome(read_request(row, is_memory_per_cpu), "")
    except (Unreadable, ParseError) as error:
        return _Outcome(None, str(error))


def _job(
    row: Row,
    counts: Mapping[str, int | None],
    unfolded: Mapping[str, tuple[str, ...]],
    memory_per_cpu: Mapping[str, bool],
) -> Job:
    outcome = _request(row, memory_per_cpu.get(row["JobID"]))
    count = counts.get(row["JobID"], 1)
    problem = outcome.problem
    if outcome.is_memory_unclear:
        problem = (
            "asks for CPUs per GPU (--cpus-per-gpu), and Slurm does not say whether its memory "
            "is per CPU or per node; give --mem-per-gpu"
        )
    if count is None:
        problem = "is an array whose list of tasks Slurm did not print in full"
    return Job(
        job_id=_job_id(row),
        state=row["State"],
        partitions=words(row["Partition"]),
        nodes=outcome.request.nodes if outcome.request else 1,
        shape=outcome.request.shape if outcome.request else Shape(),
        user=row["UserName"],
        count=1 if count is None else count,
        array_job_id=row["ArrayJobID"] if value(row["ArrayTaskID"]) else "",
        raw_id=row["JobID"] if _ID.fullmatch(row["ArrayTaskID"]) else "",
        reason=_reason(row),
        priority=_or(row["PriorityLong"], 0),
        constraint=value(row["Feature"]),
        account=value(row["Account"]),
        qos=value(row["QOS"]),
        time_limit_s=_time_limit(row["TimeLimit"]),
        comment=value(row["Comment"]),
        node_names=_names(row["NodeList"], unfolded),
        required_nodes=_names(row["ReqNodes"], unfolded),
        # Of salloc and srun it is what slurm.conf says, and Slurm refuses to requeue them.
        is_requeueable=row["Requeue"] != "0" and row["BatchFlag"] != "0",
        restarts=_or(row["RestartCnt"], 0),
        unreadable=problem if row["State"] in WAITING_STATES else "",
        spreads=outcome.request.spreads if outcome.request else (),
        licences=() if "|" in row["Licenses"] else asked_licences(row["Licenses"]),
        licence_choices=asked_licences(row["Licenses"]) if "|" in row["Licenses"] else (),
        time_min_s=_time_limit(row["MinTime"]) or None,
        deadline_s=_instant(row["Deadline"]),
        reservation=value(row["Reservation"]),
        het_job_id=value(row["HetJobID"]) if _ID.fullmatch(row["HetJobID"]) else "",
        # A pending job's StartTime is the backfill scheduler's guess.
        begins_at_s=_instant(row["EligibleTime"]) if row["State"] in WAITING_STATES else None,
        started_at_s=None if row["State"] in WAITING_STATES else _instant(row["StartTime"]),
    )


def _reason(row: Row) -> str:
    """Slurm says Dependency only once a pass has looked at the job: from its submission until then,
    and after each change of it, it says what it says of jobs that wait for nodes; 23.11.4 says
    InvalidAccount of any job where there are no accounts.

    Source: docs/real-slurm.md, "A job that was just submitted or changed".
    """
    said = value(row["Reason"])
    depends = row["State"] in WAITING_STATES and value(row["Dependency"])
    is_open = said == "InvalidAccount" or not held_because(said)
    return "Dependency" if depends and is_open else said


def _job_id(row: Row) -> str:
    task = row["ArrayTaskID"]
    return f"{row['ArrayJobID']}_{task}" if _ID.fullmatch(task) else row["JobID"]


def _array_counts(found: Sequence[Row]) -> dict[str, int | None]:
    """Job id -> tasks that may start now, for the pending rows of arrays with a row for the rest.

    What the tasks that run leave of the throttle (`%4`) goes to tasks that were requeued, which
    have rows of their own, then to the rest; None: its tasks were not printed in full.
    """
    running = Counter(row["ArrayJobID"] for row in found if row["State"] in _HOLDS_THROTTLE)
    rests = {row["ArrayJobID"]: row for row in found if _is_rest(row)}
    left = {array: _throttle(row, running[array]) for array, row in rests.items()}
    counts: dict[str, int | None] = {}
    for row in found:
        allowed = left.get(row["ArrayJobID"])
        if row["State"] in WAITING_STATES and not _is_rest(row) and allowed is not None:
            counts[row["JobID"]] = min(allowed, 1)
            left[row["ArrayJobID"]] = max(allowed - 1, 0)
    return counts | {row["JobID"]: _startable(row, left[array]) for array, row in rests.items()}


def _is_rest(row: Row) -> bool:
    task = value(row["ArrayTaskID"])
    return bool(task) and not _ID.fullmatch(task)


def _throttle(row: Row, running: int) -> int | None:
    """How many more tasks may run at once; None: any number, or it cannot be read."""
    throttle = row["ArrayTaskID"].partition("%")[2]
    is_limited = _ID.fullmatch(throttle) and throttle != "0"
    return max(0, int(throttle) - running) if is_limited else None


def _startable(row: Row, allowed: int | None) -> int | None:
    indices, _, throttle = row["ArrayTaskID"].partition("%")
    remaining = _count_indices(indices)
    if remaining is None or (allowed is None and throttle not in ("", "0")):
        return None
    if row["Reason"].startswith("JobArrayTaskLimit"):
        return 0
    return remaining if allowed is None else min(remaining, allowed)


def _count_indices(text: str) -> int | None:
    """How many tasks `1,3,10-20:2` names; None when the list is cut (`...`) or unknown."""
    total = 0
    for part in text.split(","):
        found = _INDEX_RANGE.fullmatch(part)
        if found is None:
            return None
        first, last, step = found.groups()
        if last is None:
            total += 1
        elif int(last) < int(first) or step == "0":
            return None
        else:
            total += (int(last) - int(first)) // int(step or 1) + 1
    return total


def _names(text: str, unfolded: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return unfolded.get(text, ()) if "[" in text else words(text)


# Jobs of a long queue share their times and limits.
@lru_cache(maxsize=4_096)
def _time_limit(text: str) -> float | None:
    try:
        return duration_s(text)
    except ParseError:
        return None


@lru_cache(maxsize=4_096)
def _instant(text: str) -> float | None:
    try:
        return instant_s(text) or None
    except ParseError:
        return None


def _or(text: str, default: int) -> int:
    try:
        return number(text)
    except ParseError:
        return default
