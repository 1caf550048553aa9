"""Lines of `slurm.static`: what slurmctld would end at is refused before it has them."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tidegate.wire.problems import did_you_mean, shown
from tidegate.wire.slurm_numbers import slurm_number
from tidegate.wire.slurm_settings import YES_OR_NO

ENDS = "slurmctld would not start"

# Source: slurm.conf(5) of 22.05 to 26.05, and what each release's own reader takes (tried).
_KEYS = {
    "nodename": (
        *("BcastAddr", "Boards", "CoreSpecCount", "CoresPerSocket", "CpuBind", "CPUs"),
        *("CPUSpecList", "Feature", "Features", "Gres", "GresConf", "MemSpecLimit", "NodeAddr"),
        *("NodeHostname", "Parameters", "Port", "Procs", "RealMemory", "Reason"),
        *("RestrictedCoresPerGPU", "Sockets", "SocketsPerBoard", "State", "ThreadsPerCore"),
        *("TmpDisk", "Topology", "TRESWeights", "Weight"),
    ),
    "partitionname": (
        *("AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "CpuBind"),
        *("Default", "DefaultTime", "DefCpuPerGPU", "DefMemPerCPU", "DefMemPerGPU"),
        *("DefMemPerNode", "DenyAccounts", "DenyQos", "DisableRootJobs", "Exclusive"),
        *("ExclusiveTopo", "ExclusiveUser", "GraceTime", "Hidden", "LLN", "MaxCPUsPerNode"),
        *("MaxCPUsPerSocket",),
        *("MaxMemPerCPU", "MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes"),
        *("OverSubscribe", "Shared", "OverTimeLimit", "PowerDownOnIdle", "PreemptMode"),
        *("Priority", "PriorityJobFactor", "PriorityTier", "QOS", "ReqResv", "ResumeTimeout"),
        *("RootOnly", "SelectTypeParameters", "State", "SuspendTime", "SuspendTimeout"),
        *("Topology", "TRESBillingWeights"),
    ),
    "nodeset": ("Nodes", "Feature"),
    "downnodes": ("Reason", "State"),
}
_BITS = {
    **dict.fromkeys(("boards", "corespeccount", "corespersocket", "cpus", "procs", "sockets"), 16),
    **dict.fromkeys(("socketsperboard", "threadspercore", "prioritytier", "priorityjobfactor"), 16),
    **dict.fromkeys(("tmpdisk", "weight"), 32),
    **dict.fromkeys(("realmemory", "memspeclimit"), 64),
}
_YES_OR_NO = frozenset(
    {"default", "disablerootjobs", "exclusiveuser", "hidden", "lln", "reqresv", "rootonly"}
)
_HOSTLIST = re.compile(r"[^\[\]]*(\[[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\][^\[\]]*)*")
_PART = re.compile(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*")
_BRACKET = re.compile(r"\[([^\]]*)\]")
# Of two NodeSets of one name slurmctld takes the first.
_ONCE = ("nodename", "partitionname")
_FIRST_WITH_SETS_APART = "24.11"
# More are not unfolded: who has so many nodes of one name counts them by a range.
_UNFOLDED_MAX = 100_000


def static_line(line: str) -> str:
    """Errors: ValueError, for what slurmctld would end at."""
    first, *others = line.split(" ")
    kind, _, names = first.partition("=")
    if not _HOSTLIST.fullmatch(names):
        raise ValueError(f"{shown(names)} is no list of names like old[1-2] or old1,old2")
    known = _KEYS[kind.lower()]
    by_name = {each.lower() for each in known}
    for key, value in (each.split("=", 1) for each in others):
        if key.lower() not in by_name:
            near = did_you_mean(key, known) or "; leave it out"
            raise ValueError(f"{shown(key)} is nothing that a line of {kind} has, {ENDS}{near}")
        bits = _BITS.get(key.lower())
        if bits and slurm_number(value, bits) is None:
            raise ValueError(f"{key} must be 0-{2**bits - 1}, is {shown(value)}: {ENDS}")
        if key.lower() in _YES_OR_NO and value.lower() not in YES_OR_NO:
            raise ValueError(f"{key} must be yes or no, is {shown(value)}: {ENDS}")
    return line


def no_name_twice(lines: Sequence[str]) -> Sequence[str]:
    """Errors: ValueError, for nodes and partitions that have two lines."""
    seen: set[tuple[str, str]] = set()
    for line in lines:
        kind, _, names = line.split(" ", 1)[0].partition("=")
        if kind.lower() not in _ONCE or names.upper() == "DEFAULT":
            continue
        for name in _unfolded(names):
            key = kind.lower(), name
            if key in seen:
                raise ValueError(f"{kind} {shown(name)} is there twice: {ENDS}")
            seen.add(key)
    return lines


def why_node_sets_end(lines: Sequence[str], pools: Iterable[str], version: str) -> str:
    """Why slurmctld of this release would end at a NodeSet's name; "": it takes them all.

    Each pool has a NodeSet of its name. Source: Slurm 24.11 to 26.05, read_config.c,
    _validate_conf_nodeset_vs_nodenames.
    """
    found: dict[str, set[str]] = {"nodename": set(), "nodeset": set(pools)}
    for line in lines if version >= _FIRST_WITH_SETS_APART else ():
        kind, _, names = line.split(" ", 1)[0].partition("=")
        if kind.lower() in found:
            found[kind.lower()] |= {names} if kind.lower() == "nodeset" else set(_unfolded(names))
    both = sorted(found["nodename"] & found["nodeset"])
    return f"NodeSet {shown(both[0])} has the name of a node: {ENDS}" if both else ""


def _unfolded(names: str) -> Iterator[str]:
    """`a[1-2],b` -> a1, a2, b; of names with several ranges, or with too many nodes, nothing."""
    for part in _PART.findall(names):
        ranges = _BRACKET.findall(part)
        if not part or len(ranges) > 1:
            continue
        if not ranges:
            yield part
            continue
        head, _, tail = part.partition("[")
        tail = tail.partition("]")[2]
        for each in ranges[0].split(","):
            low, _, high = each.partition("-")
            if int(high or low) - int(low) <= _UNFOLDED_MAX:
                numbers = range(int(low), int(high or low) + 1)
                yield from (f"{head}{number:0{len(low)}}{tail}" for number in numbers)
