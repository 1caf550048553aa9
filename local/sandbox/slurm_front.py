"""Slurm's commands for the simulated slurmctld, as far as one needs them to play."""

import argparse
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from local.sandbox.asked import NotAsked, asked_by
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.slurm import Node, SetBy
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimJob, SubmitRefused
from tidegate.wire.config import ClusterFile

COMMANDS = ("sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol")
SHORT = {"PENDING": "PD", "RUNNING": "R", "COMPLETING": "CG", "SUSPENDED": "S"}
STOPPED = (
    "Unable to contact slurm controller (connect failure): the head is stopped. It starts with:"
)
POLL_S = 0.2

type Lines = Iterator[str]


@dataclass(frozen=True, slots=True)
class Line:
    """What somebody typed, where, and what was piped into it; None: nobody has looked."""

    words: tuple[str, ...]
    folder: Path
    user: str
    piped: str | None = None


class Head(Protocol):
    """A simulated slurmctld; whoever touches `slurm` holds `lock`."""

    file: ClusterFile
    slurm: SimSlurm
    lock: threading.Lock

    def pools_of_nodes(self) -> dict[str, str]: ...


@dataclass(slots=True)
class SlurmFront:
    """Reads what was typed, and does it."""

    stage: Head
    _names: dict[str, str] = field(default_factory=dict)

    def answer(self, line: Line) -> tuple[int, str]:
        """The exit code, and what is said. Errors: NeedsInput."""
        commands: dict[str, Callable[[Line], Lines]] = {
            "sbatch": self._sbatch,
            "srun": self._srun,
            "squeue": self._squeue,
            "sinfo": self._sinfo,
            "scancel": self._scancel,
            "scontrol": self._scontrol,
        }
        name = line.words[0]
        said: list[str] = []
        try:
            said.extend(commands[name](line))
        except (NotAsked, SubmitRefused) as refused:
            said.append(f"{name}: error: {refused}")
            return 1, "\n".join(said)
        except SlurmUnavailable:
            said.append(f"{name}: error: {STOPPED} tidegate keep-up --until 1h")
            return 1, "\n".join(said)
        return 0, "\n".join(said)

    def _sbatch(self, line: Line) -> Lines:
        job_id, is_parsable = self._submit(line)
        yield job_id if is_parsable else f"Submitted batch job {job_id}"

    def _srun(self, line: Line) -> Lines:
        """It waits for the job's end, as srun does."""
        job_id, _ = self._submit(line)
        while (job := self.stage.slurm.jobs[job_id]).job_id in self.stage.slurm.table.active:
            time.sleep(POLL_S)
        for node in self.stage.slurm.table.last_nodes.get(job_id, ()):
            yield f"{node}: {' '.join(line.words)} was simulated: {job.state}"

    def _submit(self, line: Line) -> tuple[str, bool]:
        command, *argv = line.words
        cluster = self.stage.file.cluster
        asked = asked_by(command, argv, line.piped, line.folder, line.user, cluster)
        with self.stage.lock:
            self._must_be_up()
            try:
                job_id = self.stage.slurm.submit(asked.submit)
            except SubmitRefused as refused:
                raise NotAsked(f"Batch job submission failed: {refused}") from refused
        self._names[job_id] = asked.name
        return job_id, asked.is_parsable

    def _squeue(self, line: Line) -> Lines:
        parser = _parser("squeue")
        parser.add_argument("-h", "--noheader", action="store_true")
        parser.add_argument("-j", "--jobs", default="")
        parser.add_argument("-t", "--states", default="")
        parser.add_argument("-u", "--user", default="")
        parser.add_argument("--me", action="store_true")
        given = parser.parse_args(line.words[1:])
        states = {each.upper() for each in given.states.split(",") if each}
        users = {each for each in given.user.split(",") if each} | (
            {line.user} if given.me else set()
        )
        with self.stage.lock:
            self._must_be_up()
            jobs = [
                job
                for job in self.stage.slurm.table.active.values()
                if _is_named(job, given.jobs)
                and (not states or {job.state, SHORT.get(job.state, "")} & states)
                and (not users or job.submit.user in users)
            ]
            if not given.noheader:
                yield _row(
                    "JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"
                )
            yield from map(self._job_row, jobs)

    def _job_row(self, job: SimJob) -> str:
        now_s, node_names = self.stage.slurm.clock.now_s(), ",".join(job.node_names)
        ran_s = int(now_s - job.started_at_s) if job.is_running else 0
        partition = self.stage.slurm.table.partition(job.submit)
        name = self._names.get(job.array_job_id or job.job_id, "")
        clock = f"{ran_s // 60}:{ran_s % 60:02}"
        where = node_names or f"({job.reason})"
        short = SHORT.get(job.state, job.state)
        return _row(
            job.job_id, partition, name, job.submit.user, short, clock, job.submit.nodes, where
        )

    def _sinfo(self, line: Line) -> Lines:
        if line.words[1:]:
            raise NotAsked(
                "the simulated sandbox has sinfo without options; also: scontrol show node NAME"
            )
        with self.stage.lock:
            nodes = self.stage.slurm.read().nodes
        yield f"{'PARTITION':<12} {'AVAIL':<6} {'NODES':>5} {'STATE':<6} NODELIST"
        cluster = self.stage.file.cluster
        pools = self.stage.pools_of_nodes()
        for partition in cluster.partitions:
            ours = [each for each in nodes if pools.get(each.name) in partition.pools]
            states = Counter(map(_state, ours))
            title = f"{partition.name}{'*' if partition.is_default else ''}"
            for state, count in sorted(states.items()) or [("n/a", 0)]:
                names = ",".join(each.name for each in ours if _state(each) == state)
                yield f"{title:<12} {'up':<6} {count:>5} {state:<6} {names}".rstrip()

    def _scancel(self, line: Line) -> Lines:
        with self.stage.lock:
            self._must_be_up()
            for job_id in line.words[1:]:
                self._must_know(job_id)
                self.stage.slurm.cancel(job_id)
        yield from ()

    def _scontrol(self, line: Line) -> Lines:
        words = line.words[1:]
        with self.stage.lock:
            self._must_be_up()
            match words:
                case ["show", "job" | "jobs", *ids]:
                    yield from self._show_jobs(ids)
                case ["show", "node" | "nodes", *names]:
                    yield from self._show_nodes(names)
                case ["release", *ids]:
                    for job_id in ids:
                        self._must_know(job_id)
                        self.stage.slurm.let_go(job_id)
                case ["hold", *ids]:
                    self.stage.slurm.hold(ids)
                case ["requeue", *ids]:
                    self.stage.slurm.requeue(ids)
                case ["update", *pairs]:
                    split = (pair.partition("=") for pair in pairs)
                    self._update({key.lower(): value for key, _, value in split})
                case _:
                    raise NotAsked(
                        "the simulated sandbox has scontrol show job|node, hold, release, requeue,"
                        " and update NodeName=... State=drain|resume Reason=..."
                    )

    def _update(self, given: dict[str, str]) -> None:
        names = tuple(given.get("nodename", "").split(","))
        state = given.get("state", "").lower()
        if not set(names) <= self.stage.slurm.nodes.keys():
            raise NotAsked("Invalid node name specified")
        if state == "resume":
            self.stage.slurm.undrain(names)
        elif state == "drain" and given.get("reason"):
            for name in names:
                self.stage.slurm.is_drained_by(SetBy.ROOT, name, given["reason"])
        else:
            raise NotAsked(
                "You must specify a reason when DRAINING a node, and no other State is known here"
            )

    def _show_jobs(self, ids: Sequence[str]) -> Lines:
        for job_id in ids:
            self._must_know(job_id)
        for job in self.stage.slurm.jobs.values():
            if not ids or _is_named(job, ",".join(ids)):
                yield (
                    f"JobId={job.job_id} UserId={job.submit.user} JobState={job.state}"
                    f" Reason={job.reason} Restarts={job.requeues} NumNodes={job.submit.nodes}"
                    f" NodeList={','.join(job.node_names)} Comment={job.submit.comment}"
                )
                if job.admin_comment:
                    yield f"   AdminComment={job.admin_comment}"

    def _show_nodes(self, names: Sequence[str]) -> Lines:
        for each in self.stage.slurm.read().nodes:
            if not names or each.name in names:
                yield (
                    f"NodeName={each.name} State={each.state} CPUAlloc={each.cpus_alloc}"
                    f" CPUTot={each.cpus} Gres=gpu:{each.gpu_type}:{each.gpus}"
                    f" ActiveFeatures={','.join(each.features)} Weight={each.weight}"
                )
                if each.reason:
                    yield f"   Reason={each.reason}"

    def _must_be_up(self) -> None:
        if not self.stage.slurm.is_up:
            raise SlurmUnavailable("the head is stopped")

    def _must_know(self, job_id: str) -> None:
        if not any(_is_named(job, job_id) for job in self.stage.slurm.jobs.values()):
            raise NotAsked(f"Invalid job id specified: {job_id}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise NotAsked(f"{message}: the simulated sandbox does not know that")


def _parser(name: str) -> argparse.ArgumentParser:
    return _Parser(prog=name, add_help=False, allow_abbrev=False)


def _is_named(job: SimJob, ids: str) -> bool:
    return not ids or not {job.job_id, job.array_job_id}.isdisjoint(ids.split(","))


def _row(*cells: object) -> str:
    widths = (10, 11, 10, 8, 3, 8, 6, 0)
    return " ".join(
        f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()


def _state(node: Node) -> str:
    """sinfo's short words."""
    if node.state.is_down:
        return "down"
    if node.state.is_drain:
        return "drng" if node.state.is_busy else "drain"
    if not node.state.is_busy:
        return "idle"
    return "alloc" if node.cpus_alloc >= node.cpus else "mix"
