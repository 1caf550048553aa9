"""The story on real Slurm daemons, real munge and machines that run the rendered user data."""

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from local.bootstrap import head_values, node_values, slurm_values
from local.cloud import LocalCloud
from local.demo.asks import Ask
from local.demo.chronicle import Chronicle
from local.demo.stage import HEARTBEAT_S, Refused, Seen, open_records, record_look
from local.functions import Functions
from local.hypervisor import Hypervisor
from local.machine import Machine
from local.resources import CloudNames
from local.slurm_commands import MachineRunner
from local.world import BRIDGE_ADDRESS, World, WorldSettings
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.core.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG
from tidegate.core.errors import SlurmUnavailable
from tidegate.service.control import Looked
from tidegate.service.requests import Placement, Template
from tidegate.wire.config import ClusterFile
from tidegate.wiring import Resources, control
from userdata.render import head_user_data, node_user_data

AWS_PORT = 5000
HEAD_TYPE = "m5.large"
USERS = ("ada", "grace")
AGENT_COMMAND = (sys.executable, "-m", "tidegate.agent.main")
HEAD_PATIENCE_S = 30.0


class HeadDidNotBoot(Exception):
    """The head never reported; the message holds the tail of its console."""


@dataclass(slots=True)
class RealStage:
    """Use it as a context, inside namespaces.enter()."""

    file: ClusterFile
    name: str = "real Slurm in namespaces"
    chronicle: Chronicle = field(default_factory=Chronicle)
    seen: Seen = field(default_factory=Seen)
    world: World = field(init=False)
    cloud: LocalCloud = field(init=False)
    names: CloudNames = field(init=False)
    hypervisor: Hypervisor = field(init=False)
    functions: Functions = field(init=False)
    head: Machine = field(init=False)
    _ec2: Any = field(init=False)
    _is_heard: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.world = World(WorldSettings(AWS_PORT, self.file.region)).__enter__()
        self.cloud = LocalCloud(BRIDGE_ADDRESS, AWS_PORT)
        self.cloud.start()
        zones = {zone for pool in self.file.cluster.pools for zone in pool.zones}
        self.names = self.cloud.create_resources(self.file.cluster.name, zones=sorted(zones))
        self._ec2 = self.cloud.observer("ec2")
        self.hypervisor = Hypervisor(self.cloud.observer("ec2"), self.world)
        self.hypervisor.start()
        self._start_head()
        self._start_functions()
        self._add_users()
        self._wait_for_the_agent()
        return self

    def __exit__(self, *_: object) -> None:
        self.functions.stop()
        self.hypervisor.stop()
        self.world.__exit__(None, None, None)
        self.cloud.stop()

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
        try:
            self.seen.reading = SlurmCli(MachineRunner(self.head)).read()
        except SlurmUnavailable:
            return
        now_s = self.now_s()
        self.chronicle.note_reading(self.seen.reading, now_s)
        self.seen.instances = self._instances()
        alive = {instance_id for instance_id, _, _ in self.seen.instances}
        self.chronicle.note_terminated(self.chronicle.launched.keys() - alive, now_s)

    def completed(self, job_id: str) -> int:
        return self._show(job_id).count(" JobState=COMPLETED ")

    def output(self, ask: Ask, job_id: str) -> list[str]:
        patterns = {"gang": f"gang-{job_id}.out", "checkpointed": "resumed.out"}
        pattern = patterns.get(ask.name, f"{ask.name.split('-')[0]}-{job_id}*.out")
        return [path.read_text().strip() for path in sorted(self._home(ask.user).glob(pattern))]

    def signals(self, job_id: str) -> list[str]:
        checkpoint = self._home("grace") / "checkpoint"
        return checkpoint.read_text().splitlines() if checkpoint.exists() else []

    def requeued(self) -> int:
        words = self._show("").split()
        return sum(int(w.removeprefix("Restarts=")) for w in words if w.startswith("Restarts="))

    def open_records(self) -> int:
        return open_records(self.functions.control.ledger.view())

    def aws_calls(self) -> Counter[str]:
        return self.cloud.aws_calls()

    def _show(self, job_id: str) -> str:
        return self.head.run(
            ["scontrol", "show", "job", "-o", *([job_id] if job_id else [])]
        ).stdout

    def _home(self, user: str) -> Path:
        return self.world.shared_dir / "home" / user

    def _instances(self) -> tuple[tuple[str, str, str], ...]:
        filters = [
            {"Name": f"tag:{CLUSTER_TAG}", "Values": [self.file.cluster.name]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        found: list[tuple[str, str, str]] = []
        for reservation in self._ec2.describe_instances(Filters=filters)["Reservations"]:
            for one in reservation["Instances"]:
                tags = {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}
                if tags.get(ROLE_TAG) != HEAD_ROLE:
                    market = one.get("InstanceLifecycle", "on-demand")
                    zone = one["Placement"]["AvailabilityZone"]
                    offering = f"{one['InstanceType']}/{zone}/{market}"
                    found.append((one["InstanceId"], offering, one["State"]["Name"]))
        return tuple(sorted(found))

    def _start_head(self) -> None:
        slurm = slurm_values(self.file)
        values = head_values(
            self.file,
            self.names,
            slurm,
            agent_command=AGENT_COMMAND,
            heartbeat_s=HEARTBEAT_S,
        )
        template_id, version = self.cloud.create_launch_template(
            "demo-head", head_user_data(values)
        )
        tags = {CLUSTER_TAG: self.file.cluster.name, ROLE_TAG: HEAD_ROLE}
        launched = self._ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            InstanceType=HEAD_TYPE,
            LaunchTemplate={"LaunchTemplateId": template_id, "Version": version},
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                }
            ],
        )
        self.head = self._booted(launched["Instances"][0]["InstanceId"])

    def _booted(self, instance_id: str) -> Machine:
        """The head's machine, once slurmctld answers in it."""
        until_s = self.now_s() + HEAD_PATIENCE_S
        while self.now_s() < until_s:
            machine = self.hypervisor.machine(instance_id)
            if machine and machine.is_alive and not machine.run(["scontrol", "ping"]).returncode:
                return machine
            time.sleep(0.1)
        machine = self.hypervisor.machine(instance_id)
        console = machine.console.read_text()[-2000:] if machine else "it never started"
        raise HeadDidNotBoot(f"slurmctld did not answer in {HEAD_PATIENCE_S:.0f} s:\n{console}")

    def _start_functions(self) -> None:
        templates: dict[str, Template] = {}
        for pool in self.file.cluster.pools:
            user_data = node_user_data(node_values(self.file, self.names, pool))
            made = self.cloud.create_launch_template(f"demo-{pool.name}", user_data)
            templates[pool.name] = Template(*made)
        resources = Resources(
            table=self.names.table,
            bucket=self.names.bucket,
            event_bus=self.names.event_bus,
            look_queue_url=self.names.look_queue_url,
            urgent_queue_url=self.names.urgent_queue_url,
            routine_queue_url=self.names.routine_queue_url,
        )
        placement = Placement(templates, self.names.subnets)
        self.functions = Functions(
            control(self.file.cluster, resources, placement, self.cloud.client),
            lambda: self.cloud.client("sqs"),
            self.names.look_queue_url,
            self.names.interruption_queue_url,
            self._looked,
        )
        self.functions.start()

    def _wait_for_the_agent(self) -> None:
        """The cluster is up when the planner has heard the head for the first time."""
        if not self._is_heard.wait(HEAD_PATIENCE_S):
            raise HeadDidNotBoot(f"the agent did not report in {HEAD_PATIENCE_S:.0f} s")

    def _looked(self, looked: Looked) -> None:
        if any(done.snapshot.digest is not None for done in looked.rounds):
            self._is_heard.set()
        record_look(looked, self.seen, self.chronicle, self.now_s())

    def _add_users(self) -> None:
        """Users of the head only: no node's image knows them."""
        (self.world.shared_dir / "home").mkdir(exist_ok=True)
        for user in USERS:
            base = f"{self.file.shared_dir}/home"
            done = self.head.run(["useradd", "--create-home", "--base-dir", base, user])
            assert done.returncode == 0, done.stderr
