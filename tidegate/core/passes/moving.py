"""Whether a job that runs on demand is worth moving to spot, and may be: or why it stays."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from tidegate.core.buy.bins import bin_of_node
from tidegate.core.demand.accounting import covers
from tidegate.core.demand.deadline import due_s, says_move
from tidegate.core.demand.demand import Need, kinds_running
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.drains import is_ours
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import committed, marginal_usd_per_hour, usd_per_hour
from tidegate.core.interruption.save import Checkpoint, checkpoint, moved_ending
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read
from tidegate.core.model.durations import clock, span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.savings_plans import name_of
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.cost import SECONDS_PER_HOUR, billed_hours, run_s
from tidegate.core.offers.deadline import Choice, Pressure, choice
from tidegate.core.offers.due import pressure
from tidegate.core.offers.offers import OfferGroups

# An order waits in its queue for 15 minutes at most (SQS, DelaySeconds), and must not come late.
SAVE_MAX_S = 600.0

# Until the head has closed a node, and a look has seen it. What the job does between its signal and
# its requeue is lost.
SEEN_S = 10.0

# From the requeue until the job computes again on a node that waits for it: the end of its old run,
# the start in a later second, and what it reads of its checkpoint.
RESTART_S = 60.0


@frozen
class Move:
    """A job that goes to spot. `need`: its next run there; `nodes`: those that it leaves;
    `saves_usd`: until its end, with what the move costs.
    """

    job: Job
    asked: Checkpoint
    need: Need
    nodes: tuple[Judged, ...]
    saves_usd: float


@frozen
class _Spot:
    """The node that a job would have: what it costs, how long it boots, and how often EC2 takes it.
    `there_for_s`: how long spot has not been refused; of what was bought for it, for ever.
    `is_its`: it was bought for the job, or is kept for it.
    """

    usd_per_hour: float
    boot_s: float
    hazard_per_hour: float
    there_for_s: float
    is_its: bool = False

    @property
    def begins_s(self) -> float:
        """How long a move takes until the job is told. So much more it has to spare as one begins:
        what it has falls by each second in which nothing of its work is saved, and else the move
        would be taken back, and begun again with what is saved next.
        """
        return 0.0 if self.is_its else self.boot_s + 2 * SEEN_S


class Moving:
    """Answers for one plan."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, offer_groups: OfferGroups) -> None:
        self._snapshot = snapshot
        self._fleet = fleet
        self._offer_groups = offer_groups
        self._nodes = {each.member.instance_id: each for each in fleet.judged}

    def about(self, job: Job) -> Move | str:
        """What becomes of a job with a deadline that runs on demand: a move, or why it stays."""
        asked = checkpoint(job)
        if asked is None or (barred := _barred(job, asked)):
            return barred if asked else "it asks for no signal to save its work (tidegate:ckpt=)"
        nodes = [each for name in job.node_names if (each := self._nodes.get(name))]
        if kept := self._kept(job, nodes):
            return kept
        reading = replace(self._snapshot.heard.reading, jobs=(job,))
        ((need, _),) = kinds_running(reading, self._snapshot.cluster)
        if need.where is not None:
            return "it may run on certain nodes only"
        if paid_for := self._paid_for(need):
            return paid_for
        spot = self._spot(job, need)
        if spot is None:
            return self._none(need)
        usd = sum(marginal_usd_per_hour(self._snapshot, each.member) for each in nodes)
        saves_usd = self._saves_usd(job, need, asked, spot=spot, paid_usd_per_hour=usd)
        move = Move(job, asked, _on_spot(need), tuple(nodes), saves_usd)
        if is_told(move, self._snapshot):
            return move  # its requeue is on its way: nothing is won by a change of mind
        now = self._pressure(job, need, asked, spot, ratio=usd / len(nodes) / spot.usd_per_hour)
        if stays := _committed(nodes, now) or self._stays(now, spot):
            return stays
        if saves_usd <= 0:
            return "what is left of it would save less on spot than the move costs"
        return self._idle(need) or self._wanted(job) or self._held(nodes) or move

    def _kept(self, job: Job, nodes: Sequence[Judged]) -> str:
        """Why its nodes keep it; "": it may leave them."""
        if len(nodes) < len(job.node_names):
            return "it runs on nodes that are not ours"
        for each in nodes:
            if each.member.offering.market is not Market.ON_DEMAND:
                return "it runs where nothing is paid for by the hour"
            if len(each.member.jobs) > 1:
                return f"it shares node {each.member.instance_id} with other jobs"
            if each.use is not Use.CAPACITY and not is_closed_for(each, job):
                return f"node {each.member.instance_id} goes for another reason: {each.reason}"
            pool = self._snapshot.cluster.pool(each.member.pool)
            if pool is None or (why := kept_because(each.member, pool, self._snapshot.head_now_s)):
                return why if pool else "its pool is not in the cluster file any more"
        return ""

    def _wanted(self, job: Job) -> str:
        """Which waiting job would get the licence, or the place under a cap of accounting, that it
        would give away for as long as that runs; "": none.
        """
        reading = self._snapshot.heard.reading
        caps = [each for each in reading.associations if covers(each, job)]
        for other in reading.jobs:
            if not other.is_pending or other.job_id == job.job_id:
                continue
            if not _licences(job).isdisjoint(_licences(other)):
                return f"job {other.job_id} waits for a licence that it would give away"
            if any(covers(each, other) for each in caps):
                return f"job {other.job_id} waits under a limit that counts both"
        return ""

    def _paid_for(self, need: Need) -> str:
        """Where there is room for it that is paid for in advance; "": nowhere. By the hour nothing
        is bought beside that.
        """
        groups = self._offer_groups
        for each in groups.options(need):
            group, places = each.offer_group, groups.places(each.offer_group, each.offering)
            if group.market.is_prepaid and places >= need.nodes:
                return f"there is room for it on {each.offering}, which is paid for already"
        return ""

    def _idle(self, need: Need) -> str:
        """Which open node on demand it would be started on as well; "": there is none. To keep that
        closed meanwhile would keep it from others.
        """
        for each in self._idle_on(Market.ON_DEMAND, need):
            return f"Slurm would start it on {each.instance_id}, which idles on demand"
        return ""

    def _idle_on(self, market: Market, need: Need) -> Iterator[Member]:
        """The open nodes of this market that idle, and on which it would be started."""
        for each in self._fleet.judged:
            member, pool = each.member, self._snapshot.cluster.pool(each.member.pool)
            is_open = each.use is Use.CAPACITY and not each.is_closed
            if member.node is None or pool is None or not is_open or not member.is_idle:
                continue
            found = bin_of_node(member.node, pool, member.offering, gated_for="")
            if member.offering.market is market and found.holds(need):
                yield member

    def _spot(self, job: Job, need: Need) -> _Spot | None:
        """What it would run on; None: nothing is there, or to be bought."""
        cluster, now_s = self._snapshot.cluster, self._snapshot.now_s
        for each in self._fleet.judged:
            offering = each.member.offering
            is_its = each.gated_for or each.member.gated_for
            is_up = each.use is Use.GATED
            if is_its != job.job_id or not (is_up or each.use is Use.IN_FLIGHT):
                continue
            if offering.market is Market.SPOT and (
                usd := usd_per_hour(self._snapshot, each.member)
            ):
                pool = cluster.pool(each.member.pool)
                boot_s = 0.0 if is_up or pool is None else pool.boot_s
                return _Spot(usd, boot_s, cluster.hazard_per_hour(offering), inf, is_its=True)
        # It would get what idles first, maybe at a higher price than that of a new node.
        idle = self._idle_on(Market.SPOT, need)
        idle_usd = max((usd_per_hour(self._snapshot, each) for each in idle), default=0.0)
        for option in self._offer_groups.options(need):
            group = option.offer_group
            if group.market is not Market.SPOT:
                continue
            rests = [
                each.until_s
                for each in self._snapshot.resting
                if each.offering == option.offering and each.stops(group.pool.name)
            ]
            there_for_s = now_s - max(rests) if rests else inf
            usd = max(option.usd_per_hour, idle_usd)
            return _Spot(usd, group.pool.boot_s, group.hazard_per_hour, there_for_s)
        return None

    def _none(self, need: Need) -> str:
        """Why there is no spot for it."""
        cluster, now_s = self._snapshot.cluster, self._snapshot.now_s
        pools = [pool for pool in cluster.pools if pool.name in need.pools]
        rests = [
            each.until_s
            for each in self._snapshot.resting
            if each.offering.market is Market.SPOT and each.until_s > now_s
            if any(pool.may_have(each.offering) for pool in pools)
        ]
        if rests:
            return f"spot is refused, and is tried again at {clock(min(rests))}"
        return "no spot is sold that it may use and that is worth its interruptions"

    def _pressure(
        self, job: Job, need: Need, asked: Checkpoint, spot: _Spot, *, ratio: float
    ) -> Pressure:
        """Where it stands."""
        found = pressure(need, self._snapshot.cluster, self._snapshot.now_s)
        on_for_s = self._snapshot.head_now_s - (job.started_at_s or self._snapshot.head_now_s)
        return replace(
            found,
            margin_s=found.margin_s + asked.grace_s + spot.begins_s,
            price_ratio=ratio,
            on=Market.ON_DEMAND,
            on_for_s=on_for_s,
            spot_for_s=spot.there_for_s,
            may_move=True,
        )

    def _stays(self, now: Pressure, spot: _Spot) -> str:
        """Why the rule leaves it on demand; "": it does not."""
        if choice(now) is Choice.SPOT:
            return ""
        if now.spare_s < now.net_s:
            has, spot_s = span(max(now.spare_s, 0.0)), now.net_s - spot.begins_s
            needs = f"spot with an interruption needs {span(spot_s)}"
            begins = f", and {span(spot.begins_s)} more as a move begins" if spot.begins_s else ""
            return f"it has {has} to spare, and {needs}{begins}"
        if now.lasting_s == inf:
            return "spot costs no less now"
        lasts = span(now.lasting_s)
        if spot.there_for_s < now.lasting_s:
            until = clock(self._snapshot.now_s - spot.there_for_s + now.lasting_s)
            return f"spot was refused lately, and is trusted again at {until} ({lasts} without)"
        until = clock(self._snapshot.now_s - now.on_for_s + now.lasting_s)
        return f"it is not moved before {until}: {lasts} after its start"

    def _saves_usd(
        self, job: Job, need: Need, asked: Checkpoint, *, spot: _Spot, paid_usd_per_hour: float
    ) -> float:
        """By what it is expected to cost less until its end, its own waiting counted."""
        left_s = self._left_s(job, need)
        left = replace(need, time_limit_s=left_s, expected_s=left_s)
        hours = billed_hours(
            left, boot_s=spot.boot_s, hazard_per_hour=spot.hazard_per_hour, checkpoint_s=None
        )
        delay_h = (asked.grace_s + RESTART_S) / SECONDS_PER_HOUR
        stays_usd = paid_usd_per_hour * left_s / SECONDS_PER_HOUR
        moves_usd = spot.usd_per_hour * need.nodes * (hours + delay_h) + paid_usd_per_hour * delay_h
        return stays_usd - moves_usd - need.wait_usd_per_hour * delay_h

    def _left_s(self, job: Job, need: Need) -> float:
        """How long it is expected to run on where it is; what runs longer than that, to its end."""
        ran_s = self._snapshot.head_now_s - (job.started_at_s or self._snapshot.head_now_s)
        ends = [each - ran_s for each in (run_s(need), need.time_limit_s or 0.0)]
        return max(next((each for each in ends if each > 0), 0.0), 1.0)

    def _held(self, nodes: Sequence[Judged]) -> str:
        """Why a budget keeps its nodes; "": none does, as far as one node tells."""
        for each in nodes:
            if _left(each) is None:
                return self._fleet.allowance.held(
                    each.member.pool,
                    DisruptionReason.CONSOLIDATABLE,
                    besides=each.member.instance_id,
                )
        return ""


def _committed(nodes: Sequence[Judged], now: Pressure) -> str:
    """Which plan has paid for so much of its nodes that to leave them saves nothing; "": none."""
    plans = (paid.plan for each in nodes if (paid := committed(each.member)))
    plan = next(plans, "") if now.price_ratio <= 1.0 else ""
    return f"it runs on what {name_of(plan)} has paid for" if plan else ""


def _licences(job: Job) -> set[str]:
    return {name for name, _ in (*job.licences, *job.licence_choices)}


def _barred(job: Job, asked: Checkpoint) -> str:
    """Why it is never moved; "": it may be."""
    if not says_move(job):
        return "with tidegate:move in its comment it could be moved to spot"
    if not job.is_requeueable:
        return "it may not be requeued (--no-requeue, or no batch job)"
    if job.het_job_id or job.array_job_id:
        return "tasks of arrays and components of heterogeneous jobs are not moved"
    if job.progress is None or job.progress.problem:
        told = job.progress.problem if job.progress else "with tidegate:progress=FILE it could say"
        return f"nobody knows how much of its work is saved: {told}"
    if asked.grace_s > SAVE_MAX_S:
        return f"it asks for more than {span(SAVE_MAX_S)} to save its work"
    if job.state != "RUNNING" or due_s(job) is None:
        return f"it is {job.state}" if due_s(job) is not None else "it has no deadline"
    return ""


def _on_spot(need: Need) -> Need:
    """The job's next run, on spot alone, for which nodes are kept closed until it begins."""
    feature = Market.SPOT.feature
    parts = (f"{each}&{feature}" for each in need.constraint.split("|"))
    constraint = "|".join(parts) if need.constraint else feature
    return replace(
        need, constraint=constraint, is_gang=True, kind=-1, count=1, restarts=need.restarts + 1
    )


def is_closed_for(judged: Judged, job: Job) -> bool:
    """Whether the node was drained since the job is moved."""
    found = _left(judged)
    return found is not None and found.subject == job.job_id


def closed_until_s(judged: Judged) -> float:
    """When the job that is moved off the node is to be requeued; 0: it is not."""
    found = _left(judged)
    return (found.until_s or 0.0) if found else 0.0


def is_told(move: Move, snapshot: Snapshot) -> bool:
    """Whether the job has had its signal since its nodes were closed, as the head says."""
    if not all(is_closed_for(each, move.job) for each in move.nodes):
        return False
    closed_s = max(closed_until_s(each) for each in move.nodes)
    not_after_s = closed_s + snapshot.cluster.timings.order_ttl_s
    return any(
        each.kind is OrderKind.SIGNAL
        and each.name == move.job.job_id
        and each.outcome is OrderOutcome.DONE
        and each.order_id.endswith(moved_ending(not_after_s))
        for each in snapshot.heard.results
    )


def _left(judged: Judged) -> DrainReason | None:
    node = judged.member.node
    if node is None or not node.state.is_drain or not is_ours(node):
        return None
    found = read(node.reason)
    return found if found and found.code is DrainCode.CONSOLIDATABLE else None
