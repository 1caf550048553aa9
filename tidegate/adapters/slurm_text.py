"""What Slurm's commands print, as core values: numbers, times, nodes, accounting limits.

Pure: text in, values out. Every function gives a value or raises ParseError, whatever the text.
The queue is read in `slurm_queue`. Verified on samples of Slurm 22.05 and 24.11.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from tidegate.adapters.slurm_gres import devices, node_gres
from tidegate.core.demand.accounting import LEFT, MINUTES, WALL
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.slurm import Association, Licence, Node, NodeState, SetBy

UNIT_FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
MIB = 1024**2
NO_VALUES = frozenset({"", "N/A", "(null)", "None", "NONE", "Unknown", "NOT_SET", "INVALID"})
NO_LIMITS = frozenset({"UNLIMITED", "Partition_Limit"})

_NUMBER = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?([KMGTP]?)", re.ASCII)
_TIME = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,9}(?::[0-9]{1,4}){0,2})", re.ASCII)
_TRES_LIMITS = frozenset(
    {"GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxTRESPJ", "MaxTRESPN", "MaxTRESMinsPJ"}
    | {"MaxTRESPU", "MaxTRESPA"}
)
_NAME = re.compile(r"^NodeName=(\S+)", re.MULTILINE)
_REASON = re.compile(
    r" Reason=(.*?)(?: \[([^\[\]]*)@([^\[\]]*)\])?(?: Extra=.*?)?(?: Comment=(.*))?$"
)
_SLURM_USER = re.compile(r"^SlurmUser *= ([^\s(]+)", re.MULTILINE)
_LIMIT = re.compile(
    r"(?:^|,)((?:gres|license)/[^=,]+|cpu|mem|node)=([0-9]{1,15}(?:\.[0-9]{1,3})?[KMGTP]?)(?=\(|,|$)",
    re.ASCII,
)
_JOB_LIMITS = re.compile(
    r"\b(GrpJobs|MaxJobs|MaxJobsPU|MaxJobsPA)=([0-9]{1,15})(?=\(|\s|$)", re.ASCII
)
# A limit and what is used of it; the whole minutes of GrpWall are enough.
_SPENT = re.compile(r"(?:^|,)([^=,]+)=([0-9]{1,15})\(([0-9]{1,20})(?:\.[0-9]+)?\)", re.ASCII)
_WALL_LIMITS = re.compile(
    r"\b(GrpWall)=([0-9]{1,15}\([0-9.]{1,20}\))|\b(MaxWallPJ)=([0-9]{1,15})(?=\s|$)", re.ASCII
)
_PARTITION_QOS = re.compile(r"^PartitionName=(\S+) .*?\bQoS=(\S+)", re.MULTILINE)
_CLOSED = {"down": "PartitionDown", "inact": "PartitionInactive"}
_LICENCE = re.compile(r"LicenseName=(\S+)\s+Total=[0-9]+\s+Used=[0-9]+\s+Free=([0-9]{1,15})")
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


def slurm_user(text: str) -> str:
    """SlurmUser in `scontrol show config`, "" when it does not say."""
    found = _SLURM_USER.search(text)
    return found[1] if found else ""


def nodes(
    text: str, slurm_user: str = "", opened: dict[str, str] | None = None
) -> tuple[Node, ...]:
    """The dynamic nodes in `scontrol show nodes -d -o`; static ones are not Tidegate's.

    `slurm_user`: as whom slurmctld runs, by which its own reasons are known. `opened`: the
    reasons, with their times, that open nodes were seen to have; updated.
    """
    lines = [line for line in text.split("\n") if line.startswith("NodeName=")]
    if not lines and text.strip() and not text.startswith("No nodes in the system"):
        raise ParseError(f"scontrol show nodes printed no node but {text[:80]!r}.")
    memory = opened if opened is not None else {}
    found = tuple(n for line in lines if (n := _node(line, slurm_user, memory)) is not None)
    for name in memory.keys() - {node.name for node in found}:
        del memory[name]
    return found


def node_names(text: str) -> frozenset[str]:
    """Every node in `scontrol show nodes -o`, static ones too; no placeholder."""
    return frozenset(_NAME.findall(text))


def _node(line: str, slurm_user: str, opened: dict[str, str]) -> Node | None:
    # Reason and Comment are free text and come last: what stands before is Slurm's own.
    head = line.split(" Reason=", 1)[0].split(" Comment=", 1)[0]
    fields = dict(pair.split("=", 1) for pair in head.split() if "=" in pair)
    try:
        state = NodeState.parse(fields["State"])
        if not any(word.startswith("DYNAMIC") for word in state.words):
            return None
        has, used = node_gres(fields.get("Gres", "")), node_gres(fields.get("GresUsed", ""))
        reason = _REASON.search(line)
        return Node(
            name=fields["NodeName"],
            state=state,
            cpus=number(fields.get("CPUEfctv") or fields["CPUTot"]),
            memory_mib=number(fields["RealMemory"]),
            gpus=has.count,
            gpu_type=has.gpu_type,
            cpus_alloc=number(fields["CPUAlloc"]),
            memory_alloc_mib=number(fields["AllocMem"]),
            gpus_alloc=used.count,
            features=words(fields.get("ActiveFeatures", "")),
            reason=reason.group(1) if reason else "",
            last_busy_at_s=instant_s(fields.get("LastBusyTime", "")),
            gres=has.gres,
            weight=number(fields.get("Weight", "1")),
            set_by=_set_by(reason, slurm_user, _is_left_over(fields, state, reason, opened)),
            address=value(fields.get("NodeAddr", "")),
            devices=devices(has, used),
            shards=has.shards,
            shared_gres=has.shared_gres,
            gpus_shared=used.shared,
            shards_used=used.used,
        )
    except KeyError as error:
        raise ParseError(f"scontrol show nodes printed no {error} in {line[:80]!r}.") from error


def _is_left_over(
    fields: Mapping[str, str],
    state: NodeState,
    reason: re.Match[str] | None,
    opened: dict[str, str],
) -> bool:
    """The node is drained with a reason that it had while it was open.

    From 24.11 on Slurm keeps the reason of a node that somebody opens, and drains it by itself
    later without another; whoever else drains gives one, which has a new time.
    """
    given = f"{reason[1]}@{reason[3]}" if reason else ""
    if state.is_drain:
        return bool(given) and opened.get(fields["NodeName"]) == given
    opened[fields["NodeName"]] = given
    return False


def _set_by(found: re.Match[str] | None, slurm_user: str, is_left_over: bool) -> SetBy:
    """The agent gives its own reasons as the node's comment too; slurmctld may add to a reason."""
    if found is None:
        return SetBy.UNKNOWN
    if is_left_over:
        return SetBy.SLURM
    reason, user, _, comment = found.groups()
    if comment and (reason == comment or reason.startswith(f"{comment} : ")):
        return SetBy.US
    match user:
        case None:
            return SetBy.UNKNOWN
        case "root" | "0":
            return SetBy.ROOT
        case _:
            return SetBy.SLURM if user == slurm_user else SetBy.USER


def closed_partitions(text: str) -> dict[str, str]:
    """Partition -> why its pending jobs do not start, in `sinfo -o "%R %a"`.

    One that is set to DRAIN takes no new jobs, but starts those that it has (scontrol(1)).
    """
    states = (line.split() for line in text.splitlines() if line.strip())
    return {name: _CLOSED[state] for name, state in states if state in _CLOSED}


def licences(text: str) -> tuple[Licence, ...]:
    """What is free of each licence in `scontrol show licenses`; () when there are none."""
    return tuple(Licence(name, int(free)) for name, free in _LICENCE.findall(text))


def asked_licences(text: str) -> tuple[tuple[str, int], ...]:
    """Name and number in `matlab:2,abaqus`, or of each alternative in `matlab:2|abaqus`."""
    found: list[tuple[str, int]] = []
    for part in value(text).replace("|", ",").split(","):
        # `matlab@server:2` names a remote licence by the same word that `show licenses` has.
        name, _, count = part.partition(":")
        if not (count or "1").isdecimal():
            return ()
        found += [(name, int(count or 1))] if name else []
    return tuple(found)


def partition_qos(text: str) -> dict[str, str]:
    """Partition -> its own QOS, in `scontrol show partition -o`."""
    return {name: qos for name, qos in _PARTITION_QOS.findall(text) if value(qos)}


def associations(
    text: str, qos_of: Mapping[str, str] = MappingProxyType({})
) -> tuple[Association, ...]:
    """The caps in `scontrol show assoc_mgr flags=assoc,qos`; () without slurmdbd.

    An account's group cap applies to the accounts below it too (`accounts_below`). Caps of
    one job, and of the jobs of one user in an account, are read at users only: Slurm prints
    them there with what the accounts above gave. Of the usage in parentheses only minutes are
    read: those of jobs that have ended stand nowhere else. `qos_of`: partition -> its own QOS.
    """
    records = _records(text)
    parents = {
        found["account"]: found.get("parent", "")
        for found in records
        if "account" in found and not found["user"]
    }
    made: list[Association] = []
    for found in records:
        where: dict[str, Any] = {}
        if "qos" in found:
            where["partitions"] = tuple(p for p, qos in qos_of.items() if qos == found["qos"])
        elif found["partition"]:
            where["partitions"] = (found["partition"],)
        elif found["user"]:
            where["but_partitions"] = tuple(
                other["partition"]
                for other in records
                if other.get("partition")
                and (other["account"], other["user"]) == (found["account"], found["user"])
            )
        made.extend(replace(cap, **where) for cap in _caps(found, parents))
    return tuple(made)


def _records(text: str) -> list[dict[str, str]]:
    """One mapping per association or QOS, with the lines that hold caps."""
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
    record |= dict(_JOB_LIMITS.findall(line))
    for grp, spent, most, minutes in _WALL_LIMITS.findall(line):
        record |= {grp: spent} if grp else {most: minutes}
    key, _, rest = line.strip().partition("=")
    # A QOS repeats MaxTRESPU for every user who has jobs; the cap is the same in each.
    if key in _TRES_LIMITS:
        record[key] = rest


def _caps(found: Mapping[str, str], parents: Mapping[str, str]) -> Iterator[Association]:
    account, user, qos = (found.get(key, "") for key in ("account", "user", "qos"))
    limits: dict[str, Any] = {
        "in_all": _limits(found.get("GrpTRES", "")) | _job_limit(found, "GrpJobs")
    }
    limits["in_all"] |= _in_minutes(found)
    if user or qos:
        limits["per_job"] = _limits(found.get("MaxTRESPJ", "")) | {
            f"{MINUTES}{tres}": most
            for tres, most in _limits(found.get("MaxTRESMinsPJ", "")).items()
        }
        if "MaxWallPJ" in found:
            limits["per_job"][WALL] = int(found["MaxWallPJ"])
        limits["per_node"] = _limits(found.get("MaxTRESPN", ""))
    if user:
        limits["per_user"] = _job_limit(found, "MaxJobs")
    for of, name in (("PU", "per_user"), ("PA", "per_account")) if qos else ():
        most_jobs = _job_limit(found, f"MaxJobs{of}")
        limits[name] = _limits(found.get(f"MaxTRES{of}", "")) | most_jobs
    scope = f"qos {qos}" if qos else f"account {account}"
    scope = f"user {user} of {scope}" if user else scope
    if found.get("partition"):
        scope += f" in partition {found['partition']}"
    for tres in sorted({tres for each in limits.values() for tres in each}):
        yield Association(
            scope=scope,
            account=account,
            user=user,
            qos=qos,
            tres=tres,
            accounts_below=() if user or qos else _below(account, parents),
            **{name: each.get(tres) for name, each in limits.items()},
        )


def _in_minutes(found: Mapping[str, str]) -> dict[str, int]:
    """What is left beside running jobs, and 0 for what a group has used up."""
    ahead = _SPENT.findall(found.get("GrpTRESRunMins", ""))
    left = {f"{MINUTES}{tres}": max(int(limit) - int(used), 0) for tres, limit, used in ahead}
    spent = [*_SPENT.findall(found.get("GrpTRESMins", ""))]
    spent += _SPENT.findall(f"{WALL}={found.get('GrpWall', '')}")
    return left | {f"{LEFT}{tres}": 0 for tres, limit, used in spent if int(used) >= int(limit)}


def _limits(text: str) -> dict[str, int]:
    """TRES -> limit, from `cpu=N(1),gres/gpu=2(1),gres/gpu:a10g=N(1)`; memory in MiB."""
    return {
        tres: memory_mib(limit) if tres == "mem" else number(limit)
        for tres, limit in _LIMIT.findall(text)
    }


def _job_limit(found: Mapping[str, str], key: str) -> dict[str, int]:
    return {"job": int(found[key])} if key in found else {}


def _below(account: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    """All accounts under `account`, sorted."""
    found: set[str] = set()
    level = {account}
    while level:
        level = {child for child, parent in parents.items() if parent in level} - found
        found |= level
    return tuple(sorted(found - {account}))
