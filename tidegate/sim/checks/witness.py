"""What every check may know, and how it hears of what happens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import inf

from tidegate.core.interruption.policy import REBALANCE_HOLDS_S
from tidegate.core.model.calendar import NOTICE_S, Wanted
from tidegate.core.model.cluster import Cluster, Rebalance
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import LAUNCH_TAG, FleetRequest, FleetResult, Instance, Offering
from tidegate.core.model.events import (
    HealthNotice,
    News,
    RebalanceRecommendation,
    ReservationInterruption,
    SpotInterruption,
    said_at_s,
    subjects,
)
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.core.model.market import NEVER_SEEN
from tidegate.core.model.orders import Order
from tidegate.core.offers.market import at_market
from tidegate.ports import LedgerView
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S, Chaos
from tidegate.sim.slurm_parts import SimJob, SimNode
from tidegate.sim.world import SimWorld

# How long an order of a stop may be under way: its delay, its life, a late delivery.
ORDERS_LAST_S = 600
NOTICES = (SpotInterruption, ReservationInterruption)


class Broken(BaseException):
    """An invariant does not hold. No `Exception`: nothing under test may swallow it."""

    def __init__(self, check: str, sentence: str, found: str) -> None:
        super().__init__(f"{check}: {found}")
        self.check, self.sentence, self.found = check, sentence, found


@dataclass(slots=True)
class Witness:
    """The truth about one world: what its parts hold, and a few memories of its past.

    `views`, `digests`: what each planner that runs now has read, the outermost first; `head_s`:
    what time it was on the head's clock when it read the digest.
    `noticed`: instance -> when the interruption function acted on its notice; `hinted`: likewise
    for what only cordons it; `lifts_s`: until when it does; `announced`: those whose end AWS
    Health told, and when it is;
    `registered`: instance -> when it became a node. `tokens`: those that EC2 was asked with
    before. `viewed_s`, `committed_s`: when each planner read the
    ledger, and wrote to it; `commits`: how often they did in all; `beaten`: those whose epoch was
    another's when they committed.
    """

    world: SimWorld
    chaos: Chaos
    views: dict[int, LedgerView] = field(default_factory=dict)
    digests: dict[int, Digest] = field(default_factory=dict)
    head_s: dict[int, float] = field(default_factory=dict)
    viewed_s: dict[int, float] = field(default_factory=dict)
    committed_s: dict[int, float] = field(default_factory=dict)
    commits: int = 0
    beaten: set[int] = field(default_factory=set)
    noticed: dict[str, float] = field(default_factory=dict)
    hinted: dict[str, float] = field(default_factory=dict)
    lifts_s: dict[str, float] = field(default_factory=dict)
    announced: dict[str, float] = field(default_factory=dict)
    registered: dict[str, float] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)

    @property
    def digest_age_s(self) -> float:
        """How old the digest was when the planner that acts now read it."""
        digest = self.digests.get(self.depth)
        return self.head_s[self.depth] - digest.written_at_s if digest else inf

    @property
    def now_s(self) -> float:
        return self.world.clock.now_s()

    @property
    def depth(self) -> int:
        """How many planners run now, one inside the other."""
        return self.world.actors.count("planner")

    @property
    def is_head_well(self) -> bool:
        return self.world.head.is_up and self.world.slurm.is_up

    def view(self) -> LedgerView | None:
        """What the planner that acts now has read."""
        return self.views.get(self.depth)

    def prices_about(self, one: Instance, since_s: float, until_s: float) -> Iterator[float]:
        """What the instance was known to cost between two moments, where the file leaves that to
        the market: by the ledger, and by each reading of the market that counted. Where these say
        no price, that of its own launch is better than a guess.
        """
        ledger, node = self.world.ledger, self.world.ledger.all_nodes.get(one.instance_id)
        if node:
            held = [*ledger.all_prices.get(one.instance_id, ()), (self.now_s, node.usd_per_hour)]
            yield next((usd for at_s, usd in held if at_s >= until_s), node.usd_per_hour)
        yield from self.prices_read(one.offering, since_s, until_s)
        record = ledger.all_launches.get(one.launch_id)
        if record and not self._is_said(one.offering, since_s, until_s):
            bought_s = record.created_at_s
            yield from self.prices_read(one.offering, bought_s - PAUSE_MAX_S, bought_s)

    def prices_read(self, offering: Offering, since_s: float, until_s: float) -> Iterator[float]:
        """The prices by each reading of the market that counted between two moments."""
        for each in self._markets_read(since_s, until_s):
            yield each.prices[offering]

    def _is_said(self, offering: Offering, since_s: float, until_s: float) -> bool:
        """Whether any reading of the market that counted between two moments knows its price."""
        return any(offering in each.quoted for each in self._markets_read(since_s, until_s))

    def _markets_read(self, since_s: float, until_s: float) -> Iterator[Cluster]:
        readings = [(0.0, NEVER_SEEN), *self.world.ledger.all_markets, (inf, NEVER_SEEN)]
        for (at_s, seen), (next_s, _) in pairwise(readings):
            if at_s <= until_s and next_s >= since_s:
                yield at_market(self.world.cluster, seen, until_s)

    def was_stopped(self) -> bool:
        """What the calendar and people wanted while the planner that acts now made its plan: from
        its reading of the ledger, after which it may stand still, to its commit.
        """
        view = self.view()
        overrides = view.overrides if view else ()
        times = (each.get(self.depth, self.now_s) for each in (self.viewed_s, self.committed_s))
        return not any(self.world.calendar.wanted(at_s, overrides).is_up for at_s in times)

    def lately_ended_jobs(self) -> Iterator[Wanted]:
        """Stops within the last minutes that waited for running jobs no longer, the orders of
        which may still be on their way.
        """
        overrides = tuple(self.world.ledger.all_overrides.values())
        for ago_s in range(0, ORDERS_LAST_S, 20):
            at_s = self.now_s - ago_s
            made = [override for override in overrides if override.made_at_s <= at_s]
            wanted = self.world.calendar.wanted(at_s, made)
            ends_at_s = wanted.jobs_end_at_s
            if not wanted.is_up and ends_at_s is not None and at_s >= ends_at_s - NOTICE_S:
                yield wanted

    def record_of(self, request: FleetRequest) -> LaunchRecord | None:
        launch_id = dict(request.tags).get(LAUNCH_TAG, "")
        return self.world.ledger.all_launches.get(launch_id)

    def is_new(self, request: FleetRequest) -> bool:
        """Neither asked before nor in doubt: what is in doubt is repeated word for word."""
        view, launch_id = self.view(), dict(request.tags).get(LAUNCH_TAG, "")
        is_in_doubt = view and any(r.launch.launch_id == launch_id for r in view.launches)
        return request.client_token not in self.tokens and not is_in_doubt

    def launch_of(self, instance: Instance) -> Launch | None:
        record = self.world.ledger.all_launches.get(instance.launch_id)
        return record.launch if record else None

    def is_unheard_of(self, instance_id: str) -> bool:
        """What a launch has brought whose planners died, and Describe leaves out long after."""
        return instance_id in self.chaos.left_out and instance_id not in self.world.ledger.all_nodes

    def is_nobodys(self, instance_id: str) -> bool:
        """No planner can reckon with it: a person has started it, or nobody has heard of it."""
        return instance_id in self.chaos.by_hand or self.is_unheard_of(instance_id)

    def is_machine_dead(self, node: SimNode) -> bool:
        is_gone = not self.world.compute.is_live(node.name)
        return is_gone or node.died_at_s is not None or node.is_down


class Check:
    """One invariant. Its docstring is the sentence that a failure shows.

    A check overrides the events that it wants to hear of; it calls `broken` when the sentence
    does not hold.
    """

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.world = witness.world

    def broken(self, found: str) -> Broken:
        return Broken(type(self).__name__, (self.__doc__ or "").strip(), found)

    def requested(self, request: FleetRequest) -> None:
        """A planner asks EC2; EC2 has not acted yet."""

    def answered(self, request: FleetRequest, result: FleetResult) -> None:
        """EC2's answer reaches the planner."""

    def launched(self, instance: Instance) -> None: ...

    def terminating(self, instance_ids: tuple[str, ...]) -> None:
        """A planner ends instances; EC2 has not acted yet."""

    def ended(self, instance: Instance) -> None: ...

    def reclaimed(self, instance_id: str) -> None:
        """EC2 takes an instance back in the next moment."""

    def ordered(self, orders: Sequence[Order]) -> None:
        """Orders reach the agent."""

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        """The agent is about to change something in Slurm."""

    def sent(self, order: Order) -> None:
        """A function sends an order to the head."""

    def joined(self, node: SimNode) -> None:
        """A machine has become a node of Slurm."""

    def started(self, job: SimJob) -> None: ...

    def begun(self) -> None:
        """A planner begins a look."""

    def read(self, digest: Digest) -> None:
        """A planner reads the newest digest."""

    def looked(self, looked: Looked) -> None:
        """A planner has come to the end of its look."""

    def passed(self, seconds: float) -> None:
        """Time has passed, and what was due has happened."""


EVENTS = (
    "requested",
    "answered",
    "launched",
    "terminating",
    "ended",
    "reclaimed",
    "ordered",
    "commanded",
    "sent",
    "joined",
    "started",
    "begun",
    "read",
    "looked",
    "passed",
)


@dataclass(slots=True)
class Checks:
    """All checks of one world, wired to its parts."""

    witness: Witness
    kinds: Sequence[type[Check]]
    hearers: dict[str, list[Callable[..., None]]] = field(default_factory=dict)
    _seen_s: float = 0.0
    _known: frozenset[str] = frozenset()  # to the ledger, when the news came

    def install(self) -> None:
        """Hear of everything; each event goes only to the checks that override it."""
        checks = [kind(self.witness) for kind in self.kinds]
        for event, numbers in _hearing(tuple(self.kinds)):
            self.hearers[event] = [getattr(checks[number], event) for number in numbers]
        witness, world = self.witness, self.witness.world
        world.compute.on_launch.append(self._begins)
        world.slurm.on_join.append(self._joined)
        world.ledger.on_view.append(self._viewed)
        world.ledger.on_commit.append(self._committed)
        world.bus.on_digest.append(self._read)
        world.compute.on_request.append(self._requested)
        for hooks, event in (
            (world.compute.on_answer, "answered"),
            (world.compute.on_launch, "launched"),
            (world.compute.on_terminate, "terminating"),
            (world.compute.on_end, "ended"),
            (world.slurm.on_join, "joined"),
            (world.slurm.table.on_start, "started"),
            (world.slurm.on_command, "commanded"),
            (world.bus.on_order, "sent"),
            (world.on_begin, "begun"),
            (world.on_orders, "ordered"),
            (witness.chaos.on_reclaim, "reclaimed"),
        ):
            hooks.extend(self.hearers[event])
        world.on_news.append(self._hears)
        world.on_interrupted.append(self._noticed)
        world.on_event.append(self._passed)
        self._seen_s = world.clock.now_s()

    def looked(self, looked: Looked) -> None:
        chaos = self.witness.chaos
        is_unheard = any(done.snapshot.digest is None for done in looked.rounds)
        if chaos.injected["clock"] and is_unheard and self.witness.is_head_well:
            # One whose clock went back is not heard until its time ahead is forgotten.
            chaos.last_s["clock"] = self.witness.now_s
        for tell in self.hearers["looked"]:
            tell(looked)

    def _begins(self, instance: Instance) -> None:
        """What was stopped has a new life."""
        self.witness.registered.pop(instance.instance_id, None)

    def _joined(self, node: SimNode) -> None:
        self.witness.registered.setdefault(node.name, self.witness.now_s)

    def _is_planners(self) -> bool:
        """Other functions read as well, also while a planner stands still."""
        return self.witness.world.actors[-1:] == ["planner"]

    def _viewed(self, view: LedgerView) -> None:
        if not self._is_planners():
            return
        self.witness.views[self.witness.depth] = view
        self.witness.viewed_s[self.witness.depth] = self.witness.now_s
        self.witness.beaten.discard(self.witness.depth)

    def _committed(self, is_first: bool) -> None:
        self.witness.commits += 1
        self.witness.committed_s[self.witness.depth] = self.witness.now_s
        if not is_first:
            self.witness.beaten.add(self.witness.depth)

    def _read(self, digest: Digest) -> None:
        if not self._is_planners():
            return
        witness, depth = self.witness, self.witness.depth
        witness.digests[depth] = digest
        age_s = witness.now_s - witness.world.bus.put_at_s
        witness.head_s[depth] = digest.written_at_s + age_s
        for tell in self.hearers["read"]:
            tell(digest)

    def _requested(self, request: FleetRequest) -> None:
        for tell in self.hearers["requested"]:
            tell(request)
        self.witness.tokens.add(request.client_token)

    def _hears(self, news: Sequence[News]) -> None:
        self._known = frozenset(self.witness.world.ledger.all_nodes)

    def _noticed(self, news: Sequence[News]) -> None:
        """News of a node that the ledger learns of only meanwhile are no use to anybody."""
        now_s = self.witness.now_s
        for one in news:
            if isinstance(one, NOTICES) and one.instance_id in self._known:
                self.witness.noticed.setdefault(one.instance_id, now_s)
        for one in news:
            for name in subjects(one):
                if name in self._known and self._cordons(one, name):
                    self.witness.hinted.setdefault(name, now_s)
                    is_hint = isinstance(one, RebalanceRecommendation)
                    until_s = now_s + REBALANCE_HOLDS_S if is_hint else inf
                    self.witness.lifts_s[name] = max(until_s, self.witness.lifts_s.get(name, 0.0))
                    if isinstance(one, HealthNotice) and one.starts_at_s is not None:
                        self.witness.announced.setdefault(name, one.starts_at_s)

    def _cordons(self, one: News, name: str) -> bool:
        """Whether a node is to be left for these news, and not for others that got lost."""
        if isinstance(one, RebalanceRecommendation):
            pool = self.witness.world.cluster.pool(self.witness.world.compute.everything[name].pool)
            return pool is not None and pool.rebalance is Rebalance.CORDON
        # The first end counts: one that was announced before is drained for that.
        is_notice = isinstance(one, HealthNotice) and name not in self.witness.noticed
        return is_notice and not self._is_of_former(one, name)

    def _is_of_former(self, one: News, name: str) -> bool:
        """What was started again, by whomever, is on another host than AWS spoke of."""
        compute, at_s = self.witness.world.compute, said_at_s(one)
        is_before = at_s is not None and at_s < compute.everything[name].launched_at_s
        return is_before or name in compute.stopped

    def _passed(self) -> None:
        now_s = self.witness.now_s
        for tell in self.hearers["passed"]:
            tell(now_s - self._seen_s)
        self._seen_s = now_s


@cache
def _hearing(kinds: tuple[type[Check], ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Which of the kinds, by number, override each event."""
    return tuple(
        (
            event,
            tuple(
                number
                for number, kind in enumerate(kinds)
                if getattr(kind, event) is not getattr(Check, event)
            ),
        )
        for event in EVENTS
    )
