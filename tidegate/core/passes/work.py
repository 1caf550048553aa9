"""The working state of one plan: what the passes share and add to."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

from tidegate.core.buy.bins import Bin, BinKind, Bins, Place
from tidegate.core.buy.launches import LaunchBuilder
from tidegate.core.buy.refusals import Refusals
from tidegate.core.buy.steering import Steering
from tidegate.core.demand.demand import Need
from tidegate.core.fleet.allowance import Allowance
from tidegate.core.fleet.judge import Judged
from tidegate.core.fleet.members import Member
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool, account_scope
from tidegate.core.model.digest import Digest
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Action, Resume, Send, Served, Terminate, Unmet
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.limits import Load, Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.offers.spend import used_up

# In whatever state, as long as it is not DOWN. A drain with a guard does not outlive its node, and
# a delete with one says that the node's machine lives.
ANY_STATE = ("IDLE", "MIXED", "ALLOCATED")


@dataclass(slots=True)
class Part:
    """One need of a gang. `held`: the existing nodes that it counts on; `before`: the same as
    they were without it; `bought`: the names of new ones.
    """

    need: Need
    held: list[Bin] = field(default_factory=list)
    before: list[Bin] = field(default_factory=list)
    bought: list[str] = field(default_factory=list)

    @property
    def missing(self) -> int:
        return self.need.nodes - len(self.held)

    @property
    def place(self) -> Place | None:
        """Where the nodes are that it holds; None: it holds none."""
        return (self.held[0].pool, self.held[0].offering.zone) if self.held else None

    def hold(self, bins: Sequence[Bin]) -> None:
        """Count on existing nodes; nobody else gets them."""
        self.held.extend(bins)
        self.before.extend(copy(each) for each in bins)
        for each in bins:
            each.put(self.need)

    def give_back(self, bins: Bins) -> None:
        """Open nodes that it held take other jobs again."""
        for each, before in zip(self.held, self.before, strict=True):
            each.take_back(self.need, before)
            if not each.gated_for:
                bins.append(each)
        self.held, self.before = [], []


@dataclass(slots=True)
class Gang:
    """Needs that start together or not at all: one, or several.

    Several are the components of a heterogeneous job, each in a zone of its own, or the kinds
    of nodes of one job, all in one zone.
    """

    parts: list[Part] = field(default_factory=list)
    is_complete: bool = False

    @property
    def is_there(self) -> bool:
        """All its nodes are up, open or at their gates."""
        held = [each for part in self.parts for each in part.held]
        is_short = any(part.bought or part.missing for part in self.parts)
        return not is_short and all(each.kind is BinKind.EXISTING for each in held)

    @property
    def held_names(self) -> set[str]:
        return {each.name for part in self.parts for each in part.held}

    @property
    def key(self) -> str:
        return self.parts[0].need.gang

    @property
    def nodes(self) -> int:
        beside = {part.need.job_id: len(part.need.beside) for part in self.parts}
        return sum(part.need.nodes for part in self.parts) + sum(beside.values())

    @property
    def is_of_kinds(self) -> bool:
        """Its parts are kinds of nodes of one job."""
        jobs = {part.need.job_id for part in self.parts}
        return len(jobs) == 1 and self.parts[0].need.is_of_kinds


def bound(need: Need) -> WhyNot | None:
    """Why a new node never helps it; None: one may."""
    where = need.where
    return WhyNot(Why.NODES, where.why) if where and where.is_bound else None


@frozen
class Outdated:
    """A node that goes as soon as its pool can do without, and why."""

    judged: Judged
    node: Node
    pool: Pool
    reason: DisruptionReason
    why: str

    @property
    def drain_reason(self) -> DrainReason:
        return DrainReason(DrainCode(self.reason.value), self.why)


@frozen
class Spares:
    """How many spare nodes of one type are bought, how many that are there are kept, and why."""

    bought: int
    kept: int
    why: str


@dataclass(slots=True)
class Work:
    """What the passes of one plan share; nothing of it outlives the plan.

    `fleet`: every node that is ours. `passed_over`: jobs that an earlier attempt at this plan
    could not serve. `hoped`: nodes in doubt, with what each is likely to be. `needed`: jobs that
    capacity is sought for. `outdated`: idle nodes that go when no job takes them; `replacing`:
    those whose pool needs a new one first; `tries`: pool -> the node that waits for the first one
    of a new template. `spares`: by pool and instance type.
    """

    snapshot: Snapshot
    launches_max: int
    fleet: Sequence[Member]
    passed_over: dict[str, Unmet] = field(default_factory=dict)
    usage: Usage = field(init=False)
    offer_groups: OfferGroups = field(init=False)
    launch_builder: LaunchBuilder = field(init=False)
    refusals: Refusals = field(init=False)
    allowance: Allowance = field(init=False)
    bins: Bins = field(default_factory=Bins)
    judged: Sequence[Judged] = ()
    outdated: list[Outdated] = field(default_factory=list)
    replacing: list[Outdated] = field(default_factory=list)
    tries: dict[str, Outdated] = field(default_factory=dict)
    steering: Steering = field(init=False)
    hoped: list[tuple[Bin, Bin]] = field(default_factory=list)
    spares: dict[tuple[str, str], Spares] = field(default_factory=dict)
    needs: Sequence[Need] = ()
    needed: frozenset[str] = frozenset()
    gangs: list[Gang] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    served: dict[str, Served] = field(default_factory=dict)
    unmet: dict[str, Unmet] = field(default_factory=dict)
    _num_orders: int = 0
    _loads: dict[tuple[str, float], Load] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.usage = Usage(self.snapshot.cluster, used_up(self.snapshot))
        self.offer_groups = OfferGroups(self.snapshot)
        self.launch_builder = LaunchBuilder(self.offer_groups, self.usage, self.launches_max)
        self.refusals = Refusals(self.snapshot, self.offer_groups, self.usage)
        self.steering = Steering(self.snapshot, self.offer_groups)

    @property
    def digest(self) -> Digest:
        """The digest that the plan is about; passes run only when there is one."""
        assert self.snapshot.digest is not None
        return self.snapshot.digest

    @property
    def head_now_s(self) -> float:
        """The present on the head's clock."""
        return self.digest.written_at_s + self.snapshot.digest_age_s

    def load_of(self, instance_type: str, usd_per_hour: float) -> Load:
        """What a node of this type and price counts: found once for all that are alike."""
        key = instance_type, usd_per_hour
        if key not in self._loads:
            found = self.snapshot.cluster.instance_type(instance_type)
            self._loads[key] = Load.of(found, usd_per_hour)
        return self._loads[key]

    def send(
        self,
        kind: OrderKind,
        names: tuple[str, ...],
        text: str | DrainReason,
        *,
        only_if: tuple[str, ...] = (),
        on_nodes: tuple[str, ...] = (),
        why: str = "",
        is_budgeted: bool = False,
        despite: str = "",
    ) -> None:
        """Send an order. `why`: the reason for people, if `text` is no drain reason."""
        order = Order(
            order_id=f"{self.snapshot.epoch}-o{self._num_orders}",
            kind=kind,
            names=names,
            not_after_s=self.snapshot.now_s + self.snapshot.cluster.timings.order_ttl_s,
            only_if=only_if,
            text=str(text),
            on_nodes=on_nodes,
            despite=despite,
        )
        self._num_orders += 1
        said = why or (text.sentence if isinstance(text, DrainReason) else text)
        self.actions.append(Send(order, said, is_budgeted))

    def note_served(self, job_id: str, by: tuple[str, ...], reason: str) -> None:
        """A job, or one more task of its array, has its place."""
        before = self.served.get(job_id)
        if before:
            by, reason = (*before.by, *by), before.reason
        self.served[job_id] = Served(job_id, by, reason)

    def refuse(self, job_id: str, why_nots: tuple[WhyNot, ...], sentence: str) -> None:
        """A job, or the rest of its array, gets nothing now."""
        before = self.served.get(job_id)
        if before is None:
            self.unmet[job_id] = Unmet(job_id, sentence, why_nots)
        else:
            reason = f"{before.reason}; the rest of its tasks wait: {sentence}"
            self.served[job_id] = Served(job_id, before.by, reason)

    def barred(self, account: str) -> WhyNot | None:
        """The spent budget of the account, if it has one: nothing is bought for its jobs."""
        return self.usage.used_up.get(account_scope(account))

    def refuse_reasons(self, need: Need, nodes: int) -> tuple[WhyNot, ...]:
        """Why `nodes` more nodes were not bought for the job."""
        if barred := bound(need):
            return (barred,)
        if not self.snapshot.wanted.is_up:
            return (WhyNot(Why.STOPPED, self.snapshot.wanted.reason),)
        if barred := self.barred(need.account):
            return (barred,)
        if self.launch_builder.is_full:
            said = f"a plan holds {self.launches_max} launches, it is in the next one"
            return (WhyNot(Why.NEXT_PLAN, said),)
        return self.refusals.of(need, nodes)

    def sorted_actions(self) -> tuple[Action, ...]:
        """What saves money or jobs waits for nothing: orders, then ends, then purchases."""
        rank = {Send: 0, Terminate: 1, Resume: 2, Launch: 3}
        return tuple(sorted(self.actions, key=lambda action: rank.get(type(action), 4)))
