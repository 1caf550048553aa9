"""What the users of a drawn world submit."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Shape
from tidegate.sim.clock import START_S
from tidegate.sim.options import Arrival
from tidegate.sim.slurm_parts import LAST, Submit

USERS = ("ada", "bob", "eve")
ACCOUNTS = ("physics", "biology")
QOS = ("normal", "large")
SUBMISSIONS = {"small": (1, 1, 2), "medium": range(3, 9), "large": range(10, 21)}
TASKS_MAX = {"small": 3, "medium": 5, "large": 5}


def draw_arrivals(
    chance: Random,
    cluster: Cluster,
    size: str,
    safety_s: float,
    *,
    is_tight: bool,
) -> tuple[Arrival, ...]:
    """Submissions in the order of their times; bursts are as likely as single ones.

    In every other world all ask for the same kind of node, so that they meet on it.
    """
    arrivals: list[Arrival] = []
    at_s = chance.uniform(0.0, 30.0)
    themes = [(pool, kind) for pool in cluster.pools for kind in pool.instance_types]
    if chance.random() < 0.5 or is_tight:
        themes = [chance.choice(themes)]
    for number in range(chance.choice(SUBMISSIONS[size])):
        pool, kind = chance.choice(themes)
        submit = _submit(chance, cluster, pool, kind, tasks_max=TASKS_MAX[size])
        arrivals.append(_arrival(chance, number, at_s, submit))
        at_s += chance.choice((0.0, 0.0, 5.0, 60.0, safety_s / 4))
    return tuple(arrivals)


def with_begin(chance: Random, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """A few may start only later; a node takes 300 s to boot, as their pools say."""
    found: list[Arrival] = []
    for each in arrivals:
        if chance.random() < 0.06:
            begins = replace(each.submit, begin_after_s=round(chance.uniform(100.0, 700.0)))
            found.append(replace(each, submit=begins))
        else:
            found.append(each)
    return tuple(found)


def with_dependents(chance: Random, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """A few may start only when the job before them has ended."""
    return tuple(
        replace(each, submit=replace(each.submit, after=LAST))
        if number and not each.submit.beside and chance.random() < 0.06
        else each
        for number, each in enumerate(arrivals)
    )


def with_ends(chance: Random, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """How soon a run ends that is requeued: at its first signal, or only after KillWait."""
    found: list[Arrival] = []
    for each in arrivals:
        ends_in_s = chance.choice((0.1, 0.4, 2.0, 7.0))
        beside = tuple(replace(part, ends_in_s=ends_in_s) for part in each.submit.beside)
        submit = replace(each.submit, ends_in_s=ends_in_s, beside=beside)
        found.append(replace(each, submit=submit))
    return tuple(found)


def with_components(
    chance: Random, arrivals: Sequence[Arrival], cluster: Cluster
) -> tuple[Arrival, ...]:
    """Some are heterogeneous: one or two components more, each maybe on another kind of node."""
    found: list[Arrival] = []
    kinds = [(pool, kind) for pool in cluster.pools for kind in pool.instance_types]
    for each in arrivals:
        beside: list[Submit] = []
        if chance.random() < 0.05:
            for _ in range(chance.choice((1, 1, 2))):
                part = _submit(chance, cluster, *chance.choice(kinds), tasks_max=2)
                beside.append(_component(part, each.submit))
        if beside:
            leader = replace(_component(each.submit, each.submit), beside=tuple(beside))
            each = replace(each, submit=leader)
        found.append(each)
    return tuple(found)


def with_deadlines(
    chance: Random, arrivals: Sequence[Arrival], cluster: Cluster
) -> tuple[Arrival, ...]:
    """In some worlds many jobs must have ended by a time, which may be too soon for any node."""
    if chance.random() >= 0.2:
        return tuple(arrivals)
    found: list[Arrival] = []
    boot_s = max(pool.boot_s for pool in cluster.pools)
    for each in arrivals:
        limit_s = round(each.submit.duration_s * chance.uniform(1.1, 2.0))
        spare_s = chance.choice((-60.0, 30.0, 400.0, 900.0, 1500.0, 2500.0, 4000.0))
        if chance.random() < 0.6:
            begins_s = START_S + each.at_s + each.submit.begin_after_s
            due = f"tidegate:deadline={begins_s + boot_s + limit_s + spare_s:.0f}"
            parts = [
                replace(one, time_limit_s=limit_s, comment=f"{one.comment} {due}".strip())
                for one in (each.submit, *each.submit.beside)
            ]
            each = replace(each, submit=replace(parts[0], beside=tuple(parts[1:])))
        found.append(each)
    return tuple(found)


def with_equal_gangs(
    chance: Random, arrivals: Sequence[Arrival], cluster: Cluster
) -> tuple[Arrival, ...]:
    """In some worlds many equal gangs come at once, as jobs or as tasks of one array."""
    plain = [each for each in arrivals if not each.submit.beside and not each.submit.is_held]
    if chance.random() >= 0.1 or not plain or min(p.max_job_nodes for p in cluster.pools) < 2:
        return tuple(arrivals)
    number, nodes, like = chance.randint(3, 7), chance.choice((2, 2, 3)), chance.choice(plain)
    is_array = chance.random() < 0.4
    nodes = min(nodes, *(each.max_job_nodes for each in cluster.pools))
    submit = replace(like.submit, nodes=nodes, array=number if is_array else 0, throttle=0)
    others = [each for each in arrivals if each is not like]
    first = max(each.number for each in arrivals) + 1
    copies = range(first, first + (0 if is_array else number - 1))
    gangs = [replace(like, number=each, submit=submit) for each in (like.number, *copies)]
    return tuple(sorted((*others, *gangs), key=lambda each: (each.at_s, each.number)))


def _component(part: Submit, of: Submit) -> Submit:
    """What the components have in common; accounting's caps and licences are left to others."""
    return replace(
        part,
        user=of.user,
        account="",
        qos="",
        array=0,
        throttle=0,
        is_held=False,
        begin_after_s=0.0,
        licences=0,
        priority=of.priority,
        duration_s=of.duration_s,
        time_limit_s=of.time_limit_s,
        is_requeueable=of.is_requeueable,
        comment=of.comment,
    )


def _arrival(chance: Random, number: int, at_s: float, submit: Submit) -> Arrival:
    cancel_after_s = chance.uniform(10.0, 400.0) if chance.random() < 0.12 else None
    release_after_s = chance.uniform(10.0, 300.0) if submit.is_held else None
    return Arrival(number, at_s, submit, cancel_after_s, release_after_s)


def _submit(
    chance: Random, cluster: Cluster, pool: Pool, kind: InstanceType, *, tasks_max: int
) -> Submit:
    is_gang = pool.max_job_nodes > 1 and chance.random() < 0.35
    gpus = chance.randint(1, kind.gpus) if kind.gpus else 0
    is_whole = is_gang and chance.random() < 0.7
    array = chance.choice((0, 0, 0, chance.randint(2, tasks_max)))
    return Submit(
        user=chance.choice(USERS),
        shape=Shape(
            gpus=kind.gpus if is_whole else gpus,
            gpu_type=kind.gpu_type if gpus and chance.random() < 0.7 else "",
            cpus=max(1, kind.cpus if is_whole else chance.randint(1, kind.cpus) // 2),
            memory_mib=chance.choice((1_000, kind.slurm_memory_mib // 2)),
            is_exclusive=chance.random() < 0.05,
        ),
        duration_s=round(chance.choice((8.0, 40.0, 40.0, 150.0, 400.0)) * chance.uniform(0.5, 2)),
        nodes=chance.randint(2, min(pool.max_job_nodes, 4)) if is_gang else 1,
        partition=chance.choice(cluster.partitions).name if chance.random() < 0.2 else "",
        constraint=_constraint(chance, pool, kind),
        array=array,
        throttle=chance.choice((0, 1, 2)) if array else 0,
        priority=chance.choice((1, 1, 5, 10)),
        comment=_comment(chance.random()),
        is_requeueable=chance.random() < 0.85,
        time_limit_s=chance.choice((None, 3600.0)),
        account=chance.choice(ACCOUNTS),
        qos=chance.choice(QOS),
        is_held=chance.random() < 0.05,
        licences=chance.choice((1, 1, 2, 3)) if chance.random() < 0.06 else 0,
    )


def _comment(at: float) -> str:
    """Of those that save their work, and of some others, the heartbeat is watched."""
    asked = "tidegate:ckpt=USR1@20" if at < 0.35 else ""
    return f"{asked} tidegate:heartbeat=/shared/heartbeat@900".strip() if at < 0.6 else ""


def _constraint(chance: Random, pool: Pool, kind: InstanceType) -> str:
    if chance.random() < 0.75:
        return ""
    market = chance.choice(pool.markets).value
    family = kind.name.split(".")[0]
    return chance.choice((market, kind.name, f"{family}&{market}", f"{pool.name}|nowhere"))
