"""What somebody asks of the simulated Slurm with sbatch's options."""

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tidegate.adapters import slurm_text
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import Submit

# How long a job runs whose script names no time to sleep.
RUNS_S = 30.0
UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)([smh]?)\b")
DIRECTIVE = re.compile(r"^#SBATCH\s+(.*?)\s*(?:#.*)?$", re.MULTILINE)
ACCEPTED = ("-o", "--output"), ("-e", "--error"), ("-D", "--chdir"), ("--mail-type",)


class NotAsked(Exception):
    """What Slurm's command would say instead of doing it."""


class NeedsInput(Exception):
    """The script is what is piped in."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A job to submit. `is_parsable`: only its id is wanted as an answer."""

    submit: Submit
    name: str
    is_parsable: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NotAsked(f"{message} (the simulated sandbox knows: {', '.join(self._known())})")

    def _known(self) -> list[str]:
        return [each.option_strings[-1] for each in self._actions if each.option_strings]


def asked_by(
    command: str, argv: Sequence[str], piped: str | None, folder: Path, user: str, of: Cluster
) -> Asked:
    """What this line of sbatch or srun asks for. `piped`: None: nobody has looked.

    Errors: NotAsked; NeedsInput.
    """
    script = ""
    given = _parser(command).parse_args(argv)
    if command == "sbatch" and given.wrap is None:
        script = _script(given.words, piped, folder)
        directives = " ".join(DIRECTIVE.findall(script)).split()
        given = _parser(command).parse_args([*directives, *argv])
    runs = given.wrap or script or " ".join(given.words)
    run = Path(given.words[0]).name if given.words else command
    name = given.job_name or ("wrap" if given.wrap else run)
    return Asked(_submit(given, runs, user, of), name, given.parsable)


def _parser(command: str) -> _Parser:
    made = _Parser(prog=command, add_help=False, allow_abbrev=False)
    made.add_argument("words", nargs=argparse.REMAINDER)
    made.add_argument("-J", "--job-name")
    made.add_argument("-p", "--partition", default="")
    made.add_argument("-N", "--nodes", type=int, default=1)
    made.add_argument("-n", "--ntasks", type=int, default=0)
    made.add_argument("--ntasks-per-node", type=int, default=0)
    made.add_argument("-c", "--cpus-per-task", type=int, default=1)
    made.add_argument("--mem")
    made.add_argument("--gres", default="")
    made.add_argument("--gpus-per-node", default="")
    made.add_argument("-G", "--gpus", default="")
    made.add_argument("-t", "--time")
    made.add_argument("-C", "--constraint", default="")
    made.add_argument("-A", "--account", default="")
    made.add_argument("-a", "--array", default="")
    made.add_argument("-w", "--nodelist", default="")
    made.add_argument("--comment", default="")
    made.add_argument("--signal", default="")
    made.add_argument("--wrap")
    made.add_argument("-H", "--hold", action="store_true")
    made.add_argument("--exclusive", action="store_true")
    made.add_argument("--requeue", action="store_true")
    made.add_argument("--no-requeue", action="store_true")
    made.add_argument("--parsable", action="store_true")
    for names in ACCEPTED:
        made.add_argument(*names)
    return made


def _script(words: Sequence[str], piped: str | None, folder: Path) -> str:
    if not words:
        if piped is None:
            raise NeedsInput
        if piped:
            return piped
        raise NotAsked("say what to run: a script, --wrap 'COMMAND', or a script as input")
    try:
        return (folder / words[0]).read_text()
    except OSError as error:
        raise NotAsked(f"Unable to open file {words[0]}: {error.strerror}") from error


def _submit(given: argparse.Namespace, runs: str, user: str, of: Cluster) -> Submit:
    tasks = given.ntasks_per_node or math.ceil(given.ntasks / given.nodes) or 1
    cpus = tasks * given.cpus_per_task
    kind, gpus = _gpus(given)
    shape = Shape(gpus, kind, cpus, _memory_mib(given.mem, cpus, of), given.exclusive)
    if given.partition and of.partition(given.partition) is None:
        raise NotAsked(f"invalid partition specified: {given.partition}")
    tasks_in_array, throttle = _array(given.array)
    return Submit(
        user=user,
        shape=shape,
        duration_s=_duration_s(runs, given.time),
        nodes=given.nodes,
        partition=given.partition,
        constraint=given.constraint,
        array=tasks_in_array,
        throttle=throttle,
        comment=given.comment,
        is_requeueable=not given.no_requeue,
        time_limit_s=_limit_s(given.time),
        node_name=given.nodelist,
        account=given.account,
        is_held=given.hold,
        signal=given.signal,
    )


def _gpus(given: argparse.Namespace) -> tuple[str, int]:
    """The type and number of GPUs of a node."""
    gres = [each.removeprefix("gpu") for each in given.gres.split(",") if each.startswith("gpu")]
    asked = (gres[0].removeprefix(":") or "1") if gres else given.gpus_per_node or given.gpus
    kind, _, count = asked.rpartition(":")
    if asked and not count.isdecimal():
        kind, count = count, "1"
    per = given.nodes if given.gpus and not (gres or given.gpus_per_node) else 1
    return kind, math.ceil(int(count or 0) / per)


def _memory_mib(text: str | None, cpus: int, of: Cluster) -> int:
    """Without --mem what a processor has on the smallest node: DefMemPerCPU of our slurm.conf."""
    if text:
        try:
            return slurm_text.memory_mib(text)
        except slurm_text.ParseError as error:
            raise NotAsked(f"Invalid --mem specification: {text}") from error
    types = [each for pool in of.pools for each in pool.instance_types]
    return cpus * min(each.slurm_memory_mib // each.vcpus for each in types)


def _array(text: str) -> tuple[int, int]:
    """How many tasks, and how many of them at a time: of 0-9%2 and the like."""
    tasks, _, throttle = text.partition("%")
    count = 0
    for part in filter(None, tasks.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise NotAsked(f"Invalid job array specification: {text}")
        count += int(last or first) - int(first) + 1
    return count, int(throttle) if throttle.isdecimal() else 0


def _duration_s(runs: str, time: str | None) -> float:
    """The sleeps of a script are what it does; a time limit ends it."""
    slept = [float(count) * UNITS_S[unit] for count, unit in SLEEP.findall(runs)]
    return min(sum(slept) or RUNS_S, _limit_s(time) or math.inf)


def _limit_s(text: str | None) -> float | None:
    """A bare number is minutes, all else as squeue prints it. Source: sbatch(1), --time."""
    if text is None:
        return None
    if text.isdecimal():
        return 60.0 * int(text)
    try:
        return slurm_text.duration_s(text)
    except slurm_text.ParseError as error:
        raise NotAsked(f"Invalid --time specification: {text}") from error
