"""Orders about jobs: requeue, hold, signal, cancel, tell, constrain, comment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.agent.asked import Carried, asked_jobs, result
from tidegate.agent.hold import hold
from tidegate.core.demand.constraint import with_feature
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.orders import Order, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Job, Reading
from tidegate.ports.slurm import Slurm


@dataclass(slots=True)
class Signalled:
    """Which runs of jobs got which signal: a second one would cut into their time to save.

    A run is a job on its nodes. Whoever asks may ask again at every look. `num_noted`: so far.
    """

    _runs: dict[str, tuple[str, tuple[str, ...], int]] = field(default_factory=dict)
    num_noted: int = 0

    def has(self, job: Job, signal: str) -> bool:
        noted = self._runs.get(job.job_id)
        return noted is not None and noted[:2] == (signal, job.node_names)

    def note(self, job: Job, signal: str) -> None:
        self._runs[job.job_id] = (signal, job.node_names, self.num_noted)
        self.num_noted += 1

    def forget_ended(self, jobs: Iterable[Job], num_noted: int) -> None:
        """Keep only the runs that are still in the queue, and those that were noted after the
        first `num_noted`, before which the queue was read: it may not show yet that they began.
        """
        there = {job.job_id: job.node_names for job in jobs}
        for job_id, (_, nodes, number) in list(self._runs.items()):
            if number < num_noted and there.get(job_id) != nodes:
                self._runs.pop(job_id, None)


def requeue(orders: Sequence[Order], slurm: Slurm, now_s: float) -> Carried:
    """Requeue what runs and may be, for an immediate start on those of its nodes that stay.

    Slurm requeues all components of a heterogeneous job with the first one, and none without it.
    """
    reading = slurm.read()
    asked = asked_jobs(orders, reading)
    leaders = {
        job.job_id: job.het_job_id or job.job_id
        for _, job in asked.pairs
        if job.is_running and job.is_requeueable
    }
    if leaders:
        going = {
            name for order, job in asked.pairs if job.job_id in leaders for name in order.on_nodes
        }
        hold(_together(reading, leaders.values()), going, reading, slurm, now_s)
    refused = slurm.requeue(tuple(dict.fromkeys(leaders.values()))) if leaders else {}
    errors = {each: refused[leader] for each, leader in leaders.items() if leader in refused}
    results = tuple(_requeued(order, job, errors) for order, job in asked.pairs)
    done = frozenset(leaders.values()).difference(refused)
    return Carried((*asked.settled, *results), requeued=done)


def _together(reading: Reading, leaders: Iterable[str]) -> list[Job]:
    """The jobs, and every component of those that are heterogeneous."""
    chosen = set(leaders)
    return [job for job in reading.jobs if (job.het_job_id or job.job_id) in chosen]


def _requeued(order: Order, job: Job, errors: Mapping[str, str]) -> OrderResult:
    if job.is_pending:
        return result(order, job.job_id, OrderOutcome.DONE, "The job waits already.")
    if not job.is_requeueable:
        detail = "The job may not be requeued (--no-requeue, or no batch job)."
        return result(order, job.job_id, OrderOutcome.KEPT, detail)
    if not job.is_running:
        detail = f"The job is {job.state}; only a running job is requeued."
        return result(order, job.job_id, OrderOutcome.KEPT, detail)
    return _by_error(order, job, errors, "The job starts again as soon as it has nodes.")


def hold_back(orders: Sequence[Order], slurm: Slurm) -> Carried:
    """Hold what waits; what runs as well where the guard says so."""
    asked = asked_jobs(orders, slurm.read())
    job_ids = tuple(dict.fromkeys(job.job_id for _, job in asked.pairs))
    refused = slurm.hold(job_ids) if job_ids else {}
    done = "The job is held until somebody releases it: scontrol release {}."
    results = (_by_error(o, job, refused, done.format(job.job_id)) for o, job in asked.pairs)
    return Carried((*asked.settled, *results))


def signal(orders: Sequence[Order], slurm: Slurm, signalled: Signalled) -> Carried:
    """Signal what runs, each run once. The orders share the signal.

    Slurm passes the signal of a heterogeneous job's first component on to all; the others have no
    script, and a signal of their own would not reach the one that there is.
    """
    name = orders[0].text
    reading = slurm.read()
    asked = asked_jobs(orders, reading)
    running = {job.job_id: job for job in reading.jobs if job.is_running}
    firsts = {
        job.job_id: running.get(job.het_job_id, job) for _, job in asked.pairs if job.is_running
    }
    saved = _saved_by_nodes(reading)
    had = {
        job_id
        for job_id, first in firsts.items()
        if signalled.has(first, name) or not saved.isdisjoint({job_id, first.job_id})
    }
    new = {first.job_id: first for job_id, first in firsts.items() if job_id not in had}
    refused = slurm.signal(tuple(new), name) if new else {}
    for first_id, first in new.items():
        if first_id not in refused:
            signalled.note(first, name)
    errors = {
        job_id: refused[first.job_id]
        for job_id, first in firsts.items()
        if job_id not in had and first.job_id in refused
    }
    results = tuple(_signalled(order, job, errors, had) for order, job in asked.pairs)
    return Carried((*asked.settled, *results))


def _saved_by_nodes(reading: Reading) -> set[str]:
    """Jobs that a node of theirs saves itself, by the ids of their first components too."""
    nodes = {each.name for each in reading.nodes if code_of(each.reason) is DrainCode.SAVING}
    jobs = [job for job in reading.jobs if not nodes.isdisjoint(job.node_names)]
    return {job.job_id for job in jobs} | {job.het_job_id for job in jobs if job.het_job_id}


def _signalled(order: Order, job: Job, errors: Mapping[str, str], had: set[str]) -> OrderResult:
    if job.job_id in had:
        return result(order, job.job_id, OrderOutcome.DONE, f"The job had {order.text} before.")
    if not job.is_running:
        detail = f"The job is {job.state}, not RUNNING."
        return result(order, job.job_id, OrderOutcome.KEPT, detail)
    return _by_error(order, job, errors, f"The job got {order.text}.")


def cancel(orders: Sequence[Order], slurm: Slurm) -> Carried:
    """End what runs. Slurm ends all components of a heterogeneous job with its first one."""
    asked = asked_jobs(orders, slurm.read())
    job_ids = tuple(dict.fromkeys(job.job_id for _, job in asked.pairs))
    refused = slurm.scancel(job_ids) if job_ids else {}
    results = (_by_error(o, job, refused, "The job is cancelled.") for o, job in asked.pairs)
    return Carried((*asked.settled, *results))


def tell(order: Order, slurm: Slurm) -> Carried:
    """Set the AdminComment of jobs that run, and add a line to their output.

    The comment is what counts: not every job has an output that Slurm can write to.
    """
    asked = asked_jobs((order,), slurm.read())
    results: list[OrderResult] = []
    for _, job in asked.pairs:
        slurm.comment(job.job_id, order.text)
        refused = slurm.tell(job.job_id, order.text)
        detail = f", not its output: {refused}" if refused else ", and a line in its output"
        said = f"The job carries the comment{detail}."
        results.append(result(order, job.job_id, OrderOutcome.DONE, said))
    return Carried((*asked.settled, *results))


def comment(order: Order, slurm: Slurm) -> Carried:
    """Set the jobs' AdminComment."""
    asked = asked_jobs((order,), slurm.read())
    for _, job in asked.pairs:
        slurm.comment(job.job_id, order.text)
    detail = "The job carries the comment."
    done = (result(order, job.job_id, OrderOutcome.DONE, detail) for _, job in asked.pairs)
    return Carried((*asked.settled, *done))


def constrain(order: Order, slurm: Slurm) -> Carried:
    """Have what still waits ask for one feature more, beside what its user asked for by now."""
    reading = slurm.read()
    asked = asked_jobs((order,), reading)
    texts = {job.job_id: with_feature(job.constraint, order.text) for _, job in asked.pairs}
    by_text: dict[str, list[str]] = {}
    for _, job in asked.pairs:
        text = texts[job.job_id]
        if text is not None and text != job.constraint:
            by_text.setdefault(text, []).append(job.job_id)
    errors: dict[str, str] = {}
    for text, job_ids in by_text.items():
        errors |= slurm.constrain(tuple(job_ids), text)
    errors = _by_row(errors, reading)
    results = tuple(_constrained(order, job, errors, texts) for _, job in asked.pairs)
    return Carried((*asked.settled, *results))


def _by_row(errors: Mapping[str, str], reading: Reading) -> dict[str, str]:
    """Of an array Slurm names the tasks that it refuses; those that wait stand in its own row."""
    rows = {job.job_id for job in reading.jobs}
    return {name if name in rows else name.partition("_")[0]: why for name, why in errors.items()}


def _constrained(
    order: Order, job: Job, errors: Mapping[str, str], texts: Mapping[str, str | None]
) -> OrderResult:
    if texts[job.job_id] is None:
        detail = f"To its constraint {job.constraint!r} no feature can be added."
        return result(order, job.job_id, OrderOutcome.KEPT, detail)
    return _by_error(order, job, errors, f"The job asks for {order.text}.")


def _by_error(order: Order, job: Job, errors: Mapping[str, str], done: str) -> OrderResult:
    if job.job_id in errors:
        detail = f"Slurm refused: {errors[job.job_id]}."
        return result(order, job.job_id, OrderOutcome.FAILED, detail)
    return result(order, job.job_id, OrderOutcome.DONE, done)
