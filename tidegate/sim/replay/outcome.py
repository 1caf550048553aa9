"""What came of a replay, as figures: money, waits, launches, and what nobody could serve."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.core.demand.fit import lacks, part_of_gpu
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.sim.replay.meters import launches_over_budget
from tidegate.sim.replay.plans_paid import SAVED, UNUSED, PlansPaid, plans_paid
from tidegate.sim.replay.state import EPOCH_S, Machine, Run
from tidegate.sim.replay.trace import DAY_S, NEURON
from tidegate.sim.replay.world import BILLED_LEAST_S, World

HOUR_S = 3600.0
# Job sizes by GPUs, as waits are told: up to and including; those with parts of GPUs by themselves.
PARTS = "parts of GPUs"
SIZES = ((0, "no GPU"), (1, "1 GPU"), (7, "2-7 GPUs"), (8, "8 GPUs"), (1 << 30, "more"))


@frozen
class Waits:
    """Seconds from submission to the first start."""

    jobs: int
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    mean_s: float


@frozen
class Outcome:
    """The figures of one replay.

    `bound_usd`: every GPU-second at the cheapest on-demand price per GPU of a type that can hold
    the job, without idle, boot or waiting; no policy reaches it. `by_pool`: USD by "pool market".
    `unmet`: jobs that never ran, by reason. `breaches`: nodes bought over a limit or on a
    budget that was spent.
    """

    name: str
    policy: str
    jobs: int
    jobs_ended: int
    cost_usd: float
    bound_usd: float
    by_pool: tuple[tuple[str, float], ...]
    gpu_hours_billed: float
    gpu_hours_used: float
    gpu_hours_lost: float
    idle_share: float
    waits: Waits
    waits_by_size: tuple[tuple[str, Waits], ...]
    launches: int
    interruptions: int
    most_nodes: int
    most_usd_per_hour: float
    breaches: int
    unmet: tuple[tuple[str, int], ...]
    looks: int

    @property
    def multiple(self) -> float:
        """Of the bound."""
        return self.cost_usd / self.bound_usd if self.bound_usd else 0.0


def billed_s(machine: Machine) -> float:
    """The seconds that EC2 bills of a node."""
    assert machine.ended_s is not None
    return max(machine.ended_s - machine.launched_s, BILLED_LEAST_S)


def cost_usd(machine: Machine) -> float:
    return machine.cost_usd(machine.launched_s, machine.launched_s + billed_s(machine))


def bound_usd(runs: Sequence[Run], cluster: Cluster) -> float:
    """The lower bound for all jobs that any type of the cluster can hold."""
    cheapest: dict[int, float | None] = {}
    total = 0.0
    for run in runs:
        key = run.kind
        if key not in cheapest:
            cheapest[key] = _usd_per_unit(run, cluster)
        usd = cheapest[key]
        if usd is not None:
            units = run.job.gpus_total or run.job.cpus * run.job.nodes
            total += usd * units * run.job.duration_s / HOUR_S
    return total


def _usd_per_unit(run: Run, cluster: Cluster) -> float | None:
    """USD per GPU-hour, or per CPU-hour for a job without GPUs; None: nothing holds it."""
    shape = run.pending.shape
    found: list[float] = []
    for pool in cluster.pools:
        for of in pool.instance_types:
            if lacks(shape, of):
                continue
            if shape.gpus and (shape.gres == NEURON) != (of.gres == NEURON):
                continue
            # Of each device that it asks for; of one that is a GPU, or alike with all others, 1.
            device = part_of_gpu(shape, of) / max(shape.gpus, 1) or 1.0
            for _, offering in pool.offerings():
                if offering.instance_type == of.name and offering.market is Market.ON_DEMAND:
                    usd = cluster.prices[offering]
                    found.append(usd * device / of.gpus if shape.gpus else usd / of.cpus)
    return min(found, default=None)


def waits_of(runs: Sequence[Run]) -> Waits:
    waits = sorted(run.wait_s for run in runs if run.first_started_s >= 0)
    mean_s = sum(waits) / max(len(waits), 1)
    p50_s, p95_s, p99_s, max_s = (_at(waits, percent) for percent in (50, 95, 99, 100))
    return Waits(len(waits), p50_s, p95_s, p99_s, max_s, mean_s)


def _at(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(rank - 1, 0)] if ordered else 0.0


def outcome(
    world: World, name: str, policy: str, unmet: dict[str, str], disks_usd: Mapping[str, float]
) -> Outcome:
    """All figures of a replay that has ended. `disks_usd`: what stopped nodes cost, by pool."""
    by_pool = {f"{pool} stopped": usd for pool, usd in disks_usd.items()}
    for each in world.gone:
        key = f"{each.pool} {each.offering.market.value}"
        by_pool[key] = by_pool.get(key, 0.0) + cost_usd(each)
    paid = plans_paid_in(world)
    if paid.spans:
        saved_usd, unused_usd = paid.usd()
        by_pool |= {SAVED: -saved_usd, UNUSED: unused_usd}
    billed = sum(billed_s(m) * m.instance_type.whole_gpus for m in world.gone) / HOUR_S
    used = sum(m.gpu_busy_s for m in world.gone) / HOUR_S
    labels = (*(label for _, label in SIZES), PARTS)
    by_size = [(label, [r for r in world.runs if _size(r) == label]) for label in labels]
    most_nodes, most_usd, breaches = _peaks(world, paid)
    left = [run for run in world.runs if run.ended_s < 0]
    reasons = Counter(
        run.reason or unmet.get(run.pending.job_id, "not started when the replay ended")
        for run in left
    )
    return Outcome(
        name=name,
        policy=policy,
        jobs=len(world.runs),
        jobs_ended=len(world.runs) - len(left),
        cost_usd=sum(by_pool.values()),
        bound_usd=bound_usd([r for r in world.runs if r.ended_s >= 0], world.cluster),
        by_pool=tuple(sorted(by_pool.items())),
        gpu_hours_billed=billed,
        gpu_hours_used=used,
        gpu_hours_lost=world.lost_s / HOUR_S,
        idle_share=1.0 - used / billed if billed else 0.0,
        waits=waits_of(world.runs),
        waits_by_size=tuple((label, waits_of(runs)) for label, runs in by_size if runs),
        launches=world.num_launches,
        interruptions=world.num_interruptions,
        most_nodes=most_nodes,
        most_usd_per_hour=most_usd,
        breaches=breaches + launches_over_budget(world.gone, world.cluster),
        unmet=tuple(sorted(reasons.items())),
        looks=world.num_looks,
    )


def _size(run: Run) -> str:
    if run.job.has_parts:
        return PARTS
    return next(label for most, label in SIZES if run.job.gpus_total <= most)


def plans_paid_in(world: World) -> PlansPaid:
    """What Savings Plans pay from the history's begin to the end of its last node."""
    ended_s = max((each.ended_s or 0.0 for each in world.gone), default=EPOCH_S)
    return plans_paid(world.gone, world.cluster.savings_plans, EPOCH_S, ended_s)


@dataclass(slots=True)
class _Use:
    """What nodes that are there at a time come to."""

    nodes: int = 0
    gpus: int = 0
    usd: float = 0.0

    def add(self, machine: Machine, sign: int) -> None:
        self.nodes += sign
        self.gpus += sign * machine.instance_type.gpus
        self.usd += sign * machine.usd_per_hour

    def is_over(self, limits: Limits, usd: float) -> bool:
        measured = (
            (self.nodes, limits.nodes),
            (self.gpus, limits.gpus),
            (usd - 1e-6, limits.usd_per_hour),
        )
        return any(most is not None and value > most for value, most in measured)


def _peaks(world: World, paid: PlansPaid) -> tuple[int, float, int]:
    """The most nodes and USD per hour at a time, and how often a launch broke a limit.

    What ends at an instant is gone before what begins at it.
    """
    changes: list[tuple[float, int, Machine]] = []
    for each in world.gone:
        assert each.ended_s is not None
        changes += [(each.launched_s, 1, each), (each.ended_s, -1, each)]
    changes.sort(key=lambda change: (change[0], change[1], change[2].name))
    bounds = {each.name: each.limits for each in world.cluster.pools}
    pools = {name: _Use() for name in bounds}
    use, most_nodes, most_usd, breaches = _Use(), 0, 0.0, 0
    for at_s, sign, machine in changes:
        use.add(machine, sign)
        pools[machine.pool].add(machine, sign)
        now_usd = use.usd - paid.saved_at(at_s)
        most_nodes, most_usd = max(most_nodes, use.nodes), max(most_usd, now_usd)
        of_pool = pools[machine.pool]
        is_over = use.is_over(world.cluster.limits, now_usd) or of_pool.is_over(
            bounds[machine.pool], of_pool.usd
        )
        breaches += sign > 0 and is_over
    return most_nodes, most_usd, breaches


def as_days(world: World) -> list[tuple[int, float]]:
    """USD of each day since the history's start, with what Savings Plans save and leave unused."""
    by_day: dict[int, float] = {}
    for each in world.gone:
        from_s = each.launched_s - EPOCH_S
        end_s = from_s + billed_s(each)
        while from_s < end_s:
            day = int(from_s // 86400)
            until_s = min(end_s, (day + 1) * 86400.0)
            usd = each.cost_usd(from_s + EPOCH_S, until_s + EPOCH_S)
            by_day[day] = by_day.get(day, 0.0) + usd
            from_s = until_s
    for span in plans_paid_in(world).spans:
        first, last = ((at_s - EPOCH_S) // DAY_S for at_s in (span.from_s, span.to_s))
        for day in range(int(first), int(last) + 1):
            begins_s = EPOCH_S + day * DAY_S
            saved_usd, unused_usd = span.within(begins_s, begins_s + DAY_S)
            by_day[day] = by_day.get(day, 0.0) + unused_usd - saved_usd
    return sorted(by_day.items())
