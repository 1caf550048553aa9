"""A head whose Slurm a probe talks to: it takes one job, and nodes join as they are told to.

It plays slurmctld, the agent and the node in the deployed stack; time passes when the probe waits.
"""

import io
import json
import os
import signal
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from local.stack_world import StackWorld
from tests import make
from tests.stack.broken import gives_up, of
from tidegate.adapters.account import EBS_AWS_KEY, NOT_BLOCKED
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.wire.events.boot import READY_DETAIL_TYPE

STAGES = {"identity": 200, "owner_rule": 300, "munge": 900, "gpu": 4000, "slurmd": 500}


@dataclass
class Job:
    """As slurmctld knows it."""

    job_id: int
    partition: str
    state: str = "PENDING"
    reason: str = "Resources"
    node: str = ""
    restarts: int = 0
    started_at_s: int = 0

    def __str__(self) -> str:
        start = self.started_at_s or "Unknown"
        said = f"JobId={self.job_id} JobName=tidegate-probe UserId=root(0) JobState={self.state}"
        more = f"Reason={self.reason} Restarts={self.restarts} StartTime={start}"
        return f"{said} {more} NodeList={self.node}"


@dataclass(frozen=True)
class Ec2:
    """The local cloud's, with the operations that moto does not know."""

    world: StackWorld

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.world.cloud.client("ec2"), operation)

    def get_ebs_default_kms_key_id(self) -> dict[str, str]:
        return {"KmsKeyId": EBS_AWS_KEY}

    def describe_vpc_block_public_access_options(self) -> dict[str, Any]:
        return {"VpcBlockPublicAccessOptions": {"InternetGatewayBlockMode": NOT_BLOCKED}}


@dataclass
class ProbeHead:
    """`boots`: how a node comes up: "ready", "fails" in a stage, or "never".

    `stops_at`: the moment at which Ctrl-C is pressed, counted in commands and waits; 0: never.
    `is_impatient`: and once more while the job is being cancelled.
    """

    world: StackWorld
    boots: str = "ready"
    slow: str = ""
    stops_at: int = 0
    is_impatient: bool = False
    others: str = ""
    job: Job | None = None
    ran: list[tuple[str, ...]] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    moments: int = 0
    next_id: int = 700
    waited_s: float = 0.0

    def now_s(self) -> float:
        """The probe's clock: EC2 and the logs here have this machine's time."""
        return time.time() + self.waited_s

    def run(self, *argv: str) -> str:
        """The shell of the head."""
        self.ran.append(argv)
        said = self._does(argv)
        self._moment()
        return said

    def pause(self, seconds: float) -> None:
        by_s = max(seconds, self._stride_s)
        self.waited_s += by_s
        self.pass_time(by_s)
        self._step()
        self._moment()

    def pass_time(self, by_s: float) -> None:
        clock = self.world.router.clock
        clock.jump_to(datetime.fromtimestamp(clock.now_s() + by_s, UTC))

    @property
    def _stride_s(self) -> float:
        return 60.0 if self.boots == "never" else 0.0

    def _moment(self) -> None:
        self.moments += 1
        if self.moments == self.stops_at:
            raise KeyboardInterrupt

    def _does(self, argv: tuple[str, ...]) -> str:
        match argv:
            case ("true",):
                return ""
            case ("sbatch", *words):
                (partition,) = [one.split("=")[1] for one in words if one.startswith("--partition")]
                self.job = Job(self.next_id, partition)
                self._report()
                return f"{self.job.job_id}\n"
            case ("env", _, "scontrol", "--oneliner", "show", "job", _):
                if self.job is None:
                    raise SlurmUnavailable("scontrol: Invalid job id specified")
                return str(self.job)
            case ("scontrol", "requeue", _):
                assert self.job
                self.job.state, self.job.reason, self.job.node = "PENDING", "BeginTime", ""
                self.job.restarts = 1
                return ""
            case ("scontrol", "update", *_):
                return ""
            case ("squeue", _, node, *_) if node.startswith("--nodelist"):
                return self.others
            case ("squeue", *_):
                return f"{self.job.job_id}\n" if self.job else ""
            case ("scancel", *_):
                if self.is_impatient:
                    os.kill(os.getpid(), signal.SIGINT)
                self.job = None
                self._report()
                return ""
        raise AssertionError(argv)

    def _step(self) -> None:
        """Something happens in the cluster."""
        job, nodes = self.job, self.world.nodes()
        if job is None or not nodes:
            return
        if job.state == "RUNNING" and job.restarts:
            job.state = "COMPLETED"
        elif job.state == "PENDING" and job.restarts:
            job.state, job.node = "RUNNING", nodes[0]
        elif job.state == "PENDING" and self.boots == "ready":
            self._ready(nodes[0])
            self.joined.append(nodes[0])
            job.state, job.node, job.started_at_s = "RUNNING", nodes[0], int(time.time()) + 1
        elif job.state == "PENDING" and self.boots == "fails":
            gives_up(self.world, nodes[0], "efs", "mount.efs: no route to host")

    def _ready(self, node: str) -> None:
        at_ms, stages = 0, []
        for name, ms in (STAGES | ({self.slow: 400_000} if self.slow else {})).items():
            stages.append({"stage": name, "how": "done", "at_ms": at_ms, "ms": ms, "tries": 1})
            at_ms += ms
        self.world.tell_of_boot(node, READY_DETAIL_TYPE, stages=stages)

    def _report(self) -> None:
        job = of(self.job.job_id, self.job.partition) if self.job else None
        waiting = [replace(job, user="root")] if job else []
        nodes = [make.node(each, gpus_alloc=1, state="MIXED") for each in self.joined]
        self.world.report(waiting, nodes)

    def client(self, service: str) -> Any:
        """Of who asks, with every right; functions are run by the router."""
        if service == "ec2":
            return Ec2(self.world)
        return self if service == "lambda" else self.world.cloud.client(service)

    def get_function_configuration(self, *, FunctionName: str) -> Any:  # noqa: N803
        client = self.world.cloud.client("lambda")
        return client.get_function_configuration(FunctionName=FunctionName)

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        done = self.world.router.functions.invoke(FunctionName, json.loads(Payload))
        if done.error:
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(done.error.encode())}
        return {"Payload": io.BytesIO(json.dumps(done.answer).encode())}
