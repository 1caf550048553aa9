"""The story on real Slurm daemons, real munge and machines that run the rendered user data."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from local.assembly import synthesize
from local.cloud import LocalCloud
from local.demo.asks import Ask
from local.demo.chronicle import Chronicle
from local.demo.stage import HEARTBEAT_S, Refused, Seen, open_records, record_look
from local.deploy import Deployment, deploy
from local.hypervisor import Hypervisor
from local.iam.roles import role_arns
from local.instances import Listing
from local.machine import Machine, MachineSpec
from local.router.router import Router
from local.slurm_commands import MachineRunner
from local.world import BRIDGE_ADDRESS, World, WorldSettings
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.core.model.ec2 import CLUSTER_TAG, ROLE_TAG
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.wire.config import ClusterFile, load_cluster

AWS_PORT = 5000
USERS = ("ada", "grace")
HEAD_PATIENCE_S = 90.0
LOCAL_BIN = Path(__file__).parents[1] / "bin"
FABRIC_MANAGER = "nv-fabricmanager"
DRIVER_VERSION = "580.65.06"  # as local/bin/nvidia-smi says


class HeadDidNotBoot(Exception):
    """The head never reported; the message holds the tail of its console."""


@dataclass(slots=True)
class RealStage:
    """Use it as a context, inside namespaces.enter().

    `prepare`: what the local cloud is to have before anything is deployed.
    """

    cluster_file: Path
    prepare: Callable[[LocalCloud, ClusterFile], None] = lambda cloud, file: None
    name: str = "real Slurm in namespaces, the deployed template in moto"
    chronicle: Chronicle = field(default_factory=Chronicle)
    seen: Seen = field(default_factory=Seen)
    file: ClusterFile = field(init=False)
    world: World = field(init=False)
    cloud: LocalCloud = field(init=False)
    deployment: Deployment = field(init=False)
    hypervisor: Hypervisor = field(init=False)
    router: Router = field(init=False)
    _ec2: Any = field(init=False)
    _listing: Listing = field(init=False)
    # One for all looks, as the agent has: it asks once for what stays true, as a job's script.
    _slurm: SlurmCli = field(init=False)
    _is_heard: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.file = load_cluster(self.cluster_file)
        self._slurm = SlurmCli(lambda argv, bound_s: MachineRunner(self.head)(argv, bound_s))
        stack = f"tidegate-{self.file.cluster.name}"
        assembly = synthesize(self.cluster_file, self.cluster_file.parent / "cdk.out")
        self.world = World(WorldSettings(AWS_PORT, self.file.region)).__enter__()
        for each in self.file.file_systems:
            if each.kind == "efs":
                (self.world.shared_dir.parent / each.source).mkdir(exist_ok=True)
        self.cloud = LocalCloud(BRIDGE_ADDRESS, AWS_PORT)
        self.cloud.start()
        self.prepare(self.cloud, self.file)
        self._ec2 = self.cloud.observer("ec2")
        self._listing = Listing(
            self._ec2,
            [
                {"Name": f"tag:{CLUSTER_TAG}", "Values": [self.file.cluster.name]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ],
        )
        self.deployment = deploy(self.cloud, assembly, stack)
        self.hypervisor = Hypervisor(
            self._ec2, self.world, adjust=self._adjusted, clients=self.cloud.observer
        )
        self.hypervisor.start()
        self.router = Router(self.cloud, on_log=self._logged)
        self.router.start()
        self._wait_for_the_head()
        self._add_users()
        self._wait_for_the_agent()
        return self

    def __exit__(self, *_: object) -> None:
        self.router.stop()
        self.hypervisor.stop()
        self.world.__exit__(None, None, None)
        self.cloud.stop()

    @property
    def head(self) -> Machine:
        """The head's machine; a new one after each start. Errors: HeadDidNotBoot."""
        machine = self.hypervisor.machine(self.head_id)
        if machine is None:
            raise HeadDidNotBoot("the head has no machine")
        return machine

    @property
    def head_id(self) -> str:
        """Its instance id."""
        (found,) = self._instances_of("Head")
        return found

    @property
    def login_ids(self) -> list[str]:
        """The instance ids of login nodes, in the order of their numbers."""
        return self._instances_of("Login")

    def _instances_of(self, part: str) -> list[str]:
        return [
            physical
            for name, (kind, physical) in self.deployment.resources.items()
            if kind == "AWS::EC2::Instance" and name.startswith(part)
        ]

    def now_s(self) -> float:
        return time.time()

    def submit(self, ask: Ask) -> str:
        home = self._home(ask.user)
        script = home / f"{ask.name}.sh"
        for path, text in ((script, ask.script), *((home / n, t) for n, t in ask.files)):
            path.write_text(text)
            path.chmod(0o755)
        inside = f"{self.file.shared_dir}/home/{ask.user}"
        argv = ["sbatch", "--parsable", f"--job-name={ask.name}", "-o", f"{inside}/%A_%a.log"]
        asked_at_s = self.now_s()
        done = self.head.run(
            [*argv, *ask.argv, f"{inside}/{script.name}", *ask.args], user=ask.user, cwd=inside
        )
        if done.returncode:
            raise Refused(done.stderr.strip().splitlines()[-1])
        job_id = done.stdout.strip()
        self.chronicle.submitted[job_id] = asked_at_s
        return job_id

    def cancel(self, job_id: str) -> None:
        self.head.run(["scancel", job_id])

    def notice(self, instance_id: str) -> None:
        self.chronicle.noticed[instance_id] = self.now_s()
        self.cloud.warn_of_interruption(instance_id)
        self.hypervisor.reclaim_after(instance_id, self.file.cluster.timings.spot_notice_s)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
        now_s = self.now_s()
        self.seen.instances = self.instances()
        alive = {instance_id for instance_id, _, _ in self.seen.instances}
        self.chronicle.note_terminated(self.chronicle.launched.keys() - alive, now_s)
        try:
            self.seen.reading = self._slurm.read()
        except (SlurmUnavailable, HeadDidNotBoot):
            return  # it is stopped, or on its way up
        self.chronicle.note_reading(self.seen.reading, now_s)

    def until_change_s(self) -> float:
        assert self.file.schedules, "the demo's cluster file has schedules"
        now_s = self.router.clock.now_s()
        return (self.file.schedules.wanted(now_s).until_s or now_s) - now_s

    def pass_scheduled(self, seconds: float) -> None:
        until_s = self.router.clock.now_s() + seconds
        self.router.advance_to(datetime.fromtimestamp(until_s, UTC))

    def head_state(self) -> str:
        described = self._ec2.describe_instances(InstanceIds=[self.head_id])
        return str(described["Reservations"][0]["Instances"][0]["State"]["Name"])

    def figures(self) -> dict[str, object]:
        return {
            "resources_in_template": self.deployment.resources_in_template,
            "resources_deployed": self.deployment.resources_deployed,
            "function_errors": [
                f"{each.function_name}: {each.error}"
                for each in self.router.invocations
                if not each.is_ok
            ],
            "denied_calls": [
                f"{each.principal}: {each.action} on {each.resource}"
                for each in self.cloud.authorizer.log.denied
            ],
            "unused_rights": self._unused_rights(),
        }

    def last_words(self) -> list[str]:
        consoles = sorted(self.world.log_dir.glob("*.log"))
        ends = ((each.stem, each.read_text().splitlines()[-2:]) for each in consoles)
        return [f"{name}: {line}" for name, lines in ends for line in lines]

    def _unused_rights(self) -> list[str]:
        """As "HeadRole s3:GetObject", each right of a deployed role that nobody needed."""
        return sorted(
            {
                f"{role} {grant.action}"
                for role, arn in role_arns(self.deployment.resources).items()
                for grant in self.cloud.authorizer.unused_grants(arn)
            }
        )

    def completed(self, job_id: str) -> int:
        return self._show(job_id).count(" JobState=COMPLETED ")

    def output(self, ask: Ask, job_id: str) -> list[str]:
        patterns = {"gang": f"gang-{job_id}.out", "checkpointed": "resumed.out"}
        pattern = patterns.get(ask.name, f"{ask.name.split('-')[0]}-{job_id}*.out")
        return [path.read_text().strip() for path in sorted(self._home(ask.user).glob(pattern))]

    def is_listening(self, job_id: str) -> bool:
        return (self._home("grace") / "listening").exists()

    def signals(self, job_id: str) -> list[str]:
        checkpoint = self._home("grace") / "checkpoint"
        return checkpoint.read_text().splitlines() if checkpoint.exists() else []

    def requeued(self) -> int:
        words = self._show("").split()
        return sum(int(w.removeprefix("Restarts=")) for w in words if w.startswith("Restarts="))

    def open_records(self) -> int:
        (table,) = self.deployment.physical_ids("AWS::DynamoDB::Table")
        return open_records(
            DynamoLedger(self.cloud.observer("dynamodb"), table, SystemClock()).view()
        )

    def aws_calls(self) -> Counter[str]:
        return self.cloud.aws_calls()

    def _show(self, job_id: str) -> str:
        return self.head.run(
            ["scontrol", "show", "job", "-o", *([job_id] if job_id else [])]
        ).stdout

    def _home(self, user: str) -> Path:
        return self.world.shared_dir / "home" / user

    def instances(self) -> tuple[tuple[str, str, str], ...]:
        found: list[tuple[str, str, str]] = []
        for one in self._listing.now().values():
            tags = {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}
            if ROLE_TAG not in tags:  # head and login nodes have one
                market = one.get("InstanceLifecycle", "on-demand")
                zone = one["Placement"]["AvailabilityZone"]
                offering = f"{one['InstanceType']}/{zone}/{market}"
                found.append((one["InstanceId"], offering, one["State"]["Name"]))
        return tuple(sorted(found))

    def _adjusted(self, spec: MachineSpec) -> MachineSpec:
        """The agent's minute passes faster in a demo; its environment file does not name it."""
        env = {**spec.env, "TIDEGATE_HEARTBEAT_S": f"{HEARTBEAT_S:g}"}
        devices = _efa(self.cloud.capacity.efa_devices.get(spec.instance_id, 0))
        mounts = _mount_helpers() if self.file.file_systems else {}
        files = {**spec.files, **_fabric_manager(), **devices, **mounts}
        return replace(spec, env=env, files=files)

    def _wait_for_the_head(self) -> None:
        """Until slurmctld answers in it."""
        until_s = self.now_s() + HEAD_PATIENCE_S
        while self.now_s() < until_s:
            machine = self.hypervisor.machine(self.head_id)
            if machine and machine.is_alive and not machine.run(["scontrol", "ping"]).returncode:
                return
            time.sleep(0.1)
        machine = self.hypervisor.machine(self.head_id)
        console = machine.console.read_text()[-2000:] if machine else "it never started"
        raise HeadDidNotBoot(f"slurmctld did not answer in {HEAD_PATIENCE_S:.0f} s:\n{console}")

    def _wait_for_the_agent(self) -> None:
        """The cluster is up when the planner has heard the head for the first time."""
        if not self._is_heard.wait(HEAD_PATIENCE_S):
            raise HeadDidNotBoot(f"the agent did not report in {HEAD_PATIENCE_S:.0f} s")

    def _logged(self, function_name: str, record: dict[str, Any]) -> None:
        """What the functions wrote into their logs is all that the screen knows of them."""
        if record.get("level") == "ERROR":
            said = f"{function_name}: {record.get('message')}"
            self.seen.decisions.append((self.now_s(), said))
        if record.get("message") != "look":
            return
        look = record["look"]
        if any(done["digest"] is not None for done in look["rounds"]):
            self._is_heard.set()
        record_look(look, self.seen, self.chronicle, self.now_s())

    def _add_users(self) -> None:
        """Users of the head only: no node's image knows them."""
        (self.world.shared_dir / "home").mkdir(exist_ok=True)
        for user in USERS:
            base = f"{self.file.shared_dir}/home"
            done = self.head.run(["useradd", "--create-home", "--base-dir", base, user])
            assert done.returncode == 0, done.stderr


def _efa(devices: int) -> dict[str, str]:
    """For machines with so many EFA devices: what lspci lists, and libfabric's own tool."""
    if not devices:
        return {}
    return {
        "/etc/local-efa": "".join(f"{number}\n" for number in range(devices)),
        "/usr/bin/fi_info": (LOCAL_BIN / "fi_info").read_text(),
    }


def _mount_helpers() -> dict[str, str]:
    """Of file systems beside the shared one, which is EFS."""
    helper, modinfo = ((LOCAL_BIN / name).read_text() for name in ("mount.other", "modinfo"))
    kinds = ("nfs", "lustre", "s3files")
    return {f"/usr/sbin/mount.{kind}": helper for kind in kinds} | {"/usr/sbin/modinfo": modinfo}


def _fabric_manager() -> dict[str, str]:
    """For types with an NVSwitch: the stand-in, of the version of nvidia-smi's."""
    unit, program = (LOCAL_BIN / name for name in ("nvidia-fabricmanager.service", FABRIC_MANAGER))
    return {
        f"/usr/bin/{FABRIC_MANAGER}": program.read_text(),
        "/etc/local-fabric-version": DRIVER_VERSION,
        "/etc/systemd/system/nvidia-fabricmanager.service": unit.read_text(),
    }
