"""The story on simulated Slurm, EC2 and machines: no root, no packages, virtual time."""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from local.demo.asks import GANG_OF_THREE, Ask
from local.demo.chronicle import Chronicle
from local.demo.stage import HEARTBEAT_S, Refused, Seen, open_records, record_look
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Instance
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.service.control import Looked
from tidegate.service.describe import look_record
from tidegate.sim.slurm_parts import SimJob, SubmitRefused
from tidegate.sim.world import SimWorld
from tidegate.wire.calendar import Schedules

BOOT_S = 2.0


@dataclass(slots=True)
class SimStage:
    """`pace`: wall seconds that a simulated second takes, so that a person can watch."""

    cluster: Cluster
    schedules: Schedules
    pace: float = 0.0
    name: str = "simulated Slurm, EC2 and machines"
    chronicle: Chronicle = field(default_factory=Chronicle)
    seen: Seen = field(default_factory=Seen)
    world: SimWorld = field(init=False)

    def __post_init__(self) -> None:
        self.world = SimWorld(
            self.cluster,
            lambda instance: BOOT_S,
            self._looked,
            heartbeat_s=HEARTBEAT_S,
            calendar=self.schedules,
        )
        self.world.compute.on_end.append(self._ended)

    def now_s(self) -> float:
        return self.world.clock.now_s()

    def submit(self, ask: Ask) -> str:
        try:
            job_id = self.world.slurm.submit(ask.simulated)
        except SubmitRefused as refused:
            raise Refused(str(refused)) from refused
        self.chronicle.submitted[job_id] = self.now_s()
        return job_id

    def cancel(self, job_id: str) -> None:
        self.world.slurm.cancel(job_id)

    def notice(self, instance_id: str) -> None:
        self.chronicle.noticed[instance_id] = self.now_s()
        self.world.notice(instance_id)

    def wait(self, seconds: float) -> None:
        self.world.step(seconds)
        with suppress(SlurmUnavailable):  # the head is stopped, or on its way up
            self.seen.reading = self.world.slurm.read()
        self.seen.instances = tuple(
            (one.instance_id, str(one.offering), str(one.state))
            for one in self.world.compute.live()
        )
        self.chronicle.note_reading(self.seen.reading, self.now_s())
        if self.pace:
            time.sleep(seconds * self.pace)

    def completed(self, job_id: str) -> int:
        return sum(job.state == "COMPLETED" for job in self._jobs(job_id))

    def output(self, ask: Ask, job_id: str) -> list[str]:
        """What the scripts would have written on the nodes where the jobs ran."""
        lines: list[str] = []
        for job in self._jobs(job_id):
            hosts = self.world.slurm.table.last_nodes[job.job_id]
            gpus = ",".join(str(number) for number in range(ask.simulated.shape.gpus))
            if ask is GANG_OF_THREE:
                lines.append(f"{hosts[0]} heard {' '.join(sorted(hosts[1:]))} gpus={gpus}")
            else:
                lines.append(f"{hosts[0]} {ask.user} gpus={gpus}")
        return lines

    def is_listening(self, job_id: str) -> bool:
        return any(job.state == "RUNNING" for job in self._jobs(job_id))

    def signals(self, job_id: str) -> list[str]:
        return [signal for job in self._jobs(job_id) for signal in job.signals]

    def requeued(self) -> int:
        return sum(job.requeues for job in self.world.slurm.jobs.values())

    def open_records(self) -> int:
        return open_records(self.world.ledger.view())

    def aws_calls(self) -> Counter[str]:
        """The port calls that would have been API calls."""
        compute, bus = self.world.compute, self.world.bus
        return Counter(
            CreateFleet=len(compute.requests),
            TerminateInstances=len(compute.terminated),
            SendMessage=len(bus.orders),
        )

    def until_change_s(self) -> float:
        until_s = self.schedules.wanted(self.now_s()).until_s
        assert until_s is not None
        return until_s - self.now_s()

    def pass_scheduled(self, seconds: float) -> None:
        """The functions of the schedules, once at the end of it."""
        self.wait(seconds)
        self.world.hours.keep("schedule")

    def head_state(self) -> str:
        return str(self.world.head.state())

    def figures(self) -> dict[str, object]:
        return {}

    def last_words(self) -> list[str]:
        return []

    def _jobs(self, job_id: str) -> list[SimJob]:
        jobs = self.world.slurm.jobs.values()
        return [job for job in jobs if job_id in (job.job_id, job.array_job_id)]

    def _looked(self, looked: Looked) -> None:
        record_look(look_record(looked), self.seen, self.chronicle, self.now_s())

    def _ended(self, instance: Instance) -> None:
        self.chronicle.note_terminated([instance.instance_id], self.now_s())
