"""Rules across numbers that could each be meant, but not together."""

from collections.abc import Iterator

from tidegate.wire.deployment import Nat
from tidegate.wire.directory import HOMES
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem
from tidegate.wire.slurm_settings import why_preemption_ends, why_slurm_ends
from tidegate.wire.static_lines import why_node_sets_end


def _boots_in_time(parts: Parts) -> Iterator[Problem]:
    """A node may take as long as its pool says to boot, and lives longer than that."""
    for name, pool in parts.pools.items():
        bound_s = parts.timings.boot_bound_s if parts.timings else None
        hooks_s = pool.hooks.timeout_s + (parts.hooks.timeout_s if parts.hooks else 0)
        if bound_s is not None and hooks_s and pool.boot_s < bound_s <= pool.boot_s + hooks_s:
            text = f"{bound_s:g}, but nodes of pool {name} boot in {pool.boot_s:g} s (boot_s)"
            yield Problem(
                ("timings", "boot_bound_s"),
                f"{text} and their hooks may take {hooks_s} s more (timeout_s): take at least"
                f" {pool.boot_s + hooks_s + 60:g}, or lower their timeout_s",
            )
        elif bound_s is not None and bound_s <= pool.boot_s:
            text = f"{bound_s:g}, but nodes of pool {name} boot in {pool.boot_s:g} s (boot_s)"
            yield Problem(
                ("timings", "boot_bound_s"),
                f"{text}: every one would be given up before it joins; take at least"
                f" {2 * pool.boot_s:g}",
            )
        expire_s = pool.disruption.expire_after_s
        if expire_s is not None and expire_s <= pool.boot_s:
            text = f"{expire_s:g}, but its nodes boot in {pool.boot_s:g} s (boot_s)"
            yield Problem(
                ("pools", name, "disruption", "expire_after_s"),
                f"{text}: each would be replaced before it ran a job; take days, like 604800",
            )


def _is_within(one: str, other: str) -> bool:
    inner, outer = sorted((one, other), key=len, reverse=True)
    return f"{inner}/".startswith(f"{outer}/")


def _mounted_apart(parts: Parts) -> Iterator[Problem]:
    """Each file system has a directory of its own, none within another: mounts have no order."""
    taken = dict(parts.taken_dirs)
    shared, *others = sorted(taken, key=lambda each: taken[each] != "shared_dir")
    for other in others:
        if shared != other and _is_within(shared, other):
            text = f"{other}, and shared_dir has {shared}: neither may lie in the other"
            yield Problem((taken[other], "directory"), text)
    for index, each in parts.file_systems.items():
        place = ("file_systems", index, "directory")
        for other, option in taken.items():
            if _is_within(each.directory, other):
                text = f"{each.directory}, and {option} has {other}"
                yield Problem(place, f"{text}: neither may lie in the other")
        taken[each.directory] = f"file_systems[{index}]"
        if not each.s3 and parts.network and not parts.network.vpc:
            text = "needs network.vpc: no mount target that is there is reached from a new network"
            yield Problem(("file_systems", index), text)


def _homes_are_shared(parts: Parts) -> Iterator[Problem]:
    """A job on a node finds the home that it was sent from."""
    homes = parts.directory.options.get(HOMES, "") if parts.directory else ""
    mounted = [*parts.taken_dirs, *(each.directory for each in parts.file_systems.values())]
    if homes and not any(homes.startswith(f"{each}/") for each in mounted):
        text = f"{homes} is on each machine's own disk, where no job finds its home; leave it out"
        where = " or ".join(mounted)
        yield Problem(("directory", "options", HOMES), f"{text}, or name a folder below {where}")


def _slurm_takes(parts: Parts) -> Iterator[Problem]:
    """slurmctld ends at a line that it cannot read, and slurmd does: with it the cluster."""
    if parts.slurm is None:
        return
    files = {"settings": "slurm.conf", "cgroup": "cgroup.conf"}
    for option, file in files.items():
        for name, value in getattr(parts.slurm, option).items():
            if reason := why_slurm_ends(name, value, parts.slurm.version, file):
                yield Problem(("slurm", option, name), reason)
    name, reason = why_preemption_ends(parts.slurm.settings)
    if name:
        yield Problem(("slurm", "settings", name), reason)
    if reason := why_node_sets_end(parts.slurm.static, parts.pools, parts.slurm.version):
        yield Problem(("slurm", "static"), f"{reason}; give one of the two another name")


def _logs_find_a_way(parts: Parts) -> Iterator[Problem]:
    """Nodes of an own network without NAT send their logs to an endpoint."""
    network = parts.network
    if network is None or network.vpc or not network.endpoints or network.nat is not Nat.NONE:
        return
    if parts.ships_logs and "logs" not in network.endpoints:
        text = "without NAT also logs, which nodes send theirs to (logs.nodes)"
        yield Problem(("network", "endpoints"), text)


def _reports_know_who_ran(parts: Parts) -> Iterator[Problem]:
    """Who ran is known by Slurm's accounting alone."""
    if parts.has_report and parts.slurm and not parts.slurm.has_accounting:
        text = "needs Slurm's accounting, which knows who ran: add accounting: true to slurm"
        yield Problem(("report",), text)


SENSE_RULES = (
    *(_mounted_apart, _homes_are_shared, _reports_know_who_ran, _boots_in_time),
    *(_slurm_takes, _logs_find_a_way),
)
