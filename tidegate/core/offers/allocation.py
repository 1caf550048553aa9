"""On whom the bill of nodes falls: every second of every node belongs to a job or to a cause.

While jobs hold a node, each pays the share of it that it holds: the largest of its shares of GPUs,
CPUs and memory, as Slurm's PriorityFlags=MAX_TRES weighs them. What nobody holds beside them is
unused. Without a job a node is what spans tell that it was for, and idle where none does. The sums
are whole: all shares of a line of the bill add up to it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import GpuTime
from tidegate.core.model.idle_use import IdleSpan
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.spend import DAY_S, SECONDS_PER_HOUR, day_of


class TimeUse(StrEnum):
    """What a node's time went to."""

    JOB = "jobs"  # of a job that ended by itself, still runs, or went on from there
    CUT_SHORT = "cut short"  # of a run that went with its node, or was requeued: what was kept?
    LOST = "lost"  # of such a run: what is done again, and what it stood still
    UNUSED = "unused"  # held by nobody, beside jobs
    # no job on the node, and `IdleUse` says what it is for
    KEPT = "kept"
    WAITING = "waiting"
    DRAINED = "drained"
    IDLE = "idle"  # no job on the node, and nobody knows why
    BOOT = "boot"  # Slurm did not have the node yet, or never


@frozen
class LostTime:
    """The end of a run that was requeued, from which nothing was kept, in epoch seconds.
    `is_rest_kept`: the next run went on from what the time before had done; else nobody knows.
    """

    since_s: float
    is_rest_kept: bool


@frozen
class Run:
    """One run of a job, of which a requeued job has several. Times in epoch seconds.

    `gpus`, `cpus`, `memory_mib`: on each of its nodes, and `shares`, its shards or mps there.
    `is_cut_short`: it was requeued, or failed with its node. `eligible_at_s`: since when nothing
    but Slurm kept it from starting. `gpu_times`: what its nodes told of its GPUs, at most one for
    each node and day. `lost`: what is known of work that went with it; None: nothing.
    """

    job_id: str
    user: str
    account: str
    partition: str
    name: str
    nodes: tuple[str, ...]
    started_at_s: float
    ended_at_s: float
    gpus: float
    cpus: float
    memory_mib: float
    is_cut_short: bool = False
    eligible_at_s: float | None = None
    gpu_times: tuple[GpuTime, ...] = ()
    shares: float = 0.0
    lost: LostTime | None = None

    @property
    def wait_s(self) -> float | None:
        """How long it waited since it might start; None: not known."""
        if self.eligible_at_s is None:
            return None
        return max(0.0, self.started_at_s - self.eligible_at_s)


@frozen
class Accounted:
    """What the head knows of who ran, and of what nodes without a job were for."""

    runs: tuple[Run, ...] = ()
    idle: tuple[IdleSpan, ...] = ()


@frozen
class Share:
    """A piece of a node's time: whose it was and what it cost. `run` None: nobody's.

    Of the GPU-hours that a run held, `idle_gpu_hours` are of GPUs that did nothing, as far as
    their node told of them; it did of `seen_gpu_hours`.
    """

    bill: Bill
    use: TimeUse
    run: Run | None
    day: str
    usd: float
    gpu_hours: float
    idle_gpu_hours: float = 0.0
    seen_gpu_hours: float = 0.0


def allocated(
    bills: Sequence[Bill],
    runs: Iterable[Run],
    types: Mapping[str, InstanceType],
    since_s: float,
    until_s: float,
    idle: Iterable[IdleSpan] = (),
) -> Iterator[Share]:
    """The shares of all that was billed between two moments. `types`: of the bills, by name;
    `idle`: as far as it is known what nodes without a job were for.
    """
    on_node: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        for name in run.nodes:
            on_node[name].append(run)
    spans = _by_node(idle)
    for bill in bills:
        known = spans.get(bill.instance_id, ())
        yield from _of_bill(bill, on_node[bill.instance_id], known, types, (since_s, until_s))


def _of_bill(
    bill: Bill,
    runs: Sequence[Run],
    spans: Sequence[IdleSpan],
    types: Mapping[str, InstanceType],
    between_s: tuple[float, float],
) -> Iterator[Share]:
    start_s, end_s = max(bill.since_s, between_s[0]), min(bill.until_s, between_s[1])
    if start_s >= end_s:
        return
    joined_at_s = end_s if bill.joined_at_s is None else bill.joined_at_s
    # A job runs on no node that Slurm does not have, whatever was noted of it; one that was stopped
    # and started again boots again, whoever ran there before.
    of_now = (run.started_at_s for run in runs if run.ended_at_s > bill.launched_at_s)
    joined_at_s = min([joined_at_s, *of_now])
    bounds = {start_s, end_s, joined_at_s, *_midnights(start_s, end_s)}
    for run in runs:
        bounds |= {run.started_at_s, run.ended_at_s}
        bounds |= {run.lost.since_s} if run.lost else set()
    kind = types.get(bill.offering.instance_type)
    moments = sorted(each for each in bounds if start_s <= each <= end_s)
    for begin_s, finish_s in pairwise(moments):
        if bill.is_stopped:
            yield _of_disk(bill, begin_s, finish_s)
            continue
        held = [run for run in runs if run.started_at_s <= begin_s < run.ended_at_s]
        if held or begin_s < joined_at_s:
            rest = TimeUse.UNUSED if held else TimeUse.BOOT
            yield from _of_piece(bill, held, kind, rest, begin_s, finish_s)
            continue
        for from_s, to_s, use in _idle_parts(spans, begin_s, finish_s):
            yield from _of_piece(bill, (), kind, use, from_s, to_s)


def _by_node(idle: Iterable[IdleSpan]) -> Mapping[str, Sequence[IdleSpan]]:
    """In the order of time; what ends before it begins, by a clock, says nothing."""
    found: defaultdict[str, list[IdleSpan]] = defaultdict(list)
    for span in idle:
        if span.since_s < span.until_s:
            found[span.node].append(span)
    return {name: sorted(spans, key=lambda span: span.since_s) for name, spans in found.items()}


def _idle_parts(
    spans: Sequence[IdleSpan], begin_s: float, end_s: float
) -> Iterator[tuple[float, float, TimeUse]]:
    """The whole of it, cut by what is known. Of two spans that overlap the earlier one counts."""
    at_s = begin_s
    first = max(bisect_right(spans, begin_s, key=lambda span: span.since_s) - 1, 0)
    for number in range(first, len(spans)):
        span = spans[number]
        if span.since_s >= end_s:
            break
        from_s, to_s = max(span.since_s, at_s), min(span.until_s, end_s)
        if to_s <= from_s:
            continue
        if at_s < from_s:
            yield at_s, from_s, TimeUse.IDLE
        yield from_s, to_s, TimeUse(span.use.value)
        at_s = to_s
    if at_s < end_s:
        yield at_s, end_s, TimeUse.IDLE


def _of_disk(bill: Bill, begin_s: float, end_s: float) -> Share:
    """A node that stands still, to be started again, has no GPUs that anybody could use."""
    usd = (end_s - begin_s) / SECONDS_PER_HOUR * bill.usd_per_hour
    return Share(bill, TimeUse.KEPT, None, day_of(begin_s).name, usd, 0.0)


def _of_piece(
    bill: Bill,
    held: Sequence[Run],
    kind: InstanceType | None,
    rest: TimeUse,
    begin_s: float,
    end_s: float,
) -> Iterator[Share]:
    """`kind`: None: the type has left the catalogue, and its jobs pay it in equal parts."""
    hours, day = (end_s - begin_s) / SECONDS_PER_HOUR, day_of(begin_s).name
    gpus = [_gpus_of(run, kind) for run in held]
    node_gpus = kind.gpus if kind else sum(gpus)
    usd, gpu_hours = hours * bill.usd_per_hour, hours * node_gpus
    weights = [
        part_of(kind, of_run, run.cpus, run.memory_mib) if kind else 1 / len(held)
        for run, of_run in zip(held, gpus, strict=True)
    ]
    # Of what Slurm oversubscribes, and where a requeued run seems to overlap the next one.
    too_much = max(1.0, sum(weights))
    gpus = [min(each, node_gpus) for each in gpus]
    gpus_too_many = max(1.0, sum(gpus) / node_gpus) if node_gpus else 1.0
    for run, weight, of_run in zip(held, weights, gpus, strict=True):
        use = _use_of(run, begin_s)
        held_hours = hours * of_run / gpus_too_many
        idle, seen = (held_hours * part for part in _idle_and_seen(run, bill.instance_id, day))
        yield Share(bill, use, run, day, usd * weight / too_much, held_hours, idle, seen)
    usd_left = usd * max(0.0, 1.0 - sum(weights) / too_much)
    gpu_hours_left = max(0.0, gpu_hours - hours * sum(gpus) / gpus_too_many)
    if usd_left > 0 or gpu_hours_left > 0:
        yield Share(bill, rest, None, day, usd_left, gpu_hours_left)


def _use_of(run: Run, at_s: float) -> TimeUse:
    if not run.is_cut_short:
        return TimeUse.JOB
    if run.lost is None:
        return TimeUse.CUT_SHORT
    if at_s >= run.lost.since_s:
        return TimeUse.LOST
    return TimeUse.JOB if run.lost.is_rest_kept else TimeUse.CUT_SHORT


def _gpus_of(run: Run, kind: InstanceType | None) -> float:
    """With its part of a GPU that jobs share."""
    per_gpu = kind.shards_per_gpu if kind else 0
    return run.gpus + (run.shares / per_gpu if per_gpu else 0.0)


def _idle_and_seen(run: Run, node: str, day: str) -> tuple[float, float]:
    """Which parts of what a run held on a node that day idled, and were seen at all.

    Counted minutes may be a little more than what it held, by a clock: they are never more here.
    """
    for each in run.gpu_times:
        if each.node == node and each.day == day:
            starts_s = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
            held_s = min(run.ended_at_s, starts_s + DAY_S) - max(run.started_at_s, starts_s)
            if held_s <= 0 or run.gpus <= 0:
                return 0.0, 0.0
            held_gpu_s = max(held_s * run.gpus, each.seen_gpu_s)
            return min(each.idle_gpu_s, each.seen_gpu_s) / held_gpu_s, each.seen_gpu_s / held_gpu_s
    return 0.0, 0.0


def part_of(kind: InstanceType, gpus: float, cpus: float, memory_mib: float) -> float:
    """Which part of a node of this type pays who holds so much of it: the largest, at most all."""
    shares = [cpus / kind.cpus, memory_mib / kind.slurm_memory_mib]
    shares += [gpus / kind.gpus] if kind.gpus else []
    return min(1.0, max(shares))


def _midnights(start_s: float, end_s: float) -> Iterator[float]:
    at_s = (start_s // DAY_S + 1) * DAY_S
    while at_s < end_s:
        yield at_s
        at_s += DAY_S


# What shares are gathered by; a share of nobody's has no job, user, account or partition.
BY: Mapping[str, Callable[[Share], str]] = {
    "job": lambda share: f"{share.run.job_id} {share.run.name}".strip() if share.run else "",
    "user": lambda share: share.run.user if share.run else "",
    "account": lambda share: share.run.account if share.run else "",
    "partition": lambda share: share.run.partition if share.run else "",
    "pool": lambda share: share.bill.pool,
    "type": lambda share: share.bill.offering.instance_type,
    "day": lambda share: share.day,
}


@frozen
class Row:
    """What one of them cost. `name` "": nobody's. `usd`: by use; in all with `total_usd`."""

    name: str
    gpu_hours: float
    usd: Mapping[TimeUse, float]
    idle_gpu_hours: float = 0.0
    seen_gpu_hours: float = 0.0

    @property
    def total_usd(self) -> float:
        return sum(self.usd.values())


def rows(shares: Iterable[Share], by: str) -> tuple[Row, ...]:
    """The dearest first, days in their order; what is nobody's last."""
    usd: defaultdict[str, defaultdict[TimeUse, float]] = defaultdict(lambda: defaultdict(float))
    gpu_hours: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    name_of = BY[by]
    for share in shares:
        name = name_of(share)
        usd[name][share.use] += share.usd
        more = (share.gpu_hours, share.idle_gpu_hours, share.seen_gpu_hours)
        gpu_hours[name] = [a + b for a, b in zip(gpu_hours[name], more, strict=True)]
    found = [
        Row(name, held, dict(uses), idle, seen)
        for name, uses in usd.items()
        for held, idle, seen in [gpu_hours[name]]
    ]
    if by == "day":
        return tuple(sorted(found, key=lambda row: row.name))
    return tuple(sorted(found, key=lambda row: (not row.name, -row.total_usd, row.name)))
