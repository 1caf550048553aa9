"""The planner: one pure function from what was seen to what should be done.

A plan is made by passes over one working state, in a written order: judge every node, finish
what is in doubt, save what is lost, retire what has had its time, serve the queue (existing
nodes, then nodes in flight, then new ones), open complete gangs, keep what a pool wants to keep,
buy spare nodes, release the idle.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from tidegate.core.buy.launches import LAUNCHES_MAX, owned
from tidegate.core.demand.deadline import due_s
from tidegate.core.demand.demand import in_order
from tidegate.core.demand.held import holds
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.templates import lessons, with_lessons
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import Action, Plan, Resume, Send, Terminate, Unmet
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.constrain import keep_off_spot
from tidegate.core.passes.doubt import count_doubt, finish_launches
from tidegate.core.passes.faults import watch_faults
from tidegate.core.passes.futile import held_back, watch_waiting
from tidegate.core.passes.gangs import keep_for_gangs, open_gangs
from tidegate.core.passes.hangs import requeue_hung
from tidegate.core.passes.idle import keep_warm, release_idle
from tidegate.core.passes.idle_gpus import give_back_idle
from tidegate.core.passes.nodes import (
    bury,
    end_jobs,
    end_released,
    judge_nodes,
    order_out,
    reopen,
    reprice,
    save_jobs,
)
from tidegate.core.passes.queue import Queue
from tidegate.core.passes.resume import keep_beside_silent, requeue_failed
from tidegate.core.passes.retire import release_outdated, retire
from tidegate.core.passes.rollout import check_new, launches, leave_given_up
from tidegate.core.passes.serve import serve_queue
from tidegate.core.passes.sickness import watch_sick
from tidegate.core.passes.silence import replacements
from tidegate.core.passes.spares import buy_spares, learn_arrivals, want_spares
from tidegate.core.passes.steer import steer
from tidegate.core.passes.vain import watch_vain
from tidegate.core.passes.work import Pass, Work, after

PASSES: tuple[Pass, ...] = (
    count_doubt,
    judge_nodes,
    finish_launches,
    save_jobs,
    end_jobs,
    requeue_failed,
    keep_beside_silent,
    order_out,
    watch_sick,
    watch_faults,
    requeue_hung,
    give_back_idle,
    bury,
    leave_given_up,
    check_new,
    retire,
    want_spares,
    serve_queue,
    keep_for_gangs,
    reopen,
    open_gangs,
    release_outdated,
    keep_warm,
    learn_arrivals,
    buy_spares,
    release_idle,
    watch_vain,
    steer,
    keep_off_spot,
    watch_waiting,
    reprice,
)

# How often the passes may run for one plan where jobs that get no node hold places under a cap.
# They may run more often while no job runs and none is served, since else all would wait for ever:
# until the runs of one plan have judged this many jobs in all.
ATTEMPTS_MIN = 4
JOBS_ATTEMPTED_MAX = 5_000

# What a job asks of nodes; whose it is and its place in the queue left out.
_asked: Callable[[Job], tuple[Hashable, ...]] = attrgetter(
    "partitions",
    "nodes",
    "shape",
    "constraint",
    "spreads",
    "account",
    "qos",
    "time_limit_s",
    "time_min_s",
    "is_requeueable",
    "is_checkpointed",
    "required_nodes",
    "excluded_nodes",
    "reservation",
)

# While the head is silent nobody knows what runs where. Beside this, `silence` buys.
PASSES_IN_SILENCE: tuple[Pass, ...] = (count_doubt, finish_launches, end_released, reprice)


def plan(snapshot: Snapshot, *, launches_max: int = LAUNCHES_MAX) -> Plan:
    """What to do about `snapshot`, and one verdict for every pending job.

    The same snapshot, in any order of its parts, gives the same plan.
    """
    stale = snapshot.staleness
    if stale:
        fleet = members(snapshot)
        work = after(PASSES_IN_SILENCE, Work(snapshot, launches_max, fleet))
        actions = (*work.decided, *replacements(snapshot, fleet, launches_max))
        return Plan(_sorted(actions), (), (), (stale,))
    work = considered(snapshot, launches_max)
    return Plan(
        _sorted((*work.decided, *owned(launches(work), work.digest.reading.jobs))),
        tuple(work.queue.served[key] for key in sorted(work.queue.served)),
        tuple(work.queue.unmet[key] for key in sorted(work.queue.unmet)),
        is_cut=work.launch_builder.is_cut,
        usd_per_hour=round(work.usage.expected_usd_per_hour, 4),
    )


def considered(snapshot: Snapshot, launches_max: int = LAUNCHES_MAX) -> Work:
    """What a plan is made from: every pass has run. The snapshot has a digest."""
    fleet = members(snapshot)
    learns = lessons(snapshot, fleet)
    work = _served(with_lessons(snapshot, learns), fleet, launches_max)
    work.decided = (*learns, *work.decided)  # what the passes learn is the same and more
    return work


def _sorted(actions: Iterable[Action]) -> tuple[Action, ...]:
    """What saves money or jobs waits for nothing: orders, then ends, then purchases."""
    rank = {Send: 0, Terminate: 1, Resume: 2, Launch: 3}
    return tuple(sorted(actions, key=lambda action: rank.get(type(action), 4)))


def _served(snapshot: Snapshot, fleet: Sequence[Member], launches_max: int) -> Work:
    """The state after all passes.

    A job that gets no capacity holds no place under a cap of accounting: where there are caps,
    the passes run again without such jobs and those like them, so that others may have their
    places.
    """
    passed_over = held_back(snapshot)
    attempts_max = _attempts_max(snapshot)
    for attempt in range(1, attempts_max + 1):
        work = after(PASSES, Work(snapshot, launches_max, fleet, Queue(passed_over)))
        refused = work.queue.refused
        reading = work.digest.reading
        has_caps = bool(reading.associations or reading.licences)
        is_capped = has_caps and len(work.queue.unmet) > len(refused)
        is_still = not work.queue.served and all(job.is_pending for job in reading.jobs)
        is_last = attempt >= (attempts_max if is_still else ATTEMPTS_MIN)
        if is_last or not refused or not is_capped or work.launch_builder.is_full:
            break
        passed_over |= refused | _alike(refused, work)
    return work


def _attempts_max(snapshot: Snapshot) -> int:
    """Enough for each job of a short queue to be refused in its turn; of a long one not all are."""
    jobs = len(snapshot.digest.reading.jobs) if snapshot.digest else 0
    return max(ATTEMPTS_MIN, JOBS_ATTEMPTED_MAX // max(jobs, 1))


def _alike(refused: Mapping[str, Unmet], work: Work) -> dict[str, Unmet]:
    """Jobs that ask the very same as one that gets no capacity: each would hold a place under a
    cap in its turn, and get none either.
    """
    pending = [job for job in work.digest.reading.jobs if job.is_pending and not job.het_job_id]
    said: dict[Hashable, Unmet] = {}
    for job in in_order(job for job in pending if job.job_id in refused):
        said.setdefault((*_asked(job), due_s(job)), refused[job.job_id])
    capped = work.queue.unmet.keys() - refused.keys() - work.queue.passed_over.keys()
    return {
        job.job_id: replace(known, job_id=job.job_id)
        for job in pending
        if job.job_id in capped
        and (known := said.get((*_asked(job), due_s(job))))
        and not holds(job)
    }
