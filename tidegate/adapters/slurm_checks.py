"""Jobs of a site's check: submitted by a program of root's, found again by their names.

sbatch submits for others as root alone (`--uid` of sbatch(1)), and the agent is SlurmUser; so the
head has a program for that, which sudo lets it run (userdata/head/tidegate-check.sh).
Source: squeue(1), `--Format`; `exit_code` is what wait(2) says on Slurm 22.05, and
`CODE:SIGNAL` on 24.11 and 26.05.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.core.model.site_check import REFUSED, CheckJob, is_check

SUBMIT = ("sudo", "-n", "/usr/local/sbin/tidegate-check")
# The program ends itself before: what sudo runs as root, SlurmUser cannot kill.
SUBMIT_TIMEOUT_S = 40.0
FIELDS = ("JobID", "Name", "State", "UserName", "exit_code")
FORMAT = ",".join(f"{each}:|" for each in FIELDS)
_STATUS = re.compile(r"([0-9]{1,9})(?::([0-9]{1,3}))?", re.ASCII)
# Others have begun since then; whoever still waits for one asks again.
KEPT_MAX = 64
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
        CheckJob(name, state, job_id, user, None if state in RUNNING else code)
        for job_id, name, state, user, status in (
            row[: len(FIELDS)] for row in rows if len(row) > 5
        )
        if is_check(name) and (code := _exit_code(status)) is not None
    )


def _exit_code(status: str) -> int | None:
    """As a shell says it: of what a signal has ended 128 more than that. None: it is neither."""
    found = _STATUS.fullmatch(status)
    if found is None:
        return None
    number = int(found[1])
    code, signal = (number >> 8, number & 127) if found[2] is None else (number, int(found[2]))
    return code or (128 + signal if signal else 0)
