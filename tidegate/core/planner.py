"""The planner: one pure function from what was seen to what should be done.

A plan is made by passes, in a written order: judge every node, finish what is in doubt, save what
is lost, retire what has had its time, serve the queue (existing nodes, then nodes in flight, then
new ones), open complete gangs, keep what a pool wants to keep, buy spare nodes, release the idle.

Each pass is given what it needs and returns what it decides. What one takes from those after it,
it counts in an account: what limits leave in `Purchase`, what is free on nodes in `Bins`, and which
nodes may leave in `Fleet`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.dealing import owned
from tidegate.core.buy.launches import LAUNCHES_MAX
from tidegate.core.buy.purchase import Purchase
from tidegate.core.buy.steering import Steering
from tidegate.core.demand.deadline import due_s, saved
from tidegate.core.demand.demand import in_order
from tidegate.core.demand.held import holds
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.rests import with_rests
from tidegate.core.fleet.starts import startable
from tidegate.core.fleet.templates import lessons, with_lessons
from tidegate.core.model.cluster import PoolType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import Action, Plan, Resume, Send, Stop, Terminate, Unmet, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.offers.seen_hazards import with_seen_hazards
from tidegate.core.passes.constrain import keep_off_spot
from tidegate.core.passes.departures import Departures
from tidegate.core.passes.doubt import count_doubt, finish_launches
from tidegate.core.passes.faults import watch_faults
from tidegate.core.passes.futile import Watched, held_back, watch_waiting
from tidegate.core.passes.gangs import awaited, keep_for_gangs
from tidegate.core.passes.gates import open_gangs
from tidegate.core.passes.hangs import requeue_hung
from tidegate.core.passes.headroom import hold_headroom
from tidegate.core.passes.idle import idle_nodes, keep_warm, release_idle
from tidegate.core.passes.idle_check import check_idle
from tidegate.core.passes.idle_gpus import give_back_idle
from tidegate.core.passes.lost_work import tell_lost_work
from tidegate.core.passes.moves import move_jobs
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
from tidegate.core.passes.orders import numbered
from tidegate.core.passes.queue import Queue
from tidegate.core.passes.resume import keep_beside_silent, requeue_failed
from tidegate.core.passes.retire import release_outdated, retire
from tidegate.core.passes.rollout import check_new, launches, leave_given_up
from tidegate.core.passes.room import Room
from tidegate.core.passes.serve import serve_queue
from tidegate.core.passes.sickness import watch_sick
from tidegate.core.passes.silence import replacements
from tidegate.core.passes.sooner_start import SoonerStarts
from tidegate.core.passes.spares import Spares, buy_spares, learn_arrivals, want_spares
from tidegate.core.passes.steer import steer
from tidegate.core.passes.stopped import end_stale, start_stopped, stop_instead
from tidegate.core.passes.ultraservers import end_in_ultraservers
from tidegate.core.passes.vain import watch_vain

# How often the passes may run for one plan where jobs that get no node hold places under a cap.
# They may run more often while no job runs and none is served, since else all would wait for ever:
# until the runs of one plan have judged this many jobs in all.
ATTEMPTS_MIN = 4
JOBS_ATTEMPTED_MAX = 5_000

# What a job asks of nodes, and what of it decides where it may be sold any; its place in the queue
# left out.
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
    "restarts",
)


def plan(snapshot: Snapshot, *, launches_max: int = LAUNCHES_MAX) -> Plan:
    """What to do about `snapshot`, and one verdict for every pending job.

    The same snapshot, in any order of its parts, gives the same plan.
    """
    if stale := snapshot.staleness:
        decided = _in_silence(with_seen_hazards(snapshot), launches_max)
        return Plan(_sorted(decided, snapshot), (), (), (stale,))
    made = considered(snapshot, launches_max)
    bought = launches(made.snapshot, made.fleet, made.purchase)
    needs = {need.job_id: need for need in made.queue.needs}
    sooner = SoonerStarts(made.snapshot, made.purchase.usage, needs)
    started = start_stopped(sooner, made.fleet.members, bought, launches_max)
    jobs = made.snapshot.heard.reading.jobs
    actions = (*made.actions, *owned(tuple(started), jobs, snapshot.cluster.prefetch))
    return Plan(
        _sorted(actions, snapshot),
        tuple(made.queue.served[key] for key in sorted(made.queue.served)),
        tuple(made.queue.unmet[key] for key in sorted(made.queue.unmet)),
        is_cut=made.purchase.builder.is_cut,
        usd_per_hour=round(made.purchase.usage.expected_usd_per_hour, 4),
        idle=made.idle,
    )


@frozen
class Considered:
    """What a plan is made from: every pass has run.

    `snapshot`: with what the passes learn of it; `bins`: what is left on nodes; `departures`:
    which nodes go when new ones have come; `spares`: which stay ready; `idle`: what idle ones are
    for.
    """

    snapshot: Snapshot
    fleet: Fleet
    purchase: Purchase
    bins: Bins
    queue: Queue
    departures: Departures
    spares: Mapping[PoolType, Spares]
    idle: Mapping[str, IdleUse]
    actions: tuple[Action, ...]


def considered(snapshot: Snapshot, launches_max: int = LAUNCHES_MAX) -> Considered:
    """What a plan is made from. The snapshot has a digest."""
    snapshot = with_seen_hazards(snapshot)
    fleet = members(snapshot)
    learns = lessons(snapshot, fleet)
    made = _last_attempt(with_lessons(snapshot, learns), fleet, launches_max)
    return replace(made, actions=(*learns, *made.actions))  # the passes learn the same and more


def _sorted(actions: Iterable[Action], snapshot: Snapshot) -> tuple[Action, ...]:
    """What saves money or jobs waits for nothing: orders, then ends, then purchases."""
    rank = {Send: 0, Terminate: 1, Stop: 1, Resume: 2, Launch: 3}
    by_rank = sorted(numbered(actions, snapshot), key=lambda each: rank.get(type(each), 4))
    return tuple(by_rank)


def _in_silence(snapshot: Snapshot, launches_max: int) -> Iterator[Action]:
    """While the head is silent nobody knows what runs where."""
    ours, purchase = members(snapshot), Purchase(snapshot, launches_max)
    count_doubt(snapshot, purchase, Bins())
    ended = tuple(stop_instead(snapshot, ours, end_released(snapshot, ours)))
    ended = (*ended, *end_stale(snapshot, ours), *end_in_ultraservers(snapshot, ours))
    decided = (*finish_launches(snapshot, purchase), *ended)
    yield from (*decided, *reprice(snapshot, ours, decided))
    yield from replacements(snapshot, ours, launches_max)


def _last_attempt(snapshot: Snapshot, fleet: Sequence[Member], launches_max: int) -> Considered:
    """What all passes decide in the last of the attempts that caps of accounting ask for.

    A job that gets no capacity holds no place under a cap of accounting: where there are caps,
    the passes run again without such jobs and those like them, so that others may have their
    places.
    """
    passed_over = held_back(snapshot)
    reading = snapshot.heard.reading
    has_caps = bool(reading.associations or reading.licences)
    attempts_max = _attempts_max(snapshot)
    for attempt in range(1, attempts_max + 1):
        made = _attempt(snapshot, fleet, passed_over, launches_max)
        queue = made.queue
        refused = queue.refused
        is_capped = has_caps and len(queue.unmet) > len(refused)
        is_still = not queue.served and all(job.is_pending for job in reading.jobs)
        is_last = attempt >= (attempts_max if is_still else ATTEMPTS_MIN)
        if is_last or not refused or not is_capped or made.purchase.builder.is_full:
            break
        passed_over = {**queue.passed_over, **refused, **_alike(refused, queue, snapshot)}
    return made


def _attempt(
    snapshot: Snapshot,
    ours: Sequence[Member],
    passed_over: Mapping[str, Unmet],
    launches_max: int,
) -> Considered:
    """What all passes decide without the jobs that are passed over, in their order."""
    fleet, bins = Fleet(snapshot, ours), Bins()
    snapshot = with_rests(snapshot, fleet.judged)
    purchase = Purchase(snapshot, launches_max)
    steering = Steering(snapshot, purchase.offer_groups, purchase.usage)
    room = Room(fleet, bins, steering)

    count_doubt(snapshot, purchase, bins)
    decided = _of_nodes(snapshot, room, purchase)
    watched = _of_jobs(snapshot, fleet)
    decided = (*decided, *watched.actions, *bury(snapshot, fleet))
    decided = (*decided, *leave_given_up(snapshot, fleet, purchase, bins), *check_new(snapshot))
    departures = retire(snapshot, fleet, purchase, bins)
    decided = (*decided, *departures.actions)

    steering.starts = startable(snapshot, ours)
    spares = want_spares(snapshot, purchase.offer_groups, steering.starts)
    steering.has_spares = frozenset(each for each in spares if spares[each].bought)
    queue = serve_queue(snapshot, room, purchase, {**passed_over, **watched.passed_over})

    moves = move_jobs(snapshot, room, purchase)
    decided = (*decided, *moves.actions)

    known = _noted(snapshot, decided)
    waiting = [*awaited(snapshot, queue.gangs), *moves.gangs]
    decided = (*decided, *keep_for_gangs(snapshot, fleet, waiting))
    gangs = [*queue.gangs, *moves.gangs]
    decided = (*decided, *reopen(fleet, waiting, gangs, snapshot.now_s))
    decided = (*decided, *open_gangs(snapshot, fleet, bins, gangs, known))
    outdated = {each.node.name for each in departures.idle}
    headroom = hold_headroom(snapshot, bins, last=outdated).names
    departures = release_outdated(snapshot, fleet, purchase, bins, departures, headroom)
    decided = (*decided, *departures.actions)
    keep_warm(snapshot, fleet, purchase, bins, departures)
    decided = (*decided, *learn_arrivals(snapshot, purchase.offer_groups, queue.needs))
    kept = buy_spares(snapshot, purchase, bins, queue, spares)
    idle = idle_nodes(snapshot, fleet, bins, departures.replacing, kept)
    decided = (*decided, *release_idle(snapshot, fleet, purchase, bins, queue, idle))
    decided = (*decided, *check_idle(snapshot, fleet, bins, queue, idle, decided))

    decided = (*decided, *watch_vain(snapshot, fleet, queue, known, decided))
    decided = (*decided, *steer(snapshot, room, queue.gangs, decided))
    starting = {gang.key for gang in queue.gangs if gang.is_there}
    decided = (*decided, *keep_off_spot(snapshot, purchase, bins, queue.needs, starting))
    decided = (*decided, *watch_waiting(snapshot, queue.served, _noted(snapshot, decided)))
    decided = (*decided, *reprice(snapshot, ours, decided))
    found = snapshot, fleet, purchase, bins, queue, departures, kept
    return Considered(*found, idle.uses, decided)


def _of_nodes(snapshot: Snapshot, room: Room, purchase: Purchase) -> tuple[Action, ...]:
    """What each node is good for, and what becomes of it and of the jobs on it."""
    fleet = room.fleet
    return (
        *stop_instead(snapshot, fleet.members, judge_nodes(snapshot, room, purchase)),
        *finish_launches(snapshot, purchase),
        *save_jobs(snapshot, fleet),
        *end_in_ultraservers(snapshot, fleet.members),
        *end_jobs(snapshot, fleet),
        *requeue_failed(snapshot, fleet),
        *keep_beside_silent(snapshot, fleet),
        *order_out(snapshot, fleet),
    )


def _of_jobs(snapshot: Snapshot, fleet: Fleet) -> Watched:
    """Which jobs fail, hang or idle again and again. What one pass notes the next one knows."""
    sick = watch_sick(snapshot, fleet, _noted(snapshot, ()))
    decided = sick.actions
    faults = watch_faults(snapshot, _noted(snapshot, decided))
    decided = (*decided, *faults.actions)
    decided = (*decided, *requeue_hung(snapshot, _noted(snapshot, decided)))
    decided = (*decided, *tell_lost_work(snapshot, _noted(snapshot, decided)))
    decided = (*decided, *give_back_idle(snapshot, _noted(snapshot, decided)))
    return Watched(decided, {**sick.passed_over, **faults.passed_over})


def _attempts_max(snapshot: Snapshot) -> int:
    """Enough for each job of a short queue to be refused in its turn; of a long one not all are."""
    jobs = len(snapshot.digest.reading.jobs) if snapshot.digest else 0
    return max(ATTEMPTS_MIN, JOBS_ATTEMPTED_MAX // max(jobs, 1))


def _noted(snapshot: Snapshot, decided: Iterable[Action]) -> dict[str, Stuck]:
    """What is known of jobs, with what passes have just decided to note of them."""
    known = {each.job_id: each for each in snapshot.stuck}
    return known | {each.stuck.job_id: each.stuck for each in decided if isinstance(each, Watch)}


def _alike(refused: Mapping[str, Unmet], queue: Queue, snapshot: Snapshot) -> dict[str, Unmet]:
    """Jobs that ask the very same as one that gets no capacity: each would hold a place under a
    cap in its turn, and get none either.
    """

    def asked(job: Job) -> Hashable:
        payers = snapshot.cluster.payers(job.account, job.user)
        return (*_asked(job), due_s(job), saved(job), payers)

    jobs = snapshot.heard.reading.jobs
    pending = [job for job in jobs if job.is_pending and not job.het_job_id]
    said: dict[Hashable, Unmet] = {}
    for job in in_order(job for job in pending if job.job_id in refused):
        said.setdefault(asked(job), refused[job.job_id])
    capped = queue.unmet.keys() - refused.keys() - queue.passed_over.keys()
    return {
        job.job_id: replace(known, job_id=job.job_id)
        for job in pending
        if job.job_id in capped and (known := said.get(asked(job))) and not holds(job)
    }
