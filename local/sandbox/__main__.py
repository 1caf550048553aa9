"""`tidegate sandbox`: a cluster on this computer, and a shell to use it; nothing of it is left."""

import argparse
import os
import pty
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.namespaces import can_enter, enter
from local.sandbox.cluster import write_sandbox_file
from local.sandbox.desk import Desk
from tidegate.core.model.cluster import Pool
from tidegate.core.model.errors import BadConfig

HINTS = """\
A cluster: real Slurm daemons, machines that boot the real user data, and the CDK app's own template
in a local AWS. No GPU and no bill: nvidia-smi is a stand-in, and so is EC2.

  sbatch --gres=gpu:t4:1 --wrap 'hostname; sleep 30'   as user ada; as grace sbatch ... as another
  squeue; tidegate status; tidegate nodes; tidegate why JOB; tidegate events
  reclaim i-...                                        EC2 takes a spot node back, in 20 s
  console i-...                                        what a machine said as it booted
  tidegate stop now --until 1h; later 5                the head goes last, with reconcile
  tidegate keep-up --until 1h                          and it comes back
  exit                                                 ends all of it
"""

FAILED, CANNOT = 1, 2


def main(argv: list[str]) -> int:
    """0: as the shell, or the command, ended."""
    options = _parser().parse_args(argv)
    why_not = can_enter()
    if why_not:
        print(
            f"The sandbox cannot run here: {why_not}. `make demo SLURM=sim` tells the story of a "
            "cluster without that.",
            file=sys.stderr,
        )
        return CANNOT
    print("Synthesizing, deploying, booting the head (about 20 s) ...", flush=True)
    enter()
    with TemporaryDirectory() as folder:
        try:
            file, left_out = write_sandbox_file(Path(folder), options.cluster)
            if left_out:
                print(f"Not here, as on AWS alone: {', '.join(left_out)}", flush=True)
            with RealStage(file) as stage, Desk(stage) as desk:
                return _play(desk, options.command)
        except BadConfig as bad:
            print(bad, file=sys.stderr)
            return FAILED
        except HeadDidNotBoot as trouble:
            print(f"The head did not boot: {trouble}", file=sys.stderr)
            return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidegate sandbox")
    parser.add_argument("--cluster", type=lambda name: Path(name).resolve())
    parser.add_argument("--command")
    return parser


def _play(desk: Desk, command: str | None) -> int:
    told = ", ".join(f"{each.name} ({_types(each)})" for each in desk.stage.file.cluster.pools)
    print(f"Pools: {told}", flush=True)
    environment = desk.environment(os.environ)
    # The shell is root's: its files are to be everybody's.
    begin = f"umask 0; cd {environment['HOME']}; "
    inside = ["chroot", str(desk.root), "bash", "--norc", "--noprofile"]
    if command is not None:
        argv = [*inside, "-c", begin + command]
        return subprocess.run(argv, env=environment, check=False).returncode
    print(HINTS, flush=True)
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
