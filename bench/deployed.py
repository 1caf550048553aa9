"""A deployed cluster in the local cloud, live: rules, queues, functions and the head's agent.

What is measured here runs through the stack's own template: the notice is an event on the
default bus, a rule takes it to the queue, the interruption function reads it in the batches and
as often at once as its mapping says, and the agent gets its orders from the urgent queue.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import batched
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local.assembly import synthesize
from local.cloud import LocalCloud
from local.deploy import deploy
from local.router.functions import Invocation
from local.router.router import Router
from local.stack_world import StackWorld
from local.waiting import eventually
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.loop import HEARTBEAT_S, Agent
from tidegate.agent.lost_work import LostWorks
from tidegate.agent.run import Service
from tidegate.agent.watch import Waker
from tidegate.ports.slurm import Slurm
from tidegate.wire.config import load_cluster
from tidegate.wire.events import SPOT_DETAIL_TYPE

CLUSTER_FILE = Path(__file__).with_name("storm.yaml")
LOOK_FOR_NODES_S = 0.5
# PutEvents takes ten.
EVENTS_AT_ONCE = 10


@dataclass(slots=True)
class TimedSlurm:
    """Slurm's commands, with when each ended, how long it took and what it named."""

    slurm: Any
    drained_at_s: dict[str, float] = field(default_factory=dict)
    signalled_at_s: dict[str, float] = field(default_factory=dict)
    commands: list[tuple[str, tuple[str, ...], float]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        command = getattr(self.slurm, name)

        def timed(*given: Any) -> Any:
            began_s = time.monotonic()
            try:
                return command(*given)
            finally:
                names = tuple(given[0]) if given else ()
                self.commands.append((name, names, time.monotonic() - began_s))
                if name == "drain":
                    _note(self.drained_at_s, names)
                if name == "signal":
                    _note(self.signalled_at_s, names)

        return timed

    def named(self, kind: str) -> list[int]:
        """How many names each command of a kind had."""
        return [len(names) for name, names, _ in self.commands if name == kind]


def _note(at_s: dict[str, float], names: Sequence[str]) -> None:
    """The first time counts."""
    for name in names:
        at_s.setdefault(name, time.time())


@dataclass(slots=True)
class Live:
    """The deployed cluster at work."""

    world: StackWorld
    slurm: TimedSlurm
    boots: threading.Event

    @property
    def ledger(self) -> DynamoLedger:
        table = self.world.physical("AWS::DynamoDB::Table")
        return DynamoLedger(self.world.cloud.observer("dynamodb"), table, SystemClock())

    def notify(self, names: Sequence[str], *, within_s: float = 0.0) -> dict[str, float]:
        """EC2's notices for these nodes, evenly over a time; when each was put."""
        events = self.world.cloud.observer("events")
        chunks = list(batched(names, EVENTS_AT_ONCE, strict=False))
        began_s = time.time()
        put_at_s: dict[str, float] = {}
        for number, chunk in enumerate(chunks):
            time.sleep(max(0.0, began_s + within_s * number / len(chunks) - time.time()))
            put_at_s |= dict.fromkeys(chunk, time.time())
            answer = events.put_events(Entries=[_warning(name) for name in chunk])
            assert not answer["FailedEntryCount"]
        return put_at_s

    def drained_s(self, put_at_s: dict[str, float]) -> list[float]:
        """From each notice to the end of the command that drained its node."""
        at_s = self.slurm.drained_at_s
        self.until("all drained", lambda: at_s.keys() >= put_at_s.keys(), 90.0)
        return [at_s[name] - put_at_s[name] for name in put_at_s]

    def warm(self) -> float:
        """Start as many processes of the function as may run at once; how long the first took."""
        others = [f"i-{number:08x}" for number in range(40)]
        for _ in range(5):
            wanted = sum(self.interruptions()) + len(others)
            self.notify(others)
            self._await_read(wanted)
            cold = [each for each in self._runs() if each.is_cold]
            if len(cold) == 2:
                return cold[0].duration_s
        raise AssertionError("only one process of the function was ever needed")

    def has_digest(self) -> bool:
        s3, bucket = self.world.cloud.observer("s3"), self.world.physical("AWS::S3::Bucket")
        return bool(s3.list_objects_v2(Bucket=bucket, Prefix="digest/").get("Contents"))

    def _await_read(self, wanted: int) -> None:
        self.until("notices read", lambda: sum(self.interruptions()) >= wanted, 60.0)

    def until(self, what: str, ask: Callable[[], bool], patience_s: float) -> None:
        try:
            eventually(what, ask, patience_s)
        except AssertionError as late:
            raise AssertionError(f"{late}: {self.world.trouble()[:5]}") from late

    def stop_boots(self) -> None:
        """What is bought from now on boots for longer than the benchmark lasts."""
        self.boots.clear()

    def interruptions(self) -> list[int]:
        """How many notices each run of the interruption function had."""
        return [len(each.event["Records"]) for each in self._runs()]

    def _runs(self) -> list[Invocation]:
        runs = self.world.router.invocations
        return [each for each in runs if each.function_name.endswith("-interruption")]


def _warning(name: str) -> dict[str, Any]:
    return {
        "Source": "aws.ec2",
        "DetailType": SPOT_DETAIL_TYPE,
        "Resources": [f"arn:aws:ec2:us-east-1a:instance/{name}"],
        "Detail": json.dumps({"instance-id": name, "instance-action": "terminate"}),
    }


@contextmanager
def live(
    slurm: Slurm,
    log: Path,
    boot: Callable[[Sequence[str]], None] | None = None,
    cluster_file: Path = CLUSTER_FILE,
    heartbeat_s: float = HEARTBEAT_S,
    shared_dir: Path | None = None,
) -> Iterator[Live]:
    """The stack, deployed; `boot` makes instances that the planner has bought join Slurm.

    `boot` None: the planner is switched off. `shared_dir`: where files of jobs are looked at.
    """
    timed = TimedSlurm(slurm)
    with (
        TemporaryDirectory(prefix="tidegate-bench-") as out,
        LocalCloud() as cloud,
    ):
        file = load_cluster(cluster_file)
        assembly = synthesize(cluster_file, Path(out))
        deployment = deploy(cloud, assembly, f"tidegate-{file.cluster.name}")
        with Router(cloud) as router:
            world = StackWorld(cloud, deployment, router, file)
            made = Live(world, timed, threading.Event())
            made.boots.set()
            if boot is None:
                _switch_planner_off(world)
            router.start()
            agent = _agent(made, log, heartbeat_s, shared_dir)
            with agent, _booting(made, boot) if boot else nullcontext():
                yield made


def _switch_planner_off(world: StackWorld) -> None:
    functions = world.cloud.observer("lambda")
    for each in functions.list_event_source_mappings()["EventSourceMappings"]:
        if each["FunctionArn"].endswith("-planner"):
            functions.update_event_source_mapping(UUID=each["UUID"], Enabled=False)


@contextmanager
def _agent(made: Live, log: Path, heartbeat_s: float, shared_dir: Path | None) -> Iterator[None]:
    world, clock = made.world, SystemClock()
    heartbeats = Heartbeats(shared_dir) if shared_dir else None
    lost_works = LostWorks(clock, shared_dir)
    agent = Agent(
        slurm=made.slurm,
        bus=world.bus,
        clock=clock,
        cluster=world.file.cluster.name,
        head_instance_id=world.head_id,
        agent_started_at_s=clock.now_s(),
        heartbeat_s=heartbeat_s,
        beats=heartbeats or (lambda jobs: {}),
        lost_works=lost_works,
    )
    with Waker(log) as waker:
        service = Service(agent, world.bus, waker, heartbeats=heartbeats, lost_works=lost_works)
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            yield
        finally:
            service.stop()
            thread.join(60)


@contextmanager
def _booting(made: Live, boot: Callable[[Sequence[str]], None]) -> Iterator[None]:
    is_over = threading.Event()
    known: set[str] = set()

    def watch() -> None:
        while not is_over.wait(LOOK_FOR_NODES_S):
            new = [name for name in made.world.nodes() if name not in known]
            if new and made.boots.is_set():
                known.update(new)
                boot(new)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(60)
