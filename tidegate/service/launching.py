"""Asking EC2 for what a plan launches, side by side, and writing down what came.

Every launch is in the ledger before. Each answer is written down as it comes: whatever kills the
planner meanwhile leaves what was not answered in doubt, and a later look finishes it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from itertools import batched

from tidegate.core.buy.dealing import dealt, jobs_of
from tidegate.core.buy.waves import waves
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import (
    Cure,
    FleetResult,
    Instance,
    Offering,
    Override,
    Refusal,
    RefusalKind,
    template_name,
)
from tidegate.core.model.errors import NotAuthorized, Permanent, TidegateError, Transient
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch, LaunchRecord, LaunchStatus, NodeRecord, Phase
from tidegate.core.model.plan import Resume
from tidegate.core.model.resting import STARTS, Resting, rested
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import ended
from tidegate.ports import FLEETS_AT_ONCE, Answered, Clock, Compute, Finished, Ledger
from tidegate.service.outcome import Outcome


@frozen
class Launching:
    """The launches of one plan. `until_s`: after this time EC2 is asked for no more."""

    compute: Compute
    ledger: Ledger
    clock: Clock
    snapshot: Snapshot
    until_s: float
    outcome: Outcome
    _brought: dict[str, tuple[Instance, ...]] = field(default_factory=dict)

    def launch(self, records: Sequence[LaunchRecord], resumed: Sequence[Resume]) -> None:
        """Ask EC2 wave by wave; an offering refused in one is not tried again in the next.

        Errors: Throttled, NotAuthorized of the ledger; what was written until then stays.
        """
        known = {record.launch.launch_id: record for record in self.snapshot.launches}
        in_doubt = self._with_brought([known[each.launch_id] for each in resumed])
        may_buy = {each.launch_id for each in resumed if each.may_buy}
        shown = [each for each in in_doubt if self._is_told(each, may_buy)]
        if shown:
            self._finish((each, FleetResult(self._seen(each), ())) for each in shown)
        # Another planner may have closed it meanwhile, and nobody counts on it any more.
        taken = [
            each
            for each in in_doubt
            if each not in shown and self.ledger.take_launch(each.launch.launch_id)
        ]
        asking = [each for each in taken if each.launch.launch_id in may_buy]
        failures: Counter[Offering] = Counter()
        for each in self.snapshot.resting:
            failures[each.offering] += each.failures
        planned = waves(records, asking, failures)
        for wave in (part for whole in planned for part in _at_once(whole)):
            if self.clock.now_s() >= self.until_s:
                self._leave([each for each in wave if each not in asking])
            else:
                self._ask(self._hopeful(wave, asking))

    def _with_brought(self, in_doubt: Sequence[LaunchRecord]) -> Sequence[LaunchRecord]:
        """Ask EC2 what launches in doubt have brought, also what has ended: a day's budget counts
        it. Where EC2 does not say, they stay in doubt: none are returned.
        """
        if not in_doubt:
            return ()
        try:
            found = self.compute.launched_by([each.launch.launch_id for each in in_doubt])
        except TidegateError as trouble:
            said = f"{len(in_doubt)} launches in doubt have to wait: {trouble}"
            self.outcome.trouble.append(said)
            return ()
        for each in in_doubt:
            launch_id = each.launch.launch_id
            self._brought[launch_id] = tuple(one for one in found if one.launch_id == launch_id)
        return in_doubt

    def _is_told(self, record: LaunchRecord, may_buy: set[str]) -> bool:
        """The tag tells what the dead planner bought; unless all of it shows, ask again.

        The identical request under the same token buys nothing twice even when EC2 has the
        instances and does not show them yet. Where it may buy nothing, what shows is all, once
        another planner has looked before: Describe leaves out what lives now and then.
        """
        is_barred = record.launch.launch_id not in may_buy
        return self._is_whole(record) or (is_barred and record.taken_at_s is not None)

    def _is_whole(self, record: LaunchRecord) -> bool:
        return len(self._seen(record)) >= record.launch.count

    def _seen(self, record: LaunchRecord) -> tuple[Instance, ...]:
        """What the launch is seen to have brought already."""
        launch_id = record.launch.launch_id
        shown = (one for one in self.snapshot.instances if one.launch_id == launch_id)
        every = (*shown, *self._brought.get(launch_id, ()))
        found = {one.instance_id: one for one in every}.values()
        # What it starts has its tags before it starts.
        is_start = bool(record.launch.starts)
        return tuple(one for one in found if not (is_start and one.is_stopped))

    def _leave(self, records: Sequence[LaunchRecord]) -> None:
        """Nothing is asked of EC2: the next plan begins anew."""
        self.outcome.is_late = True
        self._give_up(records)

    def _hopeful(
        self, wave: Sequence[LaunchRecord], asking: Sequence[LaunchRecord]
    ) -> list[LaunchRecord]:
        """Without those of which everything was refused just now, and without those of gangs of
        which another part did not come; what is in doubt is asked.
        """
        refused = self.outcome.refused
        hopeless = [
            each
            for each in wave
            if each not in asking
            and (
                each.launch.gated_for in self.outcome.lacking
                or all(_is_refused(each, on, refused) for on in each.request.overrides)
            )
        ]
        self._give_up(hopeless)
        return [each for each in wave if each not in hopeless]

    def _give_up(self, records: Sequence[LaunchRecord]) -> None:
        if records:
            ids = [each.launch.launch_id for each in records]
            self.outcome.lacking.update(filter(None, (r.launch.gated_for for r in records)))
            self.ledger.finish_launches(*(Finished(each, LaunchStatus.FAILED) for each in ids))

    def _ask(self, wave: Sequence[LaunchRecord]) -> None:
        by_request = {each.request.client_token: each for each in wave}
        requests = [each.request for each in wave]
        # Closed at once also when this planner dies: then nobody hears the other answers.
        with closing(self.compute.create_fleets(requests)) as answers:
            for came in answers if wave else ():
                self._finish(
                    (record, result)
                    for each in came
                    for record in (by_request[each.request.client_token],)
                    if (result := self._result(record, each)) is not None
                )

    def _result(self, record: LaunchRecord, answered: Answered) -> FleetResult | None:
        """What came of it; None: it stays in doubt, and what may pass is tried after the lease.

        Trouble with one launch is told and leaves the others alone: a broken template of one
        pool must not stop the rest.
        """
        launch, result = record.launch, answered.result
        if isinstance(result, Transient):
            self.outcome.trouble.append(f"launch {launch.launch_id} has to wait: {result}")
            self.outcome.lacking.update(filter(None, [launch.gated_for]))
            return None
        if isinstance(result, TidegateError):
            assert isinstance(result, Permanent), "trouble passes or it does not"
            self.outcome.trouble.append(f"launch {launch.launch_id} given up: {result}")
            code, said = type(result).__name__, str(result)
            # What is not started says nothing of what is sold.
            refusals = [
                Refusal(one, RefusalKind.OTHER, code, said, result.cure)
                for one in (() if launch.starts else launch.offerings)
            ]
            if launch.starts and isinstance(result, NotAuthorized):
                refusals = [_denied_start(launch, code, said)]
            result = FleetResult((), tuple(refusals))
        seen = {one.instance_id: one for one in self._seen(record)}
        instances = seen | {
            one.instance_id: replace(one, state=seen.get(one.instance_id, one).state)
            for one in result.instances
        }
        is_silent = not result.instances and not result.refusals
        if is_silent and self._may_show_more(record):
            said = (
                f"launch {launch.launch_id} is looked for again: EC2 does not say what it brought"
            )
            self.outcome.trouble.append(said)
            self.outcome.lacking.update(filter(None, [launch.gated_for]))
            return None
        if not instances and not result.refusals:
            said = f"launch {launch.launch_id}: EC2 gave nothing and said nothing"
            self.outcome.trouble.append(said)
        return FleetResult(tuple(instances.values()), result.refusals)

    def _may_show_more(self, record: LaunchRecord) -> bool:
        """A launch in doubt that no planner has looked for before: not all that lives may show."""
        is_in_doubt = record.launch.launch_id in self._brought
        return is_in_doubt and record.taken_at_s is None and not self._is_whole(record)

    def _finish(self, results: Iterable[tuple[LaunchRecord, FleetResult]]) -> None:
        """Write down what came of these launches, all of them in few calls."""
        cluster = self.snapshot.cluster
        finished: list[Finished] = []
        refused: list[Refusal] = []
        launched: list[Instance] = []
        unstarted: list[str] = []
        for record, result in results:
            gangs = dealt(record.launch, result.instances, self._known(record.launch))
            came = [
                _node_record(
                    *(record.launch, number, one, gangs[one.instance_id], cluster),
                    died_in=None if one.is_alive else self._phase(one),
                )
                for number, one in enumerate(result.instances)
            ]
            status = LaunchStatus.DONE if came else LaunchStatus.FAILED
            if record.launch.starts and not came and not result.refusals:
                unstarted.append(record.launch.starts)
            if len(came) < record.launch.min_count:
                self.outcome.lacking.update(filter(None, [record.launch.gated_for]))
            finished.append(Finished(record.launch.launch_id, status, came))
            refused.extend(_blamed(each, record) for each in result.refusals)
            launched.extend(result.instances)
        if rests := tuple(self._rests(refused)):
            self.ledger.rest(*rests)
        if finished:
            self._close_stops([node for each in finished for node in each.nodes])
            self.ledger.finish_launches(*finished)
        over = {one.instance_id for one in launched if not one.is_alive}
        nodes = [node for each in finished for node in each.nodes]
        self._return([node for node in nodes if node.instance_id not in over], unstarted)
        self.outcome.launched.extend(launched)
        self.outcome.refused.extend(refused)

    def _close_stops(self, started: Sequence[NodeRecord]) -> None:
        """Count what these have cost while they were stopped, before they are new nodes."""
        before = {each.instance_id: each for each in self.snapshot.nodes}
        stops = [before[each.instance_id] for each in started if each.is_started]
        counted = [ended(each, self.clock.now_s()) for each in stops if each.ended_at_s is None]
        if counted:
            self.ledger.charge(counted)

    def _known(self, launch: Launch) -> dict[str, str]:
        """The nodes that an earlier planner wrote down of it, and the gang of each."""
        nodes = self.snapshot.nodes if launch.gangs else ()
        return {
            one.instance_id: one.gated_for for one in nodes if one.launch_id == launch.launch_id
        }

    @property
    def _joined(self) -> frozenset[str]:
        digest = self.snapshot.digest
        return frozenset(node.name for node in digest.reading.nodes) if digest else frozenset()

    def _phase(self, one: Instance) -> Phase:
        """How far it came, of which no planner has noted anything."""
        return Phase.JOINED if one.instance_id in self._joined else Phase.LAUNCHED

    def _return(self, nodes: Sequence[NodeRecord], unstarted: Sequence[str]) -> None:
        """End what came beyond whole gangs; the ledger has let go of it, so the next plan would.
        And what EC2 does not start for another reason than that it has none: it would be asked for
        again and again.

        What a dead planner bought may have joined meanwhile: then it leaves Slurm first.
        """
        spare = [
            one.instance_id
            for one in nodes
            if one.phase is Phase.RELEASED and one.instance_id not in self._joined
        ]
        spare += unstarted
        if spare:
            try:
                self.compute.terminate(spare)
            except TidegateError as trouble:
                self.outcome.trouble.append(f"{len(spare)} nodes of no use end later: {trouble}")

    def _rests(self, refused: Sequence[Refusal]) -> Iterator[Resting]:
        """From now on: EC2 may have taken as long to answer as the shortest rest lasts."""
        snapshot = self.snapshot
        before = (*snapshot.resting, *snapshot.denied_starts, *snapshot.full_subnets)
        known = {resting.key: resting for resting in before}
        timings, now_s = snapshot.cluster.timings, self.clock.now_s()
        told = [each for each in refused if each.kind is not RefusalKind.THROTTLED]
        for key, refusal in {each.key: each for each in told}.items():
            yield rested(refusal, known.get(key), now_s, timings)


def _denied_start(launch: Launch, code: str, said: str) -> Refusal:
    """It says nothing of the node, which is kept, nor of what is sold."""
    denied = Refusal(launch.offerings[0], RefusalKind.OTHER, code, said, Cure.START_DENIED)
    return replace(denied, pool=launch.pool, template=STARTS)


def _is_refused(record: LaunchRecord, asked: Override, refused: Iterable[Refusal]) -> bool:
    launch = record.launch
    offering = Offering(asked.instance_type, asked.zone, record.request.market)
    return any(
        each.offering == offering
        and each.pool in ("", launch.pool)
        and each.reservation in ("", launch.reservation)
        and each.subnet in ("", asked.subnet_id)
        for each in refused
    )


def _blamed(refusal: Refusal, record: LaunchRecord) -> Refusal:
    """With whose it is: what another pool sells does not rest for a template of this one, nor what
    another reservation holds for this one.
    """
    if not refusal.cure.is_of_pool:
        return replace(refusal, reservation=record.launch.reservation)
    request = record.request
    name = template_name(request.launch_template_id, request.launch_template_version)
    return replace(refusal, pool=record.launch.pool, template=name)


def _at_once(wave: Sequence[LaunchRecord]) -> Iterator[Sequence[LaunchRecord]]:
    """What is in doubt may be more than goes to EC2 side by side."""
    return batched(wave, FLEETS_AT_ONCE, strict=False)


def _node_record(
    launch: Launch,
    number: int,
    instance: Instance,
    gang: str | None,
    cluster: Cluster,
    *,
    died_in: Phase | None,
) -> NodeRecord:
    """`gang` None: it is let go of, nobody has asked for it; so is what has ended already."""
    is_to_boot = gang is not None and died_in is None
    return NodeRecord(
        instance_id=instance.instance_id,
        launch_id=launch.launch_id,
        pool=launch.pool,
        offering=instance.offering,
        launched_at_s=instance.launched_at_s,
        usd_per_hour=cluster.prices.get(instance.offering, launch.usd_per_hour_each),
        phase=Phase.LAUNCHED if is_to_boot else Phase.RELEASED,
        interrupted_in=died_in,
        gated_for=gang or "",
        account=launch.account,
        user=cluster.counted(launch.user),
        template=instance.template,
        is_started=bool(launch.starts),
        layout=launch.layout,
        for_jobs=(gang,) if gang in launch.for_jobs else jobs_of(launch, number),
        reservation=launch.reservation,
    )
