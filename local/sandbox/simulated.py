"""The sandbox without root: the deployed template in a local AWS, Slurm and machines simulated.

Whatever runs on AWS is the product's own, and so is the head's agent. Of jobs only their time
passes: their scripts are not run.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from local.assembly import synthesize
from local.clients import client_at
from local.cloud import LocalCloud
from local.demo.stage import HEARTBEAT_S
from local.deploy import Deployment, deploy
from local.iam.roles import HASH_CHARS
from local.instance_roles import InstanceRoles
from local.instances import Listing
from local.router.router import Router
from tidegate.adapters.bus import AwsBus
from tidegate.adapters.clock import SystemClock
from tidegate.agent.loop import Agent
from tidegate.agent.orders import batches
from tidegate.core.model.ec2 import GATE_TAG, LAUNCH_TAG, POOL_TAG, Market
from tidegate.core.model.errors import TidegateError
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import node_of
from tidegate.wire.config import ClusterFile, load_cluster

BOOT_S = 5.0
STEP_S = 0.2
# The agent's own: at most one look a second, and one at least in ten.
LOOK_S, IDLE_LOOK_S = 1.0, 10.0
RUNNING = ("pending", "running")


@dataclass(slots=True)
class SimulatedStage:
    """Use it as a context. Whoever touches `slurm` holds `lock`.

    `prepare`: what the local cloud is to have before anything is deployed.
    """

    cluster_file: Path
    prepare: Callable[[LocalCloud, ClusterFile], None] = lambda cloud, file: None
    file: ClusterFile = field(init=False)
    cloud: LocalCloud = field(init=False)
    deployment: Deployment = field(init=False)
    router: Router = field(init=False)
    slurm: SimSlurm = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _agent: Agent = field(init=False)
    _bus: AwsBus = field(init=False)
    _listing: Listing = field(init=False)
    _ec2: Any = field(init=False)
    _booting_s: dict[str, float] = field(default_factory=dict)
    _joined: set[str] = field(default_factory=set)
    _reclaim_at_s: dict[str, float] = field(default_factory=dict)
    _looked: tuple[float, int] = (0.0, -1)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.file = load_cluster(self.cluster_file)
        cluster = self.file.cluster
        assembly = synthesize(self.cluster_file, self.cluster_file.parent / "cdk.out")
        self.cloud = LocalCloud()
        self.cloud.start()
        self.prepare(self.cloud, self.file)
        self._ec2 = self.cloud.observer("ec2")
        states = [*RUNNING, "stopping", "stopped"]
        self._listing = Listing(self._ec2, [{"Name": "instance-state-name", "Values": states}])
        self.deployment = deploy(self.cloud, assembly, f"tidegate-{cluster.name}")
        self.slurm = SimSlurm(cluster, SystemClock())
        self._bus = self._bus_of_head()
        self._agent = self._started_agent()
        self.router = Router(self.cloud)
        self.router.start()
        self._thread = threading.Thread(target=self._run, name="head", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread:
            self._thread.join()
        self.router.stop()
        self.cloud.stop()

    @property
    def is_head_up(self) -> bool:
        return self._listing.now()[self.head_id]["State"]["Name"] in RUNNING

    @property
    def head_id(self) -> str:
        (found,) = self.deployment.physical_ids("AWS::EC2::Instance")
        return found

    def instances(self) -> tuple[tuple[str, str, str], ...]:
        """Nodes: their ids, offerings, and EC2's state of them."""
        return tuple(
            (name, f"{one['InstanceType']}/{_zone(one)}/{_market(one)}", one["State"]["Name"])
            for name, one in sorted(self._nodes().items())
        )

    def pools_of_nodes(self) -> dict[str, str]:
        """The pool of each node."""
        return {name: _tags(one)[POOL_TAG] for name, one in self._nodes().items()}

    def notice(self, instance_id: str) -> None:
        """EC2 announces that it takes this node back, and does so in time."""
        self.cloud.warn_of_interruption(instance_id)
        notice_s = self.file.cluster.timings.spot_notice_s
        self._reclaim_at_s[instance_id] = time.time() + notice_s

    def pass_scheduled(self, seconds: float) -> None:
        until_s = self.router.clock.now_s() + seconds
        self.router.advance_to(datetime.fromtimestamp(until_s, UTC))

    # -- the head and the machines -----------------------------------------------------------

    def _run(self) -> None:
        """One thread for slurmctld, the agent and all machines."""
        while not self._is_over.wait(STEP_S):
            with self.lock:
                self._machines()
                self._follow_head()
                if not self.slurm.is_up:
                    continue
                self.slurm.step()
                with suppress(TidegateError):  # AWS did not answer: it is asked again
                    self._take_orders()
                self._look()

    def _machines(self) -> None:
        there, now_s = self._nodes(), time.time()
        for name, one in there.items():
            since_s = self._booting_s.setdefault(name, now_s)
            if name not in self._joined and self.slurm.is_up and now_s - since_s >= BOOT_S:
                self._join(name, one)
        for name in self._booting_s.keys() - there.keys():
            self.slurm.die(name)
            del self._booting_s[name]
        for name in [each for each, at_s in self._reclaim_at_s.items() if at_s <= now_s]:
            del self._reclaim_at_s[name]
            if name in there:
                self._ec2.terminate_instances(InstanceIds=[name])

    def _join(self, name: str, one: Any) -> None:
        self._joined.add(name)  # one that Slurm has let go does not come back
        tags = _tags(one)
        pool = self.file.cluster.pool(tags[POOL_TAG])
        shape = self.file.cluster.instance_type(one["InstanceType"])
        assert pool is not None, "its launch template is one of the stack's"
        assert shape is not None, "the pool has no other types"
        features = pool.features(shape.name, Market(_market(one)))
        is_gated = tags.get(GATE_TAG) == "drain"
        self.slurm.register(node_of(name, shape, features, is_gated=is_gated))

    def _follow_head(self) -> None:
        """It is stopped and started from outside; slurmctld keeps its state on the volume."""
        is_up = self.is_head_up
        if is_up is not self.slurm.is_up:
            self.slurm.is_up = is_up
            if is_up:
                self.slurm.restart()
                self._agent = self._started_agent()

    def _look(self) -> None:
        looked_s, changes = self._looked
        is_new = changes != self.slurm.table.changes or self._agent.is_settling
        if time.time() - looked_s >= (LOOK_S if is_new else IDLE_LOOK_S):
            self._looked = (time.time(), self.slurm.table.changes)
            self._agent.tick()

    def _take_orders(self) -> None:
        for urgent in (True, False):
            received = self._bus.receive_orders(urgent=urgent, wait_s=0)
            for batch in batches(received, lambda one: one.order) if received else ():
                self._agent.on_orders([each.order for each in batch])
                for each in batch:
                    self._bus.acknowledge(each)
                self._looked = (0.0, -1)

    def _sleep(self, seconds: float) -> None:
        """The agent waits within an order; whoever types meanwhile gets an answer."""
        self.lock.release()
        try:
            time.sleep(seconds)
        finally:
            self.lock.acquire()
        self.slurm.step()

    def _started_agent(self) -> Agent:
        return Agent(
            slurm=self.slurm,
            bus=self._bus,
            clock=SystemClock(),
            cluster=self.file.cluster.name,
            head_instance_id=self.head_id,
            agent_started_at_s=time.time(),
            sleep=self._sleep,
            heartbeat_s=HEARTBEAT_S,
        )

    def _bus_of_head(self) -> AwsBus:
        """With the credentials that the head's machine gets."""
        observer = self.cloud.observer
        roles = InstanceRoles(observer("ec2"), observer("iam"), observer("sts"))
        given = roles.credentials_of(self.head_id)
        s3, events, sqs = (
            client_at(
                self.cloud.endpoint_url,
                service,
                given.access_key_id,
                given.secret_access_key,
                given.token,
            )
            for service in ("s3", "events", "sqs")
        )
        return AwsBus(
            s3,
            events,
            sqs,
            cluster=self.file.cluster.name,
            bucket=self._physical("AWS::S3::Bucket"),
            event_bus=self.deployment.stack_name,
            urgent_queue_url=self._physical("AWS::SQS::Queue", "Urgent"),
            routine_queue_url=self._physical("AWS::SQS::Queue", "Routine"),
        )

    def _physical(self, kind: str, part: str = "") -> str:
        (found,) = (
            physical
            for name, (type_, physical) in self.deployment.resources.items()
            if type_ == kind and name[:-HASH_CHARS].endswith(part)
        )
        return found

    def _nodes(self) -> dict[str, Any]:
        return {
            name: one
            for name, one in self._listing.now().items()
            if one["State"]["Name"] in RUNNING and LAUNCH_TAG in _tags(one)
        }


def _tags(one: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}


def _zone(one: Any) -> str:
    return str(one["Placement"]["AvailabilityZone"])


def _market(one: Any) -> str:
    return str(one.get("InstanceLifecycle", "on-demand"))
