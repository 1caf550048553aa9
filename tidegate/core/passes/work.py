"""The working state of one plan: its named parts, and the orders that it sends."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.launches import LaunchBuilder
from tidegate.core.buy.refusals import Refusals
from tidegate.core.buy.steering import Steering
from tidegate.core.demand.demand import Need
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member
from tidegate.core.model.digest import Digest
from tidegate.core.model.drain_reason import DrainReason
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Action, Send, Watch
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.offers.spend import used_up
from tidegate.core.passes.departures import Departures
from tidegate.core.passes.queue import Queue, bound

# In whatever state, as long as it is not DOWN. A drain with a guard does not outlive its node, and
# a delete with one says that the node's machine lives.
ANY_STATE = ("IDLE", "MIXED", "ALLOCATED")


@frozen
class Spares:
    """How many spare nodes of one type are bought, how many that are there are kept, and why."""

    bought: int
    kept: int
    why: str


@dataclass(slots=True)
class Work:
    """What the passes of one plan share; nothing of it outlives the plan.

    `spares`: by pool and instance type. `decided`: what the passes before this one do. The
    accounts: `usage` of limits and budgets in money, `bins` of room for jobs, and that of `fleet`
    of the nodes that may leave.
    """

    snapshot: Snapshot
    launches_max: InitVar[int]
    members: InitVar[Sequence[Member]]
    queue: Queue = field(default_factory=Queue)
    fleet: Fleet = field(init=False)
    usage: Usage = field(init=False)
    offer_groups: OfferGroups = field(init=False)
    launch_builder: LaunchBuilder = field(init=False)
    refusals: Refusals = field(init=False)
    bins: Bins = field(default_factory=Bins)
    departures: Departures = field(default_factory=Departures)
    steering: Steering = field(init=False)
    spares: dict[tuple[str, str], Spares] = field(default_factory=dict)
    decided: tuple[Action, ...] = ()
    _num_orders: int = 0

    def __post_init__(self, launches_max: int, members: Sequence[Member]) -> None:
        self.fleet = Fleet(self.snapshot, members)
        self.usage = Usage(self.snapshot.cluster, used_up(self.snapshot))
        self.offer_groups = OfferGroups(self.snapshot)
        self.launch_builder = LaunchBuilder(self.offer_groups, self.usage, launches_max)
        self.refusals = Refusals(self.snapshot, self.offer_groups, self.usage)
        self.steering = Steering(self.snapshot, self.offer_groups, self.usage)

    @property
    def digest(self) -> Digest:
        """The digest that the plan is about; passes run only when there is one."""
        assert self.snapshot.digest is not None
        return self.snapshot.digest

    @property
    def head_now_s(self) -> float:
        """The present on the head's clock."""
        return self.digest.written_at_s + self.snapshot.digest_age_s

    @property
    def stuck(self) -> dict[str, Stuck]:
        """What is known of jobs, with what the passes before have just noted of them."""
        known = {each.job_id: each for each in self.snapshot.stuck}
        noted = (each.stuck for each in self.decided if isinstance(each, Watch))
        return known | {each.job_id: each for each in noted}

    def order(
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
        restarts: int | None = None,
    ) -> Send:
        """The next order. `why`: the reason for people, if `text` is no drain reason."""
        order = Order(
            order_id=f"{self.snapshot.epoch}-o{self._num_orders}",
            kind=kind,
            names=names,
            not_after_s=self.snapshot.now_s + self.snapshot.cluster.timings.order_ttl_s,
            only_if=only_if,
            text=str(text),
            on_nodes=on_nodes,
            despite=despite,
            restarts=restarts,
        )
        self._num_orders += 1
        said = why or (text.sentence if isinstance(text, DrainReason) else text)
        return Send(order, said, is_budgeted)

    def barred(self, payers: Iterable[str]) -> WhyNot | None:
        """The spent budget of who would pay, the account before the user; None: there is none."""
        found = (self.usage.used_up.get(scope) for scope in payers)
        return next((why for why in found if why), None)

    def refuse_reasons(self, need: Need, nodes: int) -> tuple[WhyNot, ...]:
        """Why `nodes` more nodes were not bought for the job."""
        if barred := bound(need):
            return (barred,)
        if not self.snapshot.wanted.is_up:
            return (WhyNot(Why.STOPPED, self.snapshot.wanted.reason),)
        if barred := self.barred(need.payers):
            return (barred,)
        if self.launch_builder.is_full:
            said = (
                f"a plan holds {self.launch_builder.launches_max} launches, it is in the next one"
            )
            return (WhyNot(Why.NEXT_PLAN, said),)
        return self.refusals.of(need, nodes)


type Pass = Callable[[Work], Iterable[Action] | None]
"""What it answers is done; one that answers nothing settles the accounts for those after it."""


def after(passes: Iterable[Pass], work: Work) -> Work:
    """The state after these passes, each of which sees what those before it do."""
    for run in passes:
        work.decided += tuple(run(work) or ())
    return work
