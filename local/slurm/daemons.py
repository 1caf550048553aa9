"""A real slurmctld with dynamic nodes, in namespaces of its own (slurm_bench.sh)."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from local.boot.overrides import assert_bounded_bench
from local.waiting import eventually
from tidegate.adapters import slurm_queue, slurm_text
from tidegate.adapters.slurm_cli import READ_TIMEOUT_S, SlurmCli
from tidegate.adapters.slurm_command import CommandRunner
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.slurm import Node

SCRIPT = Path(__file__).with_name("slurm_bench.sh")
NAMESPACES = (
    "unshare",
    "--net",
    "--uts",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=SIGKILL",
    "--mount-proc",
)
CONFS = ("slurm", "cgroup")
SEPARATOR = "~next~"
QUEUE = slurm_queue.output_format(SEPARATOR)


def why_not_here() -> str:
    """Why real Slurm cannot run on this machine; "" when it can."""
    missing = [
        name
        for name in ("slurmctld", "slurmd", "munged", "ip", "unshare", "nsenter")
        if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None
    ]
    if os.geteuid() != 0:
        return "real path: needs root for namespaces"
    return f"real path: needs {', '.join(missing)}" if missing else ""


def release_here() -> tuple[int, int]:
    """Of the Slurm that would be started; (0, 0): there is none."""
    tree = os.environ.get("TIDEGATE_SLURM_ROOT", "/")
    asked = ["chroot", tree, "/usr/sbin/slurmctld", "-V"]
    if os.geteuid() != 0 or shutil.which("slurmctld") is None:
        return (0, 0)
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    year, month, *_ = said.split()[1].split(".") if said else ("0", "0")
    return int(year), int(month)


@dataclass(slots=True)
class RealSlurm:
    """Use it as a context. `folder` must lie below /tmp when TIDEGATE_SLURM_ROOT is set.

    `tree`: that for this one alone, "" for the environment's.
    """

    folder: Path
    extra_conf: tuple[str, ...] = ()
    tree: str = ""
    port: SlurmCli = field(init=False)
    prefix: tuple[str, ...] = ()
    _outer: "subprocess.Popen[str]" = field(init=False)
    _joined: int = 0

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        script = shutil.copy(SCRIPT, self.folder / SCRIPT.name)
        self._outer = subprocess.Popen(
            [*NAMESPACES, "bash", script, "head", str(self.folder), *self.extra_conf],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **({"TIDEGATE_SLURM_ROOT": self.tree} if self.tree else {})},
        )
        assert self._outer.stdout is not None
        said = ""
        for line in self._outer.stdout:
            if line == "ready\n":
                break
            said += line
        else:
            self.__exit__()
            raise AssertionError(f"slurmctld did not come up: {said}")
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text()
        spaces = ("-n", "-u", "-m", "-p", "-r", "-w")
        self.prefix = ("nsenter", "-t", children.split()[0], *spaces, "--")
        self.port = SlurmCli(CommandRunner(prefix=self.prefix))
        return self

    def __exit__(self, *_: object) -> None:
        self._outer.send_signal(signal.SIGKILL)
        self._outer.communicate()

    @property
    def release(self) -> tuple[int, int]:
        """Of its Slurm, as (24, 11)."""
        year, month, _ = self.run("slurmctld", "-V").split()[1].split(".", 2)
        return int(year), int(month)

    @property
    def log(self) -> Path:
        return self.folder / "log" / "slurmctld.log"

    def run(self, *argv: str) -> str:
        """What the command prints, run on the head."""
        done = subprocess.run(
            [*self.prefix, *argv], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, *options: str, script: str = "sleep 300") -> str:
        return self.run("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", script)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def cancel(self, *job_ids: str) -> None:
        self.run("scancel", *job_ids)

    def join(
        self,
        *names: str,
        gpu_type: str = "t4",
        gpus: int = 4,
        is_drained: bool = False,
        cpus: str = "CPUs=48",
        place: str = "",
        gres: str = "",
        gres_conf: str = "",
    ) -> None:
        """Boot dynamic nodes and wait until Slurm shows them.

        `gres`: what the node tells, `gres_conf`: its own file, where its GPUs are not of one type.
        """
        for name in names:
            self._joined += 1
            told = gres or f"gpu:{gpu_type}:{gpus}"
            conf = f"{cpus} RealMemory=187000 Gres={told} Feature=gpu,{gpu_type}"
            if gres_conf:
                (self.folder / f"gres-{name}.conf").write_text(gres_conf)
            conf += f" Topology={place}" if place else ""
            conf += " State=DRAIN" * is_drained
            script = str(self.folder / SCRIPT.name)
            number = str(self._joined)
            self.run(
                "bash", script, "node", str(self.folder), name, number, gpu_type, str(gpus), conf
            )
        for name in names:
            self._await_registration(name)

    def _await_registration(self, name: str) -> None:
        try:
            eventually(f"{name} registered", lambda: self.node_words(name))
        except AssertionError as error:
            logs = (self.folder / "log" / f"slurmd-{name}.log", self.log)
            tails = "\n".join(f"{log}:\n{log.read_text()[-2_000:]}" for log in logs)
            raise AssertionError(f"{error}\n{tails}") from error

    def suspend(self, job_id: str) -> None:
        self.run("scontrol", "suspend", job_id)

    def reserve(
        self, name: str, *nodes: str, begins_s: int = 0, minutes: int = 60, flags: str = ""
    ) -> None:
        """For root, who submits all jobs; it has to be asked for all the same."""
        made = [f"reservationname={name}", f"nodes={','.join(nodes)}", "users=root"]
        made += [f"starttime=now+{begins_s}" if begins_s else "starttime=now"]
        made += [f"duration={minutes}", *([f"flags={flags}"] if flags else [])]
        self.run("scontrol", "create", "reservation", *made)

    def unreserve(self, name: str) -> None:
        self.run("scontrol", "delete", f"reservationname={name}")

    def restart(self) -> None:
        """After it ended by itself: as systemd would."""
        self.run("rm", "-f", "/run/slurmctld.pid")
        self.start_slurmctld()

    def die(self, name: str) -> None:
        """The machine is heard of no more."""
        self.run("ip", "-n", name, "link", "set", "eth0", "down")

    def boot_again(self, name: str) -> None:
        """The machine comes back from a reboot: of type t4, with four GPUs."""
        self._start_slurmd("again", name)

    def mends_itself(self, name: str, reason: str) -> None:
        """The machine goes on, and says so in the place of a reboot (gpu-reset.sh)."""
        self._start_slurmd("anew", name)
        self.run("scontrol", "update", f"nodename={name}", "state=resume", f"reason={reason}")

    def _start_slurmd(self, how: str, name: str) -> None:
        conf = "CPUs=48 RealMemory=187000 Gres=gpu:t4:4 Feature=gpu,t4"
        script = str(self.folder / SCRIPT.name)
        self.run("bash", script, how, str(self.folder), name, "t4", "4", conf)

    def clear(self) -> None:
        """No job and no node, for the next test."""
        found = self.port.read()
        jobs = {one.array_job_id or one.het_job_id or one.job_id for one in found.jobs}
        if jobs:
            self.cancel(*jobs)
        for reservation in found.reservations:
            self.unreserve(reservation.name)
        if names := [node.name for node in self._nodes()]:
            self.port.drain(names, "end of the test")
            eventually("all nodes deletable", self._is_all_deletable)
            assert self.port.delete(names) == {}

    def _is_all_deletable(self) -> bool:
        return all(node.state.is_deletable for node in self._nodes())

    def kill_slurmctld(self) -> None:
        self.run("sh", "-c", "kill -9 $(cat /run/slurmctld.pid)")

    def start_slurmctld(self) -> None:
        self.run("slurmctld")

    def state(self, job_id: str) -> str:
        """The job's state as the port reads it, "" when it has left the queue.

        By one command of the port's eight, for who asks until something has happened.
        """
        rows = slurm_queue.rows(self._told("squeue", "-h", "-a", "-O", QUEUE), SEPARATOR)
        jobs = slurm_queue.jobs(rows, {}, {})
        return next((job.state for job in jobs if job.job_id == job_id), "")

    def node_words(self, name: str) -> frozenset[str]:
        """The state of one of our nodes, nothing when there is none; as cheap as `state`."""
        return next((node.state.words for node in self._nodes() if node.name == name), frozenset())

    def _nodes(self) -> tuple[Node, ...]:
        return slurm_text.nodes(self._told("scontrol", "show", "nodes", "-d", "-o"), "", {})

    def _told(self, *argv: str) -> str:
        """What the command prints to the port. Errors: SlurmUnavailable."""
        done = CommandRunner(prefix=self.prefix)(argv, READ_TIMEOUT_S)
        if done.code:
            raise SlurmUnavailable(f"{argv[0]} failed: {done.complaint}")
        return done.out


@contextmanager
def started_slurm(*extra_conf: str) -> Iterator[RealSlurm]:
    """A slurmctld that ends with the context; ask `why_not_here` first.

    Its folder has a short path below /tmp: another Slurm's tree shares /tmp, and sockets have
    short names.
    """
    with (
        # A daemon that is being killed may write a last file while the folder goes.
        TemporaryDirectory(prefix="tg", dir="/tmp", ignore_cleanup_errors=True) as folder,
        RealSlurm(Path(folder), extra_conf) as slurm,
    ):
        assert_bounded_bench(*(slurm.run("cat", f"/etc/slurm/{name}.conf") for name in CONFS))
        yield slurm
