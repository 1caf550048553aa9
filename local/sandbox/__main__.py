"""`tidegate sandbox`: a cluster on this computer, and a shell to use it; nothing of it is left."""

import argparse
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from local.cloud import LocalCloud
from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.namespaces import can_enter, enter
from local.sandbox.cluster import IMPORTED, write_sandbox_file
from local.sandbox.desk import Desk
from local.sandbox.simulated import SimulatedStage
from local.sandbox.simulated_desk import SimulatedDesk
from tidegate.core.model.cluster import Pool
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import ClusterFile

REAL = """\
A cluster: real Slurm daemons, machines that boot the real user data, and the CDK app's own template
in a local AWS. No GPU and no bill: nvidia-smi is a stand-in, and so is EC2.
"""
SIMULATED = """\
A cluster: the CDK app's own template in a local AWS, its functions and the head's agent; Slurm and
the machines are simulated. Scripts are not run: a job takes as long as it sleeps, or 30 s.
"""
HINTS = """\
  sbatch --gres=gpu:t4:1 --wrap 'hostname; sleep 30'   as user ada; as grace sbatch ... as another
  squeue; tidegate status; tidegate nodes; tidegate why JOB; tidegate events
  reclaim i-...                                        EC2 takes a spot node back, in 20 s
  console i-...                                        what a machine said as it booted
  tidegate stop now --until 1h; later 5                the head goes last, with reconcile
  tidegate keep-up --until 1h                          and it comes back
  exit                                                 ends all of it
"""

IS_IMPORTED = (
    "ParallelCluster's: played as `tidegate import pcluster` translates it, with stand-ins for what"
    " it would ask. What is lost, that tells."
)

FAILED, CANNOT = 1, 2
WANTED = ("auto", "real", "sim")


def main(argv: list[str]) -> int:
    """0: as the shell, or the command, ended."""
    options = _parser().parse_args(argv)
    wanted = os.environ.get("SLURM", "auto")
    if wanted not in WANTED:
        print(f"SLURM must be one of {', '.join(WANTED)}, is {wanted!r}", file=sys.stderr)
        return CANNOT
    why_not = can_enter()
    if why_not and wanted == "real":
        print(f"SLURM=real is not possible here: {why_not}", file=sys.stderr)
        return CANNOT
    if why_not or wanted == "sim":
        because = why_not or "SLURM=sim asks for it"
        print(f"Slurm and machines are simulated, because {because}.", flush=True)
        print("Synthesizing, deploying (about 10 s) ...", flush=True)
        return _begin(options, simulated)
    print("Synthesizing, deploying, booting the head (about 20 s) ...", flush=True)
    enter()
    return _begin(options, real)


def _begin(options: argparse.Namespace, play: Callable[[Path, Path, str | None], int]) -> int:
    with TemporaryDirectory() as folder:
        try:
            file, left_out = write_sandbox_file(Path(folder), options.cluster)
            if (Path(folder) / IMPORTED).exists():
                print(IS_IMPORTED, flush=True)
            if left_out:
                print(f"Not here, as on AWS alone: {', '.join(left_out)}", flush=True)
            return play(Path(folder), file, options.command)
        except BadConfig as bad:
            print(bad, file=sys.stderr)
            return FAILED
        except HeadDidNotBoot as trouble:
            print(f"The head did not boot: {trouble}", file=sys.stderr)
            return FAILED


def real(_: Path, file: Path, command: str | None) -> int:
    """In namespaces, with real Slurm."""
    with RealStage(file) as stage, Desk(stage) as desk:
        _sell_all_types(stage.cloud)
        environment = desk.environment(os.environ)
        # The shell is root's: its files are to be everybody's.
        begin = f"umask 0; cd {environment['HOME']}; "
        inside = ["chroot", str(desk.root)]
        _tell_pools(stage.file)
        return _play(environment, inside, begin, REAL, command)


def simulated(folder: Path, file: Path, command: str | None) -> int:
    """As anybody, on any system that has a shell."""
    with SimulatedStage(file) as stage, SimulatedDesk(stage, folder) as desk:
        _sell_all_types(stage.cloud)
        environment = desk.environment(os.environ)
        _tell_pools(stage.file)
        return _play(environment, [], f"cd {environment['HOME']}; ", SIMULATED, command)


def _sell_all_types(cloud: LocalCloud) -> None:
    """The zones here stand for those of the file, in whichever region."""
    cloud.capacity.has_all_types = True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidegate sandbox")
    parser.add_argument("--cluster", type=lambda name: Path(name).resolve())
    parser.add_argument("--command")
    return parser


def _tell_pools(file: ClusterFile) -> None:
    told = ", ".join(f"{each.name} ({_types(each)})" for each in file.cluster.pools)
    print(f"Pools: {told}", flush=True)


def _play(
    environment: dict[str, str], inside: list[str], begin: str, what: str, command: str | None
) -> int:
    inside = [*inside, "bash", "--norc", "--noprofile"]
    if command is not None:
        argv = [*inside, "-c", begin + command]
        return subprocess.run(argv, env=environment, check=False).returncode
    print(f"{what}\n{HINTS}", flush=True)
    # A shell that runs a line forgets the prompt that it was given.
    argv = [*inside, "-c", f"{begin} PS1='sandbox:\\W\\$ ' exec bash --norc --noprofile"]
    if not sys.stdin.isatty():
        return subprocess.run(argv, env=environment, check=False).returncode
    os.environ.clear()
    os.environ.update(environment)
    # A terminal of its own: this one's session began outside, and bash could not control its jobs.
    return os.waitstatus_to_exitcode(pty.spawn([*argv[:-1], f"{argv[-1]} -i"]))


def _types(pool: Pool) -> str:
    """The first few of a pool's instance types."""
    names = [each.name for each in pool.instance_types]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
