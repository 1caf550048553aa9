"""What the service and the agent need from the outside world.

Every adapter and every simulated part implements one of these; one contract suite per port
runs on both. Each method states its errors; expected outcomes come back as values.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from tidegate.core.explain.history import LookEvent
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.calendar import ScheduleOverride, Wanted
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.ec2 import FleetRequest, FleetResult, Instance, InstanceState
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.events import GpuReset, NodeOrphaned
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import (
    Bill,
    Charge,
    Cordon,
    InterruptionLoss,
    LaunchRecord,
    LaunchStatus,
    MonthlyLosses,
    NodeRecord,
    Phase,
    Stretch,
)
from tidegate.core.model.market import NEVER_SEEN, SeenMarket
from tidegate.core.model.notice import Message, Told
from tidegate.core.model.orders import Order, PendingOrder
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting, RestKey
from tidegate.core.model.snapshot import Epoch
from tidegate.core.model.stuck import Stuck
from tidegate.core.offers.allocation import Accounted


class Clock(Protocol):
    """The time of day, in epoch seconds."""

    def now_s(self) -> float: ...


class Calendar(Protocol):
    """When the cluster should be up; `overrides`, from the ledger, are what people want instead."""

    def wanted(self, now_s: float, overrides: Collection[ScheduleOverride] = ()) -> Wanted: ...


class Head(Protocol):
    """The head's instance. A replaced head is found too: it carries the same tags.

    Every method may raise Throttled or NotAuthorized.
    """

    def state(self) -> InstanceState | None:
        """EC2's word for it; None when there is none that has not been terminated."""
        ...

    def start(self) -> str:
        """Start it. "": EC2 took it, also when it ran already; else what EC2 does not start now,
        and its words.
        """
        ...

    def stop(self) -> str:
        """Stop it, as `start`; its volumes stay."""
        ...


# So many requests go to EC2 side by side; more could begin when there is no time left for them.
FLEETS_AT_ONCE = 20


@frozen
class Answered:
    """What EC2 said to one request, or why nothing is known of it."""

    request: FleetRequest
    result: FleetResult | TidegateError


class Compute(Protocol):
    """EC2, limited to the instances of one cluster."""

    def create_fleets(self, requests: Sequence[FleetRequest]) -> Generator[tuple[Answered, ...]]:
        """Buy instances: at most `FLEETS_AT_ONCE` requests, all side by side. Partial success and
        refusals are values.

        What has come in at one time comes together, in any order; each request is answered once.
        The same request repeated under its token buys nothing more. Whoever stops to listen
        closes it; what was asked may be bought all the same. It raises nothing: trouble with a
        request (Throttled, NotAuthorized, RequestMismatch: token used with another request) is
        its answer.

        A request that `starts` a stopped instance gives it its tags and starts it. One that runs
        already is no error, one that cannot be started as it is brings nothing and no refusal.
        """
        ...

    def instances(self) -> tuple[Instance, ...]:
        """All instances that carry the cluster's tag and are not terminated.

        A fresh instance may be missing for a while (EC2 is eventually consistent).
        Errors: Throttled, NotAuthorized.
        """
        ...

    def launched_by(self, launch_ids: Collection[str]) -> tuple[Instance, ...]:
        """What these launches have brought, also what has ended, for as long as EC2 shows it.

        That is about an hour, and for less by the tag of the launch that it is found by.
        Errors: Throttled, NotAuthorized.
        """
        ...

    def by_id(self, instance_ids: Collection[str]) -> tuple[Instance, ...]:
        """Those of these instances that EC2 shows, also what has ended, for about an hour; its tags
        may have gone by then. Errors: Throttled, NotAuthorized.
        """
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """End instances; ones already gone are no error, nor ones that a person has protected,
        which stay. Errors: Throttled, NotAuthorized.
        """
        ...

    def stop(self, instance_ids: Sequence[str]) -> None:
        """Stop instances; ones that are stopped, gone or not to be stopped are no error.
        Errors: Throttled, NotAuthorized.
        """
        ...


# DynamoDB takes 100 items in a transaction; the epoch is one of them.
COMMIT_MAX = 99
NO_ORDERS: Mapping[str, PendingOrder] = MappingProxyType({})
NO_LOSSES: Mapping[str, InterruptionLoss] = MappingProxyType({})


@frozen
class Finished:
    """What came of a launch. `nodes`: of its instances."""

    launch_id: str
    status: LaunchStatus
    nodes: Sequence[NodeRecord] = ()


@frozen
class LedgerView:
    """One consistent-enough read of the ledger: the epoch is read first.

    `digest_seen` None: none was acted on in the last ten minutes. `spent`: what nodes have cost
    that ended, or before their price did; `losses`: of those that AWS took back, by month.
    """

    epoch: Epoch
    digest_seen: Stamp | None
    nodes: tuple[NodeRecord, ...]
    launches: tuple[LaunchRecord, ...]
    resting: tuple[Resting, ...]
    stuck: tuple[Stuck, ...] = ()
    overrides: tuple[ScheduleOverride, ...] = ()
    spent: tuple[Charge, ...] = ()
    losses: tuple[MonthlyLosses, ...] = ()
    pool_history: tuple[PoolHistory, ...] = ()
    seen_market: SeenMarket = NEVER_SEEN


class Ledger(Protocol):
    """The only memory. Every method may raise Throttled or NotAuthorized."""

    def view(self) -> LedgerView:
        """Epoch, open launch records, nodes not yet terminated, resting offerings."""
        ...

    def nodes(self, instance_ids: Collection[str]) -> tuple[NodeRecord, ...]:
        """The records of these instances in whatever phase; unknown ones are left out."""
        ...

    def commit(
        self,
        epoch: Epoch,
        launches: Sequence[LaunchRecord],
        going: Mapping[str, PendingOrder] = NO_ORDERS,
    ) -> bool:
        """Move to the next epoch and record `launches` (`LaunchRecord.kept`), all or nothing.

        `going`: the order that will be sent to a node, for as many as `COMMIT_MAX` leaves room:
        whoever reads the next epoch sees who goes.
        False: another planner was faster; throw the plan away.
        """
        ...

    def take_launch(self, launch_id: str) -> bool:
        """Note that this planner sets out to finish it now; False: it is finished already."""
        ...

    def finish_launches(self, *finished: Finished) -> None:
        """Write the nodes of each launch, then its status; repeating it changes nothing. A node
        that was started (`is_started`) takes the place of what it was when it was stopped.
        """
        ...

    def advance_nodes(self, phases: Mapping[str, Phase]) -> None:
        """Move nodes forward; those that stand there or further, or are unknown, stay."""
        ...

    def stop_nodes(self, instance_ids: Collection[str]) -> None:
        """Note that these are released and stop now; those that have ended, or were told before,
        stay as they are.
        """
        ...

    def charge(self, stretches: Sequence[Stretch]) -> None:
        """Note when nodes stopped to cost or what they cost from now on; add what they have cost
        and the interruption losses of those that ended to the counters, and a line to the bill.
        Each stretch counts once, however often this is repeated; those of unknown and ended nodes
        do not count. Where another planner has noted another price since the record was read, a
        new price is dropped; an end is not, since nobody would count it: Throttled.
        """
        ...

    def bills(self, days: Collection[str]) -> tuple[Bill, ...]:
        """Of nodes or prices that ended on these days of UTC ("2026-11-23"), 400 days back."""
        ...

    def interrupt_nodes(
        self,
        reclaim_at_s: Mapping[str, float],
        interruption_losses: Mapping[str, InterruptionLoss] = NO_LOSSES,
    ) -> frozenset[str]:
        """Note when EC2 reclaims these nodes; those that are known and not past that.

        The first interruption loss of a node stays, also one of nothing.
        """
        ...

    def note_told(self, told: NodeOrphaned | GpuReset) -> None:
        """Note what a node which is known says of itself."""
        ...

    def cordon_node(self, instance_id: str, cordon: Cordon) -> bool:
        """Note that a node shall leave when it is empty; False when unknown or leaving anyway."""
        ...

    def set_orders(self, orders: Mapping[str, PendingOrder | None]) -> None:
        """Remember the order on its way to each node, or that it is settled."""
        ...

    def ungate(self, instance_ids: Collection[str]) -> None:
        """These nodes wait for no gang any more."""
        ...

    def resting(self, keys: Collection[RestKey]) -> tuple[Resting, ...]:
        """Those of these rests that there are, as in `view`."""
        ...

    def rest(self, *resting: Resting) -> None:
        """Remember refused offerings until their time; each stands there once."""
        ...

    def lift(self, *resting: Resting) -> None:
        """Forget these rests; what does not rest any more is no error."""
        ...

    def watch(self, stuck: Stuck) -> None:
        """Remember a job that Slurm does not start, for three hours after its last back-off."""
        ...

    def override_hours(self, override: ScheduleOverride) -> None:
        """Remember what a person wants, or that it ends earlier; for a day after its end."""
        ...

    def learn(self, pool_history: PoolHistory) -> bool:
        """Remember how a pool's launches fared, in place of what `pool_history` was made from.

        False: somebody has noted other news of the pool since that was read, and nothing is noted.
        """
        ...

    def see_market(self, seen: SeenMarket) -> None:
        """Remember what EC2 asks, instead of what was known."""
        ...

    def see_digest(self, stamp: Stamp) -> None:
        """Remember the newest digest that was acted on, for ten minutes."""
        ...


@frozen
class ReceivedDigest:
    """The newest digest and its age on the store's clock."""

    digest: Digest
    age_s: float


class Bus(Protocol):
    """The way between head and planner. Every method may raise Throttled or NotAuthorized."""

    def put_digest(self, digest: Digest) -> None:
        """Head: store the digest, then announce it; a lost announcement loses nothing."""
        ...

    def newest_digest(self) -> ReceivedDigest | None:
        """Planner: the newest digest, None before the first. Errors: BadEvent (unreadable)."""
        ...

    def look(self, why: str) -> None:
        """Ask for a look soon; every call has a unique body."""
        ...

    def send_orders(self, orders: Sequence[Order]) -> None:
        """Planner: put orders on the urgent or the routine queue by their kind."""
        ...

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple["ReceivedOrder", ...]:
        """Head: orders that arrived, at least once each; unreadable ones are dropped."""
        ...

    def acknowledge(self, received: "ReceivedOrder") -> None:
        """Head: the order was carried out, expired or failed for good."""
        ...


class Decisions(Protocol):
    """Where people find what looks decided. Both may raise Throttled or NotAuthorized."""

    def keep(self, verdicts: Verdicts) -> None:
        """Replace the newest verdicts."""
        ...

    def append(self, events: Sequence[LookEvent]) -> None:
        """Add what one look did to the log, under the time of the last of them."""
        ...


class Notices(Protocol):
    """Messages to people, and what they have been told. Each may raise Throttled, NotAuthorized."""

    def told(self) -> Told:
        """What was noted last, as it stands now; nothing before the first time."""
        ...

    def publish(self, message: Message) -> None:
        """Send it to everybody who has subscribed."""
        ...

    def note(self, told: Told) -> None:
        """Remember this instead of what was told before."""
        ...


class Reports(Protocol):
    """What the head handed in about who ran, by the names of periods, and the pages that were made
    of it. Each may raise Throttled, NotAuthorized.
    """

    def handed_in(self) -> Mapping[str, float]:
        """When, in epoch seconds of who keeps it."""
        ...

    def pages(self) -> Mapping[str, bool]:
        """Those that are there, and whether people were told."""
        ...

    def accounted(self, period: str, until_s: float) -> Accounted:
        """What was handed in; what still ran counts until then. Errors: also SlurmUnavailable."""
        ...

    def put(self, period: str, page: str) -> bool:
        """Keep the page; False: there is one, which stays."""
        ...

    def note_told(self, period: str) -> None: ...

    def where(self, period: str) -> str:
        """How people come to the page."""
        ...


@frozen
class ReceivedOrder:
    """An order and the queue's handle to acknowledge it."""

    order: Order
    handle: str
