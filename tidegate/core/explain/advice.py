"""What Slurm's pending reasons mean to a user, and what the user could change."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from tidegate.core.demand.constraint import without_feature
from tidegate.core.demand.deadline import KEY
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Job
from tidegate.core.model.why import PASSING, Why, WhyNot

MEANS = {
    "ReservationDeleted": "its reservation was deleted",
    "Reservation": "a reservation, its own or another, keeps it from the nodes that are there",
    "Nodes required for job are DOWN": "no node that could run it is up",
    "ReqNodeNotAvail": "a node that it needs is not available",
    "Resources": "it waits for nodes",
    "PartitionConfig": "no node of its partition is up, as usual before nodes are bought",
    "Priority": "jobs before it in the queue come first",
    "None": "Slurm has not looked at it yet",
    "NodeDown": "its node went away, so it was requeued",
    "SchedDefer": "Slurm has not looked at it yet",
}

CHANGE = {
    "JobHeldUser": "release it: scontrol release {id}",
    "JobHeldAdmin": "ask an administrator to release it",
    "JobHoldMaxRequeue": "look why it failed so often, then: scontrol release {id}",
    "launch failed requeued held": "look into the log of slurmd there, then: scontrol release {id}",
    "job requeued in held state": "release it: scontrol release {id}",
    "RequeueExit": "release it: scontrol release {id}",
    "DependencyNeverSatisfied": "cancel it, or: scontrol update JobId={id} Dependency=",
    "JobArrayTaskLimit": "let more run at a time: scontrol update JobId={id} ArrayTaskThrottle=...",
    "BeginTime": "start it earlier: scontrol update JobId={id} StartTime=now",
    "PartitionDown": "set it up: scontrol update PartitionName={partition} State=UP",
    "PartitionInactive": "set it up: scontrol update PartitionName={partition} State=UP",
    "PartitionTimeLimit": "ask less time: scontrol update JobId={id} TimeLimit=...",
    "PartitionNodeLimit": "ask fewer nodes: scontrol update JobId={id} NumNodes=...",
    "DeadLine": "cancel it, or ask less time: its deadline is too near",
    "BadConstraints": "submit it again with constraints that a node can meet",
    "Assoc": "wait until other jobs of the account end, or have its limit raised (sacctmgr)",
    "QOS": "wait until other jobs of the QOS end, or have its limit raised (sacctmgr)",
}

AGAIN = "scontrol update JobId={id} Requeue=1"
CHECKPOINT = "scontrol update JobId={id} Comment=tidegate:ckpt=USR1@60"
WITHOUT_DEADLINE = "scontrol update JobId={id} Comment="

NONE_DRAINED: Mapping[str, Sequence[str]] = MappingProxyType({})

OPTION = {"gpus": "GPUs", "cpus": "CPUs", "memory_mib": "MiB of memory"}


def meaning(reason: str) -> str:
    """What a pending reason means: for those that nodes would end, and for all others."""
    for prefix, sentence in MEANS.items():
        if reason.startswith(prefix):
            return sentence
    return held_because(reason) or "Slurm gives no reason"


def advice(
    job: Job, why_nots: Sequence[WhyNot], drained: Mapping[str, Sequence[str]] = NONE_DRAINED
) -> tuple[str, ...]:
    """What would let the job start, the nearest first; empty: nothing but to wait.

    `drained`: by pool, nodes that a person drained and that count against its limits.
    """
    held = "" if _is_our_word(why_nots) else held_because(job.reason)
    if held:
        found = (text for prefix, text in CHANGE.items() if job.reason.startswith(prefix))
        named = {"id": job.job_id, "partition": ",".join(job.partitions)}
        return tuple(text.format(**named) for text in list(found)[:1])
    # What fits and is held back for now needs no smaller job.
    passing = [each for each in why_nots if each.kind in PASSING]
    lasting = () if passing else _nearest(job, why_nots)
    others = list(_first_limits(passing or why_nots))
    return tuple(dict.fromkeys((*lasting, *_others(job, others, drained))))


def _first_limits(why_nots: Sequence[WhyNot]) -> Iterator[WhyNot]:
    """Of each pool the limit that keeps the cheapest of its offerings from the job: that lifted,
    those of larger types matter no more.
    """
    pools: set[str] = set()
    for each in why_nots:
        if each.kind is not Why.LIMIT:
            yield each
        elif each.pool not in pools:
            pools.add(each.pool)
            yield each


def _is_our_word(why_nots: Sequence[WhyNot]) -> bool:
    """The nodes that it is bound to or its partition keep it, whatever Slurm calls that."""
    return any(each.kind in (Why.NODES, Why.PARTITION) for each in why_nots)


def _nearest(job: Job, why_nots: Sequence[WhyNot]) -> Iterator[str]:
    """How much less the job would have to ask in the pool that comes nearest."""
    short = [w for w in why_nots if w.kind in (Why.TOO_SMALL, Why.JOB_TIME) and w.missing]
    if not short:
        return
    nearest = min(short, key=lambda w: (_shortage(w), w.pool))
    for name, _, most in nearest.missing:
        if name == "time_limit_s":
            update = f"scontrol update JobId={job.job_id} TimeLimit={most // 60:.0f}"
            yield f"ask at most {most / 3600:.1f} h, for pool {nearest.pool}: {update}"
        elif most:
            what = OPTION.get(name, name)
            yield f"ask at most {most:.0f} {what} per node for pool {nearest.pool}"
        else:
            yield f"ask another kind of GPU: pool {nearest.pool} has none of this one"


def _shortage(why_not: WhyNot) -> float:
    """The parts that are missing, each 0 to 1; where a time limit must only be said, none is."""
    parts = ((asked, most) for _, asked, most in why_not.missing if asked != 0)
    return sum(0.0 if asked is None else (asked - most) / asked for asked, most in parts)


def _fewer(job: Job, limit: WhyNot) -> Iterator[str]:
    """A limit allows fewer nodes than the job asks, so waiting cures nothing."""
    ((_, _, most),) = limit.missing
    if most >= job.nodes:  # its GPUs or tasks are spread over more nodes than it names
        yield f"ask fewer GPUs or tasks, or {limit.remedy}"
    elif most:
        update = f"scontrol update JobId={job.job_id} NumNodes={most:.0f}"
        yield f"ask at most {most:.0f} node{'s' * (most != 1)} ({update}), or {limit.remedy}"
    else:
        yield f"{limit.remedy}: it allows no such node"


def _at_limit(limit: WhyNot, drained: Sequence[str]) -> Iterator[str]:
    """What counts now keeps it out: it may go by itself, unless a person holds it."""
    for name in drained:
        given = f"scontrol update NodeName={name} State=RESUME"
        yield f"give back {name}, which a person drained and which counts: {given}"
    ways = ("" if drained else "wait for nodes to be released", limit.remedy)
    yield ", or ".join(filter(None, ways))


def _for_spot(job: Job) -> Iterator[str]:
    """What would let spot suit the job. A checkpoint is no use to one that never runs again."""
    if not job.is_requeueable:
        yield f"let it be requeued, else no checkpoint counts: {AGAIN.format(id=job.job_id)}"
    if not job.is_checkpointed:
        yield f"have it write checkpoints and say so: {CHECKPOINT.format(id=job.job_id)}"
    freed = without_feature(job.constraint, Market.ON_DEMAND.feature)
    if freed is not None:
        quoted = freed and f"'{freed}'"
        features = f"scontrol update JobId={job.job_id} Features={quoted}"
        yield f"after that, have it ask for on-demand no more: {features}"


def _others(
    job: Job, why_nots: Sequence[WhyNot], drained: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for each in why_nots:
        match each.kind:
            case Why.CONSTRAINT:
                yield f"drop or change its constraint {job.constraint!r}"
            case Why.LIMIT if each.missing:
                yield from _fewer(job, each)
            case Why.LIMIT:
                yield from _at_limit(each, drained.get(each.pool, ()))
            case Why.RESTING if each.remedy:
                yield f"wait for the next try, or {each.remedy}"
            case Why.RESTING | Why.CHEAPER:
                yield "wait for the next try, or have the pool allow more types, zones or markets"
            case Why.REFUSED | Why.BROKEN | Why.FAILING | Why.DOUBTED | Why.PARTITION if (
                each.remedy
            ):
                yield each.remedy
            case Why.LOSSY:
                yield from _for_spot(job)
                yield from filter(None, [each.remedy])
            case Why.DEADLINE:
                yield each.remedy.format(id=job.job_id)
            case Why.SPARE_TIME if KEY in job.comment:
                yield f"have it bought on demand now: {WITHOUT_DEADLINE.format(id=job.job_id)}"
            case Why.BUDGET:
                yield "wait for the next day or month, or have the budget raised"
            case Why.NO_POOL:
                yield "submit it to a partition that has pools"
            case Why.NO_PRICE:
                yield "have the price added to the cluster file"
            case Why.NOT_BEGUN:
                yield "wait until it begins, or have the pool buy by the hour too"
            case Why.DEAR:
                yield f"have pool {each.pool} buy on demand too (capacity_types)"
            case Why.NODES if job.required_nodes:
                anywhere = f"scontrol update JobId={job.job_id} ReqNodeList="
                yield f"let it run elsewhere: {anywhere} (or submit it again without -w)"
            case Why.NODES if job.reservation:
                anywhere = f"scontrol update JobId={job.job_id} ReservationName="
                yield f"let it run outside: {anywhere}; or have the reservation widened"
            case Why.NODES:
                yield f"ask less time: scontrol update JobId={job.job_id} TimeLimit=..."
            case Why.FUTILE:
                yield f"see what Slurm does with it: scontrol show job {job.job_id}, slurmctld.log"
            case Why.VAIN:
                yield "wait until other jobs under its limit end, or have the limit raised"
            case Why.FAULTS:
                yield f"read its output, then give it new tries: scontrol release {job.job_id}"
            case Why.SICK:
                yield (
                    "tell an administrator: what drained its nodes stands in sinfo -R and tidegate"
                    " nodes; a check that errs drains every node"
                )
            case _:
                pass
