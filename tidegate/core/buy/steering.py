"""What it costs that a job starts on a node: nothing beside jobs that stay, much on a dear one.

Slurm starts whatever waits on whatever has room. A small job on a large node that has just
become idle keeps it, at many times the price of the node that boots for that job.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial

from tidegate.core.buy.alternatives import OVERRIDE_PRICE_FACTOR
from tidegate.core.buy.bins import Bin, BinKind
from tidegate.core.demand.demand import Need, kinds_running
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Cluster, Pool, PoolType
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.catalogue import lowest
from tidegate.core.offers.cost import SECONDS_PER_HOUR, UNKNOWN_S, run_s
from tidegate.core.offers.limits import Load, Usage
from tidegate.core.offers.loss import asked
from tidegate.core.offers.offers import OfferGroups

# Ends are guesses: of what a node's jobs are said to run on, so much is counted on. Too little
# costs a cheap node for a while, too much a dear one.
TRUST = 0.5

# A job that runs longer than anybody said is taken to run as long again, at least so long.
OVERDUE_S = 60.0

# Of the kinds of jobs that are about, the most frequent; each is compared with each dear node.
KINDS_MAX = 50


@dataclass(slots=True)
class LikeJobs:
    """Jobs of like needs, for which the same is sold, that wait or run; and how long in all."""

    need: Need
    total_s: float = 0.0
    count: int = 0

    @property
    def mean_s(self) -> float:
        return self.total_s / self.count


@frozen
class Own:
    """The cheapest node that is sold for a job, and whether spare ones of its kind are kept."""

    usd_per_hour: float
    is_spare: bool
    boot_s: float


@dataclass
class Steering:
    """What starting jobs on each open node is worth in one plan; nothing of it outlives the plan.

    `closed`: nodes that Slurm starts nothing on until they are opened; `claimed`: open ones on
    which jobs start now; `awaited`: those on which jobs start when others have ended; `needs`: what
    waits; `pending`: one of each kind of these; `has_spares`: pools and instance types of which
    spare nodes are bought; `starts`: how many stopped nodes of each could be started.
    """

    snapshot: Snapshot
    offer_groups: OfferGroups
    usage: Usage
    closed: list[Bin] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    pending: Sequence[Need] = ()
    needs: Sequence[Need] = ()
    _spoiled: set[str] = field(default_factory=set)
    _waiting: set[int] = field(default_factory=set)
    _risks: dict[str, list[Need]] = field(default_factory=dict)
    has_spares: frozenset[PoolType] = frozenset()
    starts: Mapping[PoolType, int] = field(default_factory=dict)
    _own: dict[tuple[object, ...], Own | None] = field(default_factory=dict)
    _losers: dict[tuple[object, ...], list[tuple[LikeJobs, float]]] = field(default_factory=dict)

    @cached_property
    def is_mixed(self) -> bool:
        """More than one kind of node is sold: otherwise none is dearer than another."""
        types = {each.name for pool in self.snapshot.cluster.pools for each in pool.instance_types}
        return len(types) > 1

    def watch(self, each: Bin) -> None:
        """From now on the bin takes only jobs that are worth it."""
        each.worth = partial(self.takes, each)
        if each.is_closed and each.kind is BinKind.EXISTING:
            self.closed.append(each)

    def takes(self, each: Bin, need: Need) -> bool:
        """Whether the job is worth the node, and no other would come before or beside it."""
        if not each.is_closed or each.kind is not BinKind.EXISTING:
            return self.pays(each, need)
        if each.name in self._spoiled or not self.pays(each, need):
            return False
        return not self.lets_in(each, need)

    def pays(self, each: Bin, need: Need) -> bool:
        """Whether nothing much cheaper is sold for the job, or it hardly prolongs the node, or
        what it would wait for its own one is dearer.
        """
        own = self.own_node(need, each.offering.market)
        if own is None or self._is_like(each, own.usd_per_hour):
            return True
        longer_s = max(run_s(need) - self.lives_s(each.name), 0.0)
        return longer_s * each.usd_per_hour <= self._own_cost(need, own, run_s(need))

    def why_here(self, each: Bin, need: Need) -> str:
        """What its start there costs more than on its own node, where that pays; "": nothing."""
        own = self.own_node(need, each.offering.market) if need.wait_usd_per_hour else None
        if own is None or self._is_like(each, own.usd_per_hour):
            return ""
        longer_s = max(run_s(need) - self.lives_s(each.name), 0.0)
        own_usd = own.usd_per_hour * (run_s(need) + own.boot_s)
        more_usd = (longer_s * each.usd_per_hour - own_usd) / SECONDS_PER_HOUR
        if more_usd <= 0.0:
            return ""
        sooner = f"{own.boot_s:.0f} s sooner than on a node of its own"
        return f"; it starts {sooner}, for {more_usd:.2f} USD more"

    def awaits(self, each: Bin, later_s: float, need: Need) -> bool:
        """Whether the job waits for a node that is to be free soon: where it starts so much later
        on average than on one that is bought for it, that costs less than the other's boot.
        """
        own = self.own_node(need, each.offering.market) if later_s else None
        if own and need.wait_usd_per_hour * later_s > own.usd_per_hour * own.boot_s:
            return False
        return not self.is_mixed or self.takes(each, need)

    def _is_like(self, each: Bin, own_usd: float) -> bool:
        """Whether EC2 might have given this node for a job whose own one costs so much.

        A launch names types of like price beside the cheapest, and more where its pool wants
        several: what was bought for a job must not be kept from it, or it is bought twice.
        """
        pool = self.snapshot.cluster.pool(each.pool)
        is_named = pool is not None and pool.min_types > 1
        return is_named or each.usd_per_hour <= own_usd * OVERRIDE_PRICE_FACTOR

    def lets_in(self, each: Bin, need: Need | None = None) -> bool:
        """Whether a waiting job that is not worth it would find room, beside `need`."""
        if each.name not in self._risks:
            risks = (one for one in self.pending if each.holds(one) and not self.pays(each, one))
            self._risks[each.name] = list(risks)
        if not self._risks[each.name]:
            return False
        left = copy(each)
        if need is not None:
            left.jobs = []
            left.put(need)
        return any(left.holds(risk) for risk in self._risks[each.name])

    def waits(self, need: Need) -> None:
        """The job does not start now: it would be the first on a node that opens."""
        if need.kind in self._waiting:
            return
        if need.kind >= 0:
            self._waiting.add(need.kind)
        for each in self.closed:
            if each.name not in self._spoiled and each.holds(need) and not self.pays(each, need):
                self._spoiled.add(each.name)

    def is_threatened(self, each: Bin, factor: float = 1.0) -> bool:
        """Whether a job of one of the kinds that are about would keep the node at a loss.

        `factor`: how many times the price of its own node that has to be.
        """
        key = each.pool, each.offering, each.usd_per_hour, each.features
        if key not in self._losers:
            self._losers[key] = list(self._losing(each))
        if not self._losers[key]:
            return False
        lives_s = self.lives_s(each.name)
        for kind, own_cost in self._losers[key]:
            beside_s = 0.0 if kind.need.shape.is_exclusive else lives_s
            if outlasts_s(kind.mean_s, beside_s) * each.usd_per_hour > factor * own_cost:
                return True
        return False

    def _losing(self, each: Bin) -> Iterator[tuple[LikeJobs, float]]:
        """The kinds for which such a node is dear, and what a job of each costs on its own."""
        of = self.snapshot.cluster.instance_type(each.offering.instance_type)
        for kind in self.about if of else ():
            need = kind.need
            if of is None or each.pool not in need.pools or lacks(need.shape, of):
                continue
            own = self.own_node(need, each.offering.market)
            if own is None or self._is_like(each, own.usd_per_hour):
                continue
            if satisfies(need.constraint, each.features):
                yield kind, self._own_cost(need, own, kind.mean_s)

    @cached_property
    def about(self) -> list[LikeJobs]:
        """What waits and what runs, the most frequent first."""
        needs = self.needs
        firsts = {need.kind: need for need in needs}
        counts = Counter(need.kind for need in needs)
        found: dict[tuple[object, ...], LikeJobs] = {}
        for number, count in counts.items():
            self._add(found, firsts[number], run_s(firsts[number]) * count, count)
        digest, cluster = self.snapshot.digest, self.snapshot.cluster
        for need, jobs in kinds_running(digest.reading, cluster) if digest else ():
            expected = (cluster.expected_s(job.time_limit_s, job.account) for job in jobs)
            self._add(found, need, sum(each or UNKNOWN_S for each in expected), len(jobs))
        if len(found) < 2:
            return list(found.values())
        ordered = sorted(found.items(), key=lambda item: (-item[1].count, repr(item[0])))
        return [kind for _, kind in ordered[:KINDS_MAX]]

    def _add(
        self, found: dict[tuple[object, ...], LikeJobs], need: Need, total_s: float, count: int
    ) -> None:
        """Whichever comes first stands for all of its kind: what is sold for each is the same."""
        sold = tuple(self.own_node(need, market) for market in Market)
        kind = found.setdefault((need.pools, need.shape, need.constraint, sold), LikeJobs(need))
        kind.total_s += total_s
        kind.count += count

    def lives_s(self, name: str) -> float:
        """How long the node's jobs are counted on to run on after one more has found room."""
        ends = self._ends.get(name, ())
        if not ends:
            return 0.0
        node = self._nodes[name]
        is_full = node.gpus_alloc >= node.gpus if node.gpus else node.cpus_alloc >= node.cpus
        return TRUST * (max(ends) - (min(ends) if is_full else 0.0))

    def own_node(self, need: Need, market: Market) -> Own | None:
        """The cheapest node that this market sells for the job; None: nothing.

        Of the pools of most weight that sell it there, and have room for one more: what a cheaper
        pool of less weight sells is bought for nobody whom those serve. Cheapest with what
        interruptions cost, as it is bought: else its own would be another node than the one that
        comes for it, which would be kept from it.
        """
        key = asked(need), need.deadline_s, need.shortest_s, need.where, market
        if key not in self._own:
            self._own[key] = self._cheapest(need, market)
        return self._own[key]

    def _cheapest(self, need: Need, market: Market) -> Own | None:
        first: Own | None = None
        for tier in self.offer_groups.tiers:
            found = [
                (offer_group.expected(need).usd(entry.usd_per_hour), offer_group.pool.name, entry)
                for offer_group in tier
                if offer_group.market is market
                and (mask := self.offer_groups.mask(need, offer_group))
                and (entry := offer_group.catalogue.entries[lowest(mask)])
            ]
            for _, pool, entry in sorted(found, key=lambda each: each[:2]):
                usd = entry.usd_per_hour
                pool_type = pool, entry.instance_type.name
                is_spare = pool_type in self.has_spares
                own = Own(usd, is_spare, self._up_s(need, pool_type, market))
                if self.usage.room(pool, 1, Load.of(entry.instance_type, usd))[0]:
                    return own
                first = first or own
        return first

    def _own_cost(self, need: Need, own: Own, runs_s: float) -> float:
        """Boot and run of its own node, and what it costs that the job waits for that boot; where
        spare ones are kept it does not.
        """
        wait_usd = 0.0 if own.is_spare else need.wait_usd_per_hour
        return own.usd_per_hour * (runs_s + own.boot_s) + wait_usd * own.boot_s

    def _up_s(self, need: Need, pool_type: PoolType, market: Market) -> float:
        """Until its own node is up: a start where one stands stopped for each job that waits."""
        pool = self._pools[pool_type[0]]
        is_grouped = need.is_gang and pool.placement_group
        is_started = market is Market.ON_DEMAND and not is_grouped
        is_started &= self.starts.get(pool_type, 0) >= max(self._num_waiting, 1)
        return pool.up_in_s(is_started=is_started)

    @cached_property
    def _num_waiting(self) -> int:
        return sum(need.count * need.nodes for need in self.needs)

    @cached_property
    def _pools(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in self.snapshot.cluster.pools}

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        digest = self.snapshot.digest
        return {node.name: node for node in digest.reading.nodes} if digest else {}

    @cached_property
    def _ends(self) -> dict[str, list[float]]:
        """For each node, in how many seconds its jobs are expected to end."""
        found: dict[str, list[float]] = {}
        digest = self.snapshot.digest
        for job in digest.reading.jobs if digest else ():
            if job.node_names and not job.is_pending:
                ends_s = left_s(job, self.snapshot.cluster, self.snapshot.head_now_s)
                for name in job.node_names:
                    found.setdefault(name, []).append(ends_s)
        return found


def left_s(job: Job, cluster: Cluster, now_s: float) -> float:
    """How long a running job is expected to run on."""
    if job.started_at_s is None:
        return UNKNOWN_S
    since_s = max(now_s - job.started_at_s, 0.0)
    for whole_s in (cluster.expected_s(job.time_limit_s, job.account), job.time_limit_s):
        if whole_s is not None and whole_s > since_s:
            return whole_s - since_s
    return max(since_s, OVERDUE_S)


def ends_chance(mean_s: float, ran_s: float, within_s: float) -> float:
    """How likely a job ends within so long of which only the mean is known, and how long it ran.

    By the same distribution as `outlasts_s`.
    """
    return 1.0 - ((mean_s + ran_s) / (mean_s + ran_s + within_s)) ** 2


def outlasts_s(mean_s: float, lives_s: float) -> float:
    """How much longer than a node's jobs a job may run of which only the mean is known.

    Job lengths have long tails: this is the mean excess under a Lomax distribution of shape 2.
    """
    return mean_s * mean_s / (mean_s + lives_s) if mean_s else 0.0
