"""A job of several nodes that loses some of them: what is kept for its next run, and how long."""

from collections.abc import Collection, Iterable, Iterator

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of, sentence_of
from tidegate.core.model.finding import Severity, severity_of
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Fault, Job, Node, Reading
from tidegate.core.model.snapshot import Snapshot

# The head knows no `timings`, so it holds for what a boot takes at most where the cluster file says
# nothing. The planner, while a replacement boots, holds on for as long as it may (`given_up_s`).
HOLD_S = 900.0
# The clocks of head and planner may differ by a little.
CLOCKS_DIFFER_S = 60.0

# A launch that is not answered is over after MessageTimeout, or BatchStartTimeout and a ping.
LAUNCH_S = 120.0


@frozen
class KeptNodes:
    """Good nodes of a job, which no other job gets until the reason's end."""

    names: tuple[str, ...]
    reason: DrainReason


def gang_of(job: Job) -> str:
    """Who holds nodes back for it: its heterogeneous job, or itself."""
    return job.het_job_id or job.job_id


def kept_for(gang: str, until_s: float) -> DrainReason:
    """With which nodes are drained that wait for the rest of a gang."""
    return DrainReason(DrainCode.KEPT, f"kept for gang {gang}", gang, until_s)


def hold_max_s(cluster: Cluster) -> float:
    """How far away the end of a hold may be; one beyond was written by a clock that was wrong."""
    return max(HOLD_S, cluster.timings.given_up_s) + CLOCKS_DIFFER_S


def is_kept(kept: DrainReason, snapshot: Snapshot) -> bool:
    """Whether a node is kept for a gang still."""
    most_s = snapshot.now_s + hold_max_s(snapshot.cluster)
    return snapshot.now_s < (kept.until_s or 0.0) <= most_s


def is_failed(node: Node) -> bool:
    """Whether a job of several nodes can do nothing more on it, although it runs there."""
    return node.state.is_drain and severity_of(node.reason) is Severity.FATAL


def holds(
    jobs: Iterable[Job], nodes: Iterable[Node], going: Collection[str], now_s: float
) -> Iterator[KeptNodes]:
    """What to hold as the nodes `going` are taken from the jobs that run there and are requeued;
    none: all that the jobs have.

    Before they are: Slurm gives a node to whoever waits for one within the moment in which a run
    ends there. Components of a heterogeneous job are requeued together.
    """
    open_names = {node.name for node in nodes if not (node.state.is_drain or node.state.is_down)}
    used: dict[str, set[str]] = {}
    for job in jobs:
        if job.is_running and job.is_requeueable:
            used.setdefault(gang_of(job), set()).update(job.node_names)
    for gang, names in sorted(used.items()):
        good = names & open_names - set(going)
        is_hit = not going or not names.isdisjoint(going)
        if good and is_hit and len(names) > 1:
            open_names -= good
            yield KeptNodes(tuple(sorted(good)), kept_for(gang, now_s + HOLD_S))


# Whoever ends a node for one of these has said so: AWS, or the cluster's hours.
NO_FAULTS = frozenset(
    {
        *(DrainCode.RECLAIM, DrainCode.NOTICED, DrainCode.SAVING, DrainCode.TAKEN),
        *(DrainCode.BLOCK_ENDS, DrainCode.CORDON, DrainCode.STOPPED),
    }
)


def faults(before: Reading, now: Reading, now_s: float) -> dict[str, Fault]:
    """Why the last runs of jobs ended that were requeued between two readings, where nodes of
    theirs failed. `now_s`: on the head's clock.
    """
    were = {node.name: node for node in before.nodes}
    are = {node.name: node for node in now.nodes}
    restarts = {gang_of(job): job.restarts for job in now.jobs}
    found: dict[str, Fault] = {}
    for job_id, (job, lost) in fallen(before, now).items():
        reasons = {name: node.reason for name, node in (were | are).items()}
        bad = [name for name in lost if code_of(reasons.get(name, "")) not in NO_FAULTS]
        if bad:
            ran_s = now_s - job.started_at_s if job.started_at_s is not None else None
            is_gone = not are.keys() & set(bad)
            said = _said(bad[0], are.get(bad[0]))
            found[job_id] = Fault(said, tuple(bad), restarts[job_id], is_gone, ran_s)
    return found


def _said(name: str, node: Node | None) -> str:
    if node is None:
        return f"node {name} is gone"
    reason = sentence_of(node.reason) or "no reason given"
    return f"node {name} failed: {reason}"


def relaunched(before: Reading, now: Reading, now_s: float) -> tuple[str, ...]:
    """The jobs that were requeued between two readings and had hardly begun, as where their nodes
    gave no answer to the launch; a heterogeneous one by its first component.

    Not what ran for long: who is preempted waits two minutes, or it would take the nodes again.
    """
    began = {
        job.job_id: job
        for job in before.jobs
        if job.is_running and job.is_requeueable
        if job.started_at_s is not None and now_s - job.started_at_s <= LAUNCH_S
    }
    again = (j for j in now.jobs if j.job_id in began and j.restarts > began[j.job_id].restarts)
    return tuple(dict.fromkeys(gang_of(job) for job in again))


def fallen(before: Reading, now: Reading) -> dict[str, tuple[Job, tuple[str, ...]]]:
    """The jobs that were requeued between two readings and that lost nodes meanwhile: each as it
    was, with the nodes. A heterogeneous job by its first component.

    Slurm keeps such a job waiting for two minutes, whoever has requeued it.
    """
    ran = {job.job_id: job for job in before.jobs if job.is_running and job.is_requeueable}
    up = {node.name for node in now.nodes if not (node.state.is_down or is_failed(node))}
    found: dict[str, tuple[Job, tuple[str, ...]]] = {}
    for job in now.jobs:
        old = ran.get(job.job_id)
        if old is None or job.restarts <= old.restarts:
            continue
        lost = tuple(name for name in old.node_names if name not in up)
        if lost:
            found[gang_of(job)] = ran.get(gang_of(job), old), lost
    return found
