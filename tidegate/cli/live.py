"""A deployed cluster, looked at from somewhere else, and how the commands that do so fail."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import typer

from tidegate.adapters.alarms import firing
from tidegate.adapters.clients import client
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.decisions import S3Decisions
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.adapters.ec2_head import Ec2Head
from tidegate.adapters.functions import invoke, read_environment
from tidegate.adapters.notices import told as told_of
from tidegate.adapters.person import who
from tidegate.core.explain.history import LOOK_DENIED, LOOK_FAILED
from tidegate.core.explain.overview import AlarmNow
from tidegate.core.explain.unjudged import Unjudged, is_judged, nobody_judges
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.fleet.rollout import on_its_way
from tidegate.core.model.calendar import ScheduleOverride, Wanted
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import (
    BadConfig,
    NotAuthorized,
    Throttled,
    TidegateError,
    UnknownCaller,
)
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Bill, Launch
from tidegate.core.model.notice import Told
from tidegate.core.model.plan import Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.rollout import Rollout, RolloutCode
from tidegate.core.model.snapshot import Snapshot
from tidegate.ports import Ledger
from tidegate.service import billing
from tidegate.service.observe import observe
from tidegate.service.requests import Placement, fleet_request, template_key
from tidegate.wire.config import ClusterFile
from tidegate.wire.settings import FunctionSettings
from tidegate.wiring.planner import control
from tidegate.wiring.resources import Clients, placement_of, planner_bus, resources_of

# What who is unknown to AWS does about it.
LOG_IN = "log in, or name a profile: tidegate --profile NAME ... (try: aws sts get-caller-identity)"

# A planner that fails does so at least every five minutes.
FAILURES_S = 900.0

# How often a person's word is tried beside planners that note other news.
NOTED_TRIES = 5


@frozen
class LiveCluster:
    """One look at a deployed cluster, planned for by a cluster file that may differ."""

    snapshot: Snapshot
    notes: tuple[str, ...]
    placement: Placement
    compute: Ec2Compute
    decisions: S3Decisions
    told: Callable[[], Told]  # what people were told, asked when it is called

    def head_trouble(self) -> tuple[str, ...]:
        """What EC2 says of a head that is silent although the calendar wants it up."""
        snapshot = self.snapshot
        if not snapshot.staleness or not snapshot.wanted.is_up:
            return ()
        name = snapshot.cluster.name
        shown = Ec2Head(self.compute.client, name).shown()
        if shown is None:
            return (f"EC2 shows no head: make it again: npx cdk deploy tidegate-{name}",)
        instance_id, state = shown
        if state in (InstanceState.STOPPED, InstanceState.STOPPING):
            does = f"start it: aws ec2 start-instances --instance-ids {instance_id}"
            return (f"EC2 says that the head {instance_id} is {state}; {does}",)
        look = f"aws ssm start-session --target {instance_id}"
        return (f"EC2 says that the head {instance_id} is {state}; look at its agent: {look}",)

    def unjudged(self, verdicts: Verdicts | None) -> Unjudged | None:
        """That nobody judges what the head reports; None: somebody does.

        Asks S3 twice more, and only where the newest report has no verdicts yet.
        """
        snapshot = self.snapshot
        if is_judged(snapshot, verdicts):
            return None
        judged_at_s = verdicts.at_s if verdicts else 0.0
        looks = self.decisions.since(max(judged_at_s, snapshot.now_s - FAILURES_S), most=1)
        ends = (LOOK_FAILED, LOOK_DENIED)
        failed = (event for look in looks for event in look if event.code in ends)
        last = next((event for event in failed if event.at_s > judged_at_s), None)
        return nobody_judges(snapshot, verdicts, last)

    def dry_run(self, plan: Plan) -> Iterator[str]:
        """What EC2 says of each launch of the plan; nothing is launched."""
        for launch in plan.actions:
            if isinstance(launch, Launch):
                yield f"EC2 on launch {launch.launch_id}: {self._answer(launch)}"

    def _answer(self, launch: Launch) -> str:
        zones = {each.zone for each in launch.offerings}
        has_subnets = all(self.placement.subnets_of(launch.pool, zone) for zone in zones)
        if launch.pool not in self.placement.templates or not has_subnets:
            return f"pool {launch.pool} is not deployed like this yet"
        offering = launch.offerings[0]
        if template_key(launch) not in self.placement.templates:
            return f"{offering.market} of pool {launch.pool} is not deployed yet"
        snapshot = self.snapshot
        full = [each for each in snapshot.full_subnets if each.until_s > snapshot.now_s]
        request = fleet_request(launch, snapshot.cluster.name, self.placement, full)
        return self.compute.dry_run(request) or "it would be taken"


def live(file: ClusterFile, clients: Clients | None = None) -> LiveCluster:
    """Look at the cluster that is deployed under the file's name.

    `clients` None: with the rights of who asks.
    Errors: BadConfig when there is none; Throttled, NotAuthorized.
    """
    make = clients_of(file, clients)
    settings = _settings(file, make)
    placement = placement_of(settings, file)
    made = control(file.cluster, resources_of(settings), placement, make, calendar=file.calendar)
    snapshot, notes = observe(
        file.cluster,
        compute=made.compute,
        ledger=made.ledger,
        bus=made.bus,
        clock=made.clock,
        calendar=made.calendar,
        alarms=made.alarms,
        templates=placement.templates,
        subnets_of=placement.subnets_of,
    )
    ec2 = Ec2Compute(make("ec2"), file.cluster.name)
    of_people = partial(told_of, make("dynamodb"), settings.table)
    stored = _decisions(file, settings, make)
    return LiveCluster(snapshot, notes, placement, ec2, stored, of_people)


def decisions(file: ClusterFile, clients: Clients | None = None) -> S3Decisions:
    """What its looks decided. Errors: those of `live`."""
    make = clients_of(file, clients)
    return _decisions(file, _settings(file, make), make)


def overrides(file: ClusterFile, clients: Clients | None = None) -> tuple[ScheduleOverride, ...]:
    """What people want instead of what the calendar says, oldest first. Errors: as `live`."""
    make = clients_of(file, clients)
    ledger = _ledger(_settings(file, make), make)
    return tuple(sorted(ledger.view().overrides, key=lambda one: one.made_at_s))


def override(file: ClusterFile, made: ScheduleOverride, clients: Clients | None = None) -> Wanted:
    """Write it down with who asks, and have the hours kept at once; what is wanted then.

    Errors: as `live`. Nothing is lost when the function cannot be called: it looks by itself
    within five minutes.
    """
    make = clients_of(file, clients)
    settings = _settings(file, make)
    signed = replace(made, who=made.who or who(make("sts")))
    ledger = _ledger(settings, make)
    ledger.override_hours(signed)
    at = datetime.fromtimestamp(signed.made_at_s, UTC).isoformat()
    name = f"tidegate-{file.cluster.name}-schedule"
    invoke(make("lambda"), name, {"schedule": signed.kind.value, "at": at})
    shown_s = max(signed.from_s, SystemClock().now_s())
    return file.calendar.wanted(shown_s, ledger.view().overrides)


def bills(
    file: ClusterFile, since_s: float, clients: Clients | None = None
) -> tuple[tuple[Bill, ...], float]:
    """What nodes have cost since then, and until when: of those that live until now, which is the
    second value. Lines may begin earlier. Errors: as `live`.
    """
    make = clients_of(file, clients)
    return billing.bills(_ledger(_settings(file, make), make), SystemClock(), since_s)


@frozen
class Retried:
    """Rests that were lifted, how many launches without a good node count no more, checks that
    are believed again, the template that was given up and is tried once more, and whether the
    check of idle nodes, which did not run, is.
    """

    lifted: tuple[Resting, ...]
    failures: int
    checks: tuple[str, ...] = ()
    template: str = ""
    is_tested_anew: bool = False

    @property
    def is_any(self) -> bool:
        about_nodes = self.checks or self.is_tested_anew
        return bool(self.lifted or self.failures or about_nodes or self.template)


def retried(file: ClusterFile, pool: str, clients: Clients | None = None) -> Retried:
    """Lift the rests of what the pool sells, open the pool, believe its checks again, and have the
    queue judged at once.

    What other pools sell too rests for these no more either. Errors: as `live`.
    """
    make = clients_of(file, clients)
    settings = _settings(file, make)
    ledger = _ledger(settings, make)
    view, now_s = ledger.view(), SystemClock().now_s()
    sold = {on for each in file.cluster.pools if each.name == pool for _, on in each.offerings()}
    lifted = tuple(
        each
        for each in sorted(view.resting, key=lambda each: each.key)
        if each.until_s > now_s and each.stops(pool) and each.offering in sold
    )
    ledger.lift(*lifted)
    found = Retried(lifted, 0, (), "")
    for history in _until_noted(ledger, pool):
        stops = tuple(replace(each, is_lifted=True) for each in history.stopped_checks)
        rollout = history.rollout
        template = rollout.template.digest if rollout and rollout.given_up else ""
        again = None if template else rollout
        checks = history.idle_checks and history.idle_checks.tried_anew
        names, is_anew = tuple(s.check for s in stops), checks != history.idle_checks
        found = Retried(lifted, len(history.failed), names, template, is_anew)
        after = replace(history, failed=(), stopped_checks=stops, rollout=again, idle_checks=checks)
        if after == history or ledger.learn(after):
            break
    if found.is_any:
        planner_bus(file.cluster.name, resources_of(settings), make).look(f"retry of pool {pool}")
    return found


def ask_rollout(
    file: ClusterFile, pool: str, asks: RolloutCode, clients: Clients | None = None
) -> Rollout | None:
    """Note what a person wants of the pool's roll-out, and have it done at once; the roll-out as it
    was, None: the pool is on none. Errors: as `live`.
    """
    make = clients_of(file, clients)
    settings = _settings(file, make)
    ledger = _ledger(settings, make)
    newest, by = placement_of(settings, file).templates.get(pool), ""
    for known in _until_noted(ledger, pool):
        found = on_its_way(known, newest)
        if found is None or found.given_up:
            return found
        by = by or who(make("sts"))
        if ledger.learn(replace(known, rollout=replace(found, asked=asks, by=by))):
            looks = planner_bus(file.cluster.name, resources_of(settings), make)
            looks.look(f"{asks} of pool {pool}")
            break
    return found


def _until_noted(ledger: Ledger, pool: str) -> Iterator[PoolHistory]:
    """What is known of the pool, read anew while planners note other news of it.

    Errors: Throttled, when they do so all the time.
    """
    for _ in range(NOTED_TRIES):
        known = (each for each in ledger.view().pool_history if each.pool == pool)
        yield next(known, PoolHistory(pool))
    raise Throttled(f"planners note news of pool {pool} all the time: try again in a minute")


def _ledger(settings: FunctionSettings, make: Clients) -> DynamoLedger:
    return DynamoLedger(make("dynamodb"), settings.table, SystemClock())


def alarms(file: ClusterFile, clients: Clients | None = None) -> tuple[AlarmNow, ...] | None:
    """The alarms that fire; None: who asks may not read them. Errors: Throttled."""
    try:
        return firing(clients_of(file, clients)("cloudwatch"), file.cluster.name)
    except NotAuthorized:
        return None


@contextmanager
def told() -> Iterator[None]:
    """Trouble outside is one sentence and exit code 1."""
    try:
        yield
    except UnknownCaller as error:
        typer.echo(f"AWS does not know who asks: {error}; {LOG_IN}", err=True)
        raise typer.Exit(code=1) from error
    except TidegateError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


def clients_of(file: ClusterFile, clients: Clients | None) -> Clients:
    """Those that are given, or clients in the cluster's region with the rights of who asks."""
    return clients or (lambda service: client(service, file.region))


def _settings(file: ClusterFile, make: Clients) -> FunctionSettings:
    """Where it keeps ledger and digest stands in the environment of its planner function."""
    name = f"tidegate-{file.cluster.name}-planner"
    environment = read_environment(make("lambda"), name)
    if environment is None:
        raise BadConfig(f"there is no function {name} in {file.region}: is the cluster deployed?")
    return FunctionSettings.from_environment(environment)


def _decisions(file: ClusterFile, settings: FunctionSettings, make: Clients) -> S3Decisions:
    return S3Decisions(make("s3"), settings.bucket, file.cluster.name)
