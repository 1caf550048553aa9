"""`tidegate sandbox`: a cluster on this computer, and a shell to use it; nothing of it is left."""

import argparse
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from local.cloud import LocalCloud
from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.namespaces import can_enter, enter
from local.sandbox import hooks, network, prepaid
from local.sandbox.cluster import IMPORTED, SandboxFile, write_sandbox_file
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
LOGIN_HINT = """\
  login; login sbatch job.sh; login 2 hostname         on a login node, where people work
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
        return _begin(options, simulated, boots=False)
    print("Synthesizing, deploying, booting the head (about 20 s) ...", flush=True)
    enter()
    return _begin(options, real, boots=True)


type _Play = Callable[[Path, SandboxFile, str | None], int]


def _begin(options: argparse.Namespace, play: _Play, *, boots: bool) -> int:
    with TemporaryDirectory() as folder:
        try:
            file = write_sandbox_file(
                Path(folder), options.cluster, own_hooks=options.hooks, boots=boots
            )
            if (Path(folder) / IMPORTED).exists():
                print(IS_IMPORTED, flush=True)
            if file.left_out:
                print(f"Not here, as on AWS alone: {', '.join(file.left_out)}", flush=True)
            for line in file.told:
                print(line, flush=True)
            return play(Path(folder), file, options.command)
        except BadConfig as bad:
            print(bad, file=sys.stderr)
            return FAILED
        except HeadDidNotBoot as trouble:
            print(f"The head did not boot: {trouble}", file=sys.stderr)
            return FAILED


def real(_: Path, file: SandboxFile, command: str | None) -> int:
    """In namespaces, with real Slurm."""
    with RealStage(file.path, partial(_prepare, file)) as stage, Desk(stage) as desk:
        environment = desk.environment(os.environ)
        # The shell is root's: its files are to be everybody's.
        begin = f"umask 0; cd {environment['HOME']}; "
        inside = ["chroot", str(desk.root)]
        _tell_pools(stage.file)
        hints = HINTS + (LOGIN_HINT if stage.login_ids else "")
        return _play(environment, inside, begin, REAL + hints, command)


def simulated(folder: Path, file: SandboxFile, command: str | None) -> int:
    """As anybody, on any system that has a shell."""
    prepare = partial(_prepare, file)
    with SimulatedStage(file.path, prepare) as stage, SimulatedDesk(stage, folder) as desk:
        environment = desk.environment(os.environ)
        _tell_pools(stage.file)
        begin = f"cd {environment['HOME']}; "
        return _play(environment, [], begin, SIMULATED + HINTS, command)


def _prepare(file: SandboxFile, cloud: LocalCloud, deployed: ClusterFile) -> None:
    """The zones here stand for those of the file, in whichever region."""
    cloud.capacity.has_all_types = True
    if vpc := deployed.network.vpc:
        network.make(cloud.observer("ec2"), vpc, deployed.network.subnets)
    prepaid.own(cloud.blocks, deployed.cluster.reservations)
    hooks.store(cloud.observer("s3"), file.scripts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidegate sandbox")
    parser.add_argument("--cluster", type=lambda name: Path(name).resolve())
    parser.add_argument("--command")
    parser.add_argument("--hooks", type=lambda name: Path(name).resolve())
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
    print(what, flush=True)
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
