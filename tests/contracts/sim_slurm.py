"""The simulated slurmctld behind the same questions as the real one."""

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from tests.make import T4_BIG, cluster, pool
from tidegate.adapters.slurm_script import asked_signal
from tidegate.core.model.cluster import Pool
from tidegate.core.model.slurm import NodeReservation, Reading, Shape
from tidegate.sim.clock import SimClock
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimNode, Submit

STEP_S, LONGEST_STEP_S = 0.5, 8.0


class TickingSlurm(SimSlurm):
    """Time passes with every look, so that waiting for something works: half a second, and twice as
    much as before with each look at which nothing has changed.
    """

    longest_step_s = LONGEST_STEP_S
    _step_s = STEP_S
    _changes = -1

    def read(self) -> Reading:
        assert isinstance(self.clock, SimClock)
        is_still = self.table.changes == self._changes
        self._step_s = min(2 * self._step_s, self.longest_step_s) if is_still else STEP_S
        self._changes = self.table.changes
        self.clock.advance(self._step_s)
        self.step()
        return super().read()


class SimBench:
    """A bench of the contract on SimSlurm; understands the sbatch options that it uses."""

    def __init__(self, *pools: Pool) -> None:
        self.clock = SimClock()
        of = cluster(*(pools or [replace(pool("gpu", (T4_BIG,)), labels=("t4",))]))
        self.port = TickingSlurm(of, self.clock)

    def submit(self, *options: str, script: str = "sleep 300") -> str:
        """A colon stands between the components of a heterogeneous job."""
        parts = [list(group) for is_colon, group in groupby(options, ":".__eq__) if not is_colon]
        first, *beside = [self._asked(part, script) for part in parts or [[]]]
        return self.port.submit(replace(first, beside=tuple(beside)))

    def _asked(self, options: Sequence[str], script: str) -> Submit:
        asked = _parser().parse_args(options)
        gres = re.fullmatch(r"(gpu|shard|mps)(?::([a-z][\w.]*))?:(\d+)", asked.gres or "gpu:t4:0")
        assert gres, asked.gres
        command = script.splitlines()[-1]
        array = re.fullmatch(r"0-(\d+)%(\d+)", asked.array or "")
        return Submit(
            "root",
            Shape(
                *(int(gres[3]), gres[2] or "", asked.c, _mib(asked.mem)),
                is_exclusive=asked.exclusive,
                gres=gres[1],
            ),
            duration_s=float(shlex.split(command)[1]) if command.startswith("sleep") else 0.0,
            nodes=asked.N,
            constraint=asked.C,
            array=int(array[1]) + 1 if array else 0,
            throttle=int(array[2]) if array else 0,
            comment=asked.comment,
            is_requeueable=not asked.no_requeue,
            time_limit_s=asked.t * 60.0 if asked.t else None,
            node_name=asked.w,
            signal=asked_signal(f"#!/bin/sh\n{script}"),
            ends_in_s=0.1,
            excluded=tuple(asked.x.split(",")) if asked.x else (),
            reservation=asked.reservation,
            begin_after_s=float(asked.begin.removeprefix("now+") or 0),
            after=asked.dependency.removeprefix("afterany:"),
        )

    def state(self, job_id: str) -> str:
        """The job's state, "" when it has left the queue."""
        return next((one.state for one in self.port.read().jobs if one.job_id == job_id), "")

    def pause(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.port.step()

    def cancel(self, *job_ids: str) -> None:
        for job_id in job_ids:
            self.port.cancel(job_id)

    def suspend(self, job_id: str) -> None:
        self.port.suspend(job_id)

    def reserve(
        self, name: str, *nodes: str, begins_s: int = 0, minutes: int = 60, flags: str = ""
    ) -> None:
        starts_s = self.clock.now_s() + begins_s
        ends_s = starts_s + minutes * 60
        words = ("SPEC_NODES", *(("ALL_NODES",) if nodes == ("ALL",) else ()))
        words += tuple(flag.upper() for flag in flags.split(",") if flag)
        names = tuple(self.port.nodes) if nodes == ("ALL",) else nodes
        self.port.reserve(NodeReservation(name, names, starts_s, ends_s, words, users=("root",)))

    def unreserve(self, name: str) -> None:
        self.port.unreserve(name)

    def restart(self) -> None:
        self.port.is_up = True
        self.port.restart()

    def die(self, name: str) -> None:
        self.port.die(name)

    def boot_again(self, name: str) -> None:
        self.port.register(self.port.nodes[name])

    def mends_itself(self, name: str, reason: str) -> None:
        self.port.reboots.is_back(self.port.nodes[name])

    def join(
        self, *names: str, gpu_type: str = "t4", gpus: int = 4, is_drained: bool = False
    ) -> None:
        for name in names:
            features = ("gpu", gpu_type)
            node = SimNode(name, 48, 187_000, gpus, gpu_type, features, is_drain=is_drained)
            self.port.register(node)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    for option in (
        "-w",
        "--gres",
        "--mem",
        "-C",
        "--array",
        "--comment",
        "-x",
        "--reservation",
        "--begin",
        "--dependency",
    ):
        parser.add_argument(option, default="")
    for option, default in (("-N", 1), ("-c", 1), ("-t", 0)):
        parser.add_argument(option, type=int, default=default)
    for option in ("--no-requeue", "--requeue", "--exclusive"):
        parser.add_argument(option, action="store_true")
    return parser


def _mib(text: str) -> int:
    return int(text.removesuffix("G")) * (1024 if text.endswith("G") else 1) if text else 0
