"""Jobs of a site's check: submitted by a program of root's, found again by their names.

sbatch submits for others as root alone (`--uid` of sbatch(1)), and the agent is SlurmUser; so the
head has a program for that, which sudo lets it run (userdata/head/tidegate-check.sh).
Source: squeue(1), `--Format`; `exit_code` is what wait(2) says, as seen on Slurm 22.05.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.core.model.site_check import REFUSED, CheckJob, is_check_name

SUBMIT = ("sudo", "-n", "/usr/local/sbin/tidegate-check")
# The program ends itself before: what sudo runs as root, SlurmUser cannot kill.
SUBMIT_TIMEOUT_S = 40.0
FIELDS = ("JobID", "Name", "State", "UserName", "exit_code")
FORMAT = ",".join(f"{each}:|" for each in FIELDS)
# Another roll-out has begun since then.
KEPT_MAX = 16
RUNNING = frozenset({"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED"})


@dataclass(slots=True)
class Checks:
    """What was submitted since the agent began: whoever asks for a check asks again until he sees
    it, so it is known after another start as well.
    """

    _refused: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, refused: str) -> None:
        self._refused.pop(name, None)
        self._refused[name] = refused
        for old in list(self._refused)[:-KEPT_MAX]:
            self._refused.pop(old, None)

    def jobs(self, ask: Callable[[Sequence[str]], str]) -> tuple[CheckJob, ...]:
        """Those that Slurm knows, and those that it has refused."""
        known = dict(self._refused)
        if not known:
            return ()
        names = ",".join(known)
        text = ask(["squeue", "-h", "-a", "-t", "all", "-n", names, "-O", FORMAT])
        found = parse(text)
        there = {each.name for each in found}
        refused = (
            CheckJob(name, REFUSED, said=said)
            for name, said in known.items()
            if said and name not in there
        )
        return (*found, *refused)


def parse(text: str) -> tuple[CheckJob, ...]:
    """What squeue prints by `FORMAT`; of a line that cannot be read nothing is told."""
    rows = [line.split("|") for line in text.splitlines()]
    return tuple(
        CheckJob(name, state, job_id, user, None if state in RUNNING else _exit_code(code))
        for job_id, name, state, user, code in (row[: len(FIELDS)] for row in rows if len(row) > 5)
        if is_check_name(name) and _is_number(code)
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _exit_code(status: str) -> int:
    """As a shell says it: of what a signal has ended 128 more than that."""
    number = int(status)
    return number >> 8 or (128 + (number & 127) if number else 0)
