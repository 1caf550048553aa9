"""What every plan promises, whoever carries it out."""

from dataclasses import replace
from random import Random

from tidegate.core.model.drain_reason import DrainCode, read
from tidegate.core.model.ec2 import FleetRequest
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send, Served, Unmet
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S
from tidegate.sim.checks.witness import Check, Witness

ONE_IN = 8  # of the plans is made once more from a shuffled snapshot
OPEN_OR_CLOSE = (OrderKind.DRAIN, OrderKind.UNDRAIN, OrderKind.RELEASE, OrderKind.DELETE)


class OfPlans(Check):
    """Looks at each plan that knew the queue."""

    def looked(self, looked: Looked) -> None:
        for done in looked.rounds:
            if done.snapshot.digest is not None and not done.snapshot.staleness:
                self.planned(done.snapshot, done.plan)

    def planned(self, snapshot: Snapshot, made: Plan) -> None: ...


class OneVerdict(OfPlans):
    """Every pending job has exactly one verdict, with a reason that says something."""

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        every: tuple[Served | Unmet, ...] = (*made.served, *made.unmet)
        verdicts: dict[str, int] = {}
        for each in every:
            verdicts[each.job_id] = verdicts.get(each.job_id, 0) + 1
            if not each.reason.strip() or "unknown" in each.reason.lower():
                raise self.broken(f"job {each.job_id} is told {each.reason!r}")
        for job in snapshot.digest.reading.jobs:
            if job.is_pending and (count := verdicts.get(job.job_id, 0)) != 1:
                raise self.broken(f"job {job.job_id} has {count} verdicts")


class NothingOnLeaving(OfPlans):
    """No job is promised a node that EC2 reclaims, that is down or that others have drained."""

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        leaving = {
            name: ("EC2 reclaims it", "")
            for name, noticed_s in self.witness.noticed.items()
            if noticed_s < snapshot.now_s - PAUSE_MAX_S
        }
        for node in snapshot.digest.reading.nodes:
            if node.state.is_rebooting:
                continue  # it comes as one that boots does
            if node.state.is_down or (node.state.is_drain and node.reason):
                said = f"it is {node.state}: {node.reason}"
                leaving.setdefault(node.name, (said, node.reason))
        leaders = {job.job_id: job.het_job_id for job in snapshot.digest.reading.jobs}
        for each in made.served:
            for name in each.by:
                said, reason = leaving.get(name, ("", ""))
                ids = (each.job_id, leaders.get(each.job_id, ""))
                if said and not _may_open(reason, ids, snapshot.now_s):
                    raise self.broken(f"job {each.job_id} is promised {name}, although {said}")


def _may_open(reason: str, job_ids: tuple[str, ...], now_s: float) -> bool:
    """We drained it ourselves, and open it for this job."""
    found = read(reason)
    if found is None:
        return False
    if found.code is DrainCode.KEPT:
        return now_s >= (found.until_s or 0.0) or found.subject in job_ids
    return found.code in (DrainCode.STOPPED, DrainCode.CLOSED)


class TogetherOrNotAtAll(OfPlans):
    """The components of a heterogeneous job all have their places in a plan, or none has."""

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        served = {each.job_id for each in made.served}
        parts: dict[str, list[str]] = {}
        for job in snapshot.digest.reading.jobs:
            if job.het_job_id and job.is_pending:
                parts.setdefault(job.het_job_id, []).append(job.job_id)
        for leader, ids in parts.items():
            lacking = [each for each in ids if each not in served]
            if 0 < len(lacking) < len(ids):
                raise self.broken(f"of job {leader} {', '.join(lacking)} would wait alone")


class OneOrderPerNode(OfPlans):
    """A plan opens a node, closes it or lets it go, once: whichever of two orders came later would
    count.
    """

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        told: dict[str, Order] = {}
        for each in made.actions:
            if not isinstance(each, Send) or each.order.kind not in OPEN_OR_CLOSE:
                continue
            for name in each.order.names:
                before = told.setdefault(name, each.order)
                if before is not each.order:
                    both = " and to ".join(f"{o.kind} ({o.text})" for o in (before, each.order))
                    raise self.broken(f"one plan asks to {both} {name}")


class BeatenPlansDropped(Check):
    """A plan that another planner was faster than is not carried out."""

    def requested(self, request: FleetRequest) -> None:
        self._drops(f"{request.client_token} is asked for")

    def terminating(self, instance_ids: tuple[str, ...]) -> None:
        self._drops(f"{', '.join(instance_ids)} is ended")

    def sent(self, order: Order) -> None:
        self._drops(f"order {order.order_id} is sent")

    def _drops(self, what: str) -> None:
        witness = self.witness
        if self.world.actors[-1:] == ["planner"] and witness.depth in witness.beaten:
            raise self.broken(f"{what} by a plan of an epoch that was another's")


class SameInAnyOrder(OfPlans):
    """The same snapshot in any order of its parts gives the same plan."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.chance = Random(f"{witness.chaos.options.seed}:order")

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        if not _has_an_order(snapshot) or self.chance.randrange(ONE_IN):
            return
        again = plan(self._shuffled(snapshot))
        if again != made:
            pairs = zip(made.actions, again.actions, strict=False)
            differing = next((pair for pair in pairs if pair[0] != pair[1]), "its verdicts")
            raise self.broken(f"another order changed {differing}")

    def _shuffled(self, snapshot: Snapshot) -> Snapshot:
        digest = snapshot.digest
        assert digest is not None
        reading = replace(
            digest.reading,
            jobs=self._mixed(digest.reading.jobs),
            nodes=self._mixed(digest.reading.nodes),
            associations=self._mixed(digest.reading.associations),
        )
        return replace(
            snapshot,
            digest=replace(digest, reading=reading, results=self._mixed(digest.results)),
            instances=self._mixed(snapshot.instances),
            nodes=self._mixed(snapshot.nodes),
            launches=self._mixed(snapshot.launches),
            resting=self._mixed(snapshot.resting),
        )

    def _mixed[T](self, parts: tuple[T, ...]) -> tuple[T, ...]:
        mixed = list(parts)
        self.chance.shuffle(mixed)
        return tuple(mixed)


class LooksEndInTime(Check):
    """No look outlives its planner, however slow EC2 is."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.began_s: dict[int, float] = {}

    def begun(self) -> None:
        self.began_s[self.witness.depth] = self.witness.now_s

    def looked(self, looked: Looked) -> None:
        took_s = self.witness.now_s - self.began_s[self.witness.depth]
        if took_s > self.world.cluster.timings.apply_lease_s:
            raise self.broken(f"a look of {len(looked.rounds)} rounds took {took_s:.0f} s")


def _has_an_order(snapshot: Snapshot) -> bool:
    """Whether any part of it could come in another order."""
    reading = snapshot.digest.reading if snapshot.digest else None
    in_reading = (reading.jobs, reading.nodes, reading.associations) if reading else ()
    parts = (snapshot.instances, snapshot.nodes, snapshot.launches, snapshot.resting, *in_reading)
    return any(len(part) > 1 for part in parts)
