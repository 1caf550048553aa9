"""What comes of a launch, dealt out: whole gangs of those that share it, and jobs to nodes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from tidegate.core.demand.data_sets import KEY, tag_of
from tidegate.core.model.ec2 import Instance
from tidegate.core.model.ledger import Launch
from tidegate.core.model.slurm import Job

# Of a node that many jobs share; a record of the ledger holds them.
JOBS_PER_NODE_MAX = 20


def shares(launch: Launch) -> tuple[tuple[str, int], ...]:
    """The gangs, and how many of the nodes each is to get; "": they are for no gang."""
    if not launch.gangs:
        return ((launch.gated_for, launch.count),)
    return tuple((gang, launch.min_count) for gang in launch.gangs)


def dealt(
    launch: Launch, instances: Sequence[Instance], known: Mapping[str, str]
) -> dict[str, str | None]:
    """The gang of each instance, by its id; "": it is for no gang. None: what came beyond whole
    gangs, and goes back.

    `known`: instance -> gang, as an earlier planner has written it down before it died. The first
    in the queue come first, and each gang is of one zone, of few types where it can be.
    """
    if not launch.gangs:
        return {one.instance_id: launch.gated_for for one in instances}
    found: dict[str, str | None] = {
        one.instance_id: known[one.instance_id] or None
        for one in instances
        if one.instance_id in known
    }
    lacking = _lacking(launch, known)
    fresh = sorted((one for one in instances if one.instance_id not in known), key=_by_place)
    for _, of_zone in groupby(fresh, key=lambda one: one.offering.zone):
        left = list(of_zone)
        while lacking and (lacking[0][1] <= len(left) or lacking[0][1] < launch.min_count):
            gang, count = lacking.pop(0)
            found.update(dict.fromkeys((one.instance_id for one in left[:count]), gang))
            left = left[count:]
        found.update(dict.fromkeys((one.instance_id for one in left), None))
    return found


def _lacking(launch: Launch, known: Mapping[str, str]) -> list[tuple[str, int]]:
    """What each gang is still to get; those of which some nodes are known come first."""
    there = Counter(known.values())
    begun: list[tuple[str, int]] = []
    others: list[tuple[str, int]] = []
    for gang, count in shares(launch):
        has = min(there[gang], count)
        there[gang] -= has
        if 0 < has < count:
            begun.append((gang, count - has))
        elif not has:
            others.append((gang, count))
    return begun + others


def _by_place(one: Instance) -> tuple[str, str, str]:
    return one.offering.zone, one.offering.instance_type, one.instance_id


def jobs_of(launch: Launch, number: int) -> tuple[str, ...]:
    """The jobs for which the launch's node of this number was bought, as a record names them."""
    return all_jobs_of(launch, number)[:JOBS_PER_NODE_MAX]


def all_jobs_of(launch: Launch, number: int) -> tuple[str, ...]:
    """The same, however many they are.

    Which of them Slurm will start there nobody knows: each node gets its part of them.
    """
    jobs, count = launch.for_jobs, max(launch.count, 1)
    if len(jobs) <= 1:
        return jobs
    first, last = number * len(jobs) // count, -(-(number + 1) * len(jobs) // count)
    return jobs[first:last]


def owned(
    launches: Sequence[Launch], jobs: Sequence[Job], prefetch: tuple[str, ...] = ()
) -> Iterator[Launch]:
    """The launches with account and user of the first job of each, who pays for its nodes, and the
    data sets of all its jobs that `prefetch` allows.
    """
    first = {each.for_jobs[0] for each in launches if each.for_jobs}
    owners = {job.job_id: job for job in jobs if job.job_id in first} if first else {}
    asking = [job for job in jobs if KEY in job.comment] if launches and prefetch else []
    for each in launches:
        owner = owners.get(each.for_jobs[0]) if each.for_jobs else None
        data = tag_of(each.for_jobs, asking, prefetch) if asking else ""
        made = replace(each, data=data) if data else each
        yield replace(made, account=owner.account, user=owner.user) if owner else made
