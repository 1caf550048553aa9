"""What Slurm's commands print, as core values: numbers, times, nodes, accounting limits.

Pure: text in, values out. Every function gives a value or raises ParseError, whatever the text.
The queue is read in `slurm_queue`. Verified on samples of Slurm 22.05 and 24.11.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from tidegate.core.errors import SlurmUnavailable
from tidegate.core.slurm import Association, Node, NodeState

UNIT_FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
MIB = 1024**2
NO_VALUES = frozenset({"", "N/A", "(null)", "None", "NONE", "Unknown", "NOT_SET", "INVALID"})
NO_LIMITS = frozenset({"UNLIMITED", "Partition_Limit"})

_NUMBER = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?([KMGTP]?)", re.ASCII)
_TIME = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,9}(?::[0-9]{1,4}){0,2})", re.ASCII)
_NODE_GRES = re.compile(r"gpu(?::([A-Za-z][^:,()=]*))?:([0-9]{1,9})", re.ASCII)
_REASON = re.compile(r" Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?(?: Extra=.*)?(?: Comment=.*)?$")
_GPU_LIMIT = re.compile(r"gres/gpu(?::([^=,]+))?=([0-9]{1,15})(?:\(|,|$)", re.ASCII)
_ASSOCIATION = re.compile(r"ClusterName=\S* Account=(\S+) UserName=([^\s(]*)\S* Partition=(\S*)")
_PARENT = re.compile(r"\s+ParentAccount=([^\s(]+)")
_QOS = re.compile(r"QOS=([^\s(]+)\([0-9]+\)")


class ParseError(SlurmUnavailable):
    """Slurm answered something this code cannot read; for the caller as good as no answer."""


def number(text: str) -> int:
    """The count that Slurm prints as `12` or `1K` (1,024)."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ParseError(f"Slurm printed {text[:60]!r} where a number was expected.")
    whole, decimals, unit = found.groups()
    return int(float(f"{whole}.{decimals or 0}") * UNIT_FACTORS[unit])


def memory_mib(text: str) -> int:
    """The MiB in `2000M`, `10G` or a bare `1500`, which Slurm means as MiB."""
    text = text.strip()
    return number(text) // MIB if text[-1:] in UNIT_FACTORS else number(text)


def duration_s(text: str) -> float | None:
    """The seconds in `D-HH:MM:SS`, `HH:MM:SS` or `MM:SS`; None: no limit."""
    text = text.strip()
    if text in NO_VALUES or text in NO_LIMITS:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise ParseError(f"Slurm printed {text[:60]!r} where a duration was expected.")
    days, clock = found.groups()
    parts = [int(part) for part in clock.split(":")]
    # `1-02` is a day and two hours, `02:03` are minutes and seconds.
    parts = parts + [0] * (3 - len(parts)) if days else [0] * (3 - len(parts)) + parts
    hours, minutes, seconds = parts
    return float(int(days or 0) * 86_400 + hours * 3_600 + minutes * 60 + seconds)


def instant_s(text: str) -> float:
    """Epoch seconds of `2026-11-21T09:52:47`, printed by a client with TZ=UTC; 0: never."""
    if text in NO_VALUES:
        return 0.0
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError) as error:
        raise ParseError(f"Slurm printed {text[:60]!r} where a time was expected.") from error


def value(text: str) -> str:
    """The text of a field, "" for Slurm's ways to say that there is none."""
    return "" if text in NO_VALUES else text


def words(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated field."""
    return tuple(part for part in value(text).split(",") if part)


def nodes(text: str) -> tuple[Node, ...]:
    """The dynamic nodes in `scontrol show nodes -d -o`; static ones are not Tidegate's."""
    lines = [line for line in text.split("\n") if line.startswith("NodeName=")]
    if not lines and text.strip() and not text.startswith("No nodes in the system"):
        raise ParseError(f"scontrol show nodes printed no node but {text[:80]!r}.")
    return tuple(node for line in lines if (node := _node(line)) is not None)


def _node(line: str) -> Node | None:
    # Reason and Comment are free text and come last: what stands before is Slurm's own.
    head = line.split(" Reason=", 1)[0].split(" Comment=", 1)[0]
    fields = dict(pair.split("=", 1) for pair in head.split() if "=" in pair)
    try:
        state = NodeState.parse(fields["State"])
        if not any(word.startswith("DYNAMIC") for word in state.words):
            return None
        gpus, gpu_type = _node_gpus(fields.get("Gres", ""))
        reason = _REASON.search(line)
        return Node(
            name=fields["NodeName"],
            state=state,
            cpus=number(fields.get("CPUEfctv") or fields["CPUTot"]),
            memory_mib=number(fields["RealMemory"]),
            gpus=gpus,
            gpu_type=gpu_type,
            cpus_alloc=number(fields["CPUAlloc"]),
            memory_alloc_mib=number(fields["AllocMem"]),
            gpus_alloc=_node_gpus(fields.get("GresUsed", ""))[0],
            features=words(fields.get("ActiveFeatures", "")),
            reason=reason.group(1) if reason else "",
            last_busy_at_s=instant_s(fields.get("LastBusyTime", "")),
        )
    except KeyError as error:
        raise ParseError(f"scontrol show nodes printed no {error} in {line[:80]!r}.") from error


def _node_gpus(text: str) -> tuple[int, str]:
    """The GPUs in `gpu:a10g:4(S:0-1)`; the type of a node with several is the first one's."""
    # Brackets hold indices with commas of their own, as in `gpu:t4:2(IDX:0,2)`.
    found = _NODE_GRES.findall(re.sub(r"\([^()]*\)", "", text))
    return sum(int(count) for _, count in found), found[0][0] if found else ""


def associations(text: str) -> tuple[Association, ...]:
    """The caps on GPUs in `scontrol show assoc_mgr flags=assoc,qos`; () without slurmdbd.

    An account's group cap applies to the accounts below it too (`accounts_below`). Caps per
    job are read at users only: Slurm prints them there with what the accounts above gave.
    Associations of one partition only are left out, as is the usage in parentheses.
    """
    records = _records(text)
    parents = {
        found["account"]: found.get("parent", "")
        for found in records
        if "account" in found and not found["user"]
    }
    made: list[Association] = []
    for found in records:
        if not found.get("partition"):
            made.extend(_caps(found, parents))
    return tuple(made)


def _records(text: str) -> list[dict[str, str]]:
    """One mapping per association or QOS, with the lines that hold GPU caps."""
    records: list[dict[str, str]] = []
    for line in text.split("\n"):
        if found := _ASSOCIATION.match(line):
            account, user, partition = found.groups()
            records.append({"account": account, "user": user, "partition": partition})
        elif found := _QOS.match(line):
            records.append({"qos": found.group(1)})
        elif records:
            _collect(records[-1], line)
    return records


def _collect(record: dict[str, str], line: str) -> None:
    if found := _PARENT.match(line):
        record["parent"] = found.group(1)
    key, _, rest = line.strip().partition("=")
    # A QOS repeats MaxTRESPU for every user who has jobs; the cap is the same in each.
    if key in ("GrpTRES", "MaxTRESPJ", "MaxTRESPU"):
        record[key] = rest


def _caps(found: Mapping[str, str], parents: Mapping[str, str]) -> Iterator[Association]:
    account, user, qos = (found.get(key, "") for key in ("account", "user", "qos"))
    group = _gpu_limits(found.get("GrpTRES", ""))
    per_job = _gpu_limits(found.get("MaxTRESPJ", "")) if user or qos else {}
    per_user = _gpu_limits(found.get("MaxTRESPU", "")) if qos else {}
    scope = f"qos {qos}" if qos else f"account {account}"
    for gpu_type in sorted(group.keys() | per_job.keys() | per_user.keys()):
        yield Association(
            scope=f"user {user} of {scope}" if user else scope,
            account=account,
            user=user,
            qos=qos,
            max_gpus=group.get(gpu_type),
            max_gpus_per_user=per_user.get(gpu_type),
            max_gpus_per_job=per_job.get(gpu_type),
            accounts_below=() if user or qos else _below(account, parents),
            gpu_type=gpu_type,
        )


def _gpu_limits(text: str) -> dict[str, int]:
    """GPU type ("" for any) -> limit, from `cpu=N(1),gres/gpu=2(1),gres/gpu:a10g=N(1)`."""
    return {gpu_type: int(limit) for gpu_type, limit in _GPU_LIMIT.findall(text)}


def _below(account: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    """All accounts under `account`, sorted."""
    found: set[str] = set()
    level = {account}
    while level:
        level = {child for child, parent in parents.items() if parent in level} - found
        found |= level
    return tuple(sorted(found - {account}))
