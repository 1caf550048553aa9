"""What a batch script asks with `#SBATCH --signal`: nothing else of Slurm's shows it to others.

Source: sbatch(1): options stand before the first command, the last one counts, and
`--signal=[{R|B}:]sig[@seconds]` means 60 seconds where it names none. Verified with
`scontrol write batch_script` on 22.05 and 24.11; what stood on sbatch's command line is not there.
"""

import re
import shlex
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tidegate.core.model.slurm import Job

DEFAULT_S = 60
# 6 ms each: what a look reads at most. Only after a start of the agent are there more.
SCRIPTS_AT_ONCE = 50

_SIGNAL = re.compile(r"(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9]{1,9})(?:@(\d{1,5}))?", re.ASCII)
_HET = re.compile(r"#SBATCH\s+(hetjob|packjob)\b")


@dataclass(slots=True)
class Scripts:
    """What the scripts of jobs ask, each read once, when its job runs: none in a storm.

    `read`: the script of a job, "" where it has none; None: it cannot be read now.
    """

    read: Callable[[str], str | None]
    _signals: dict[str, str] = field(default_factory=dict)

    def with_signals(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """The jobs, with what is known of their scripts."""
        known = {key: self._signals[key] for job in jobs if (key := _key(job)) in self._signals}
        running = (job for job in jobs if job.is_running and not job.is_checkpointed)
        # By a task that runs: Slurm forgets the first one of an array, whose id is the array's.
        unread: dict[str, str] = {}
        for job in running:
            if _key(job) not in known:
                unread.setdefault(_key(job), job.job_id)
        for key, job_id in list(unread.items())[:SCRIPTS_AT_ONCE]:
            script = self.read(job_id)
            if script is None:
                break
            known[key] = asked_signal(script)
        self._signals = known
        return tuple(
            replace(job, signal=asked) if (asked := known.get(_key(job))) else job for job in jobs
        )


def _key(job: Job) -> str:
    """Tasks of an array share their script."""
    return job.array_job_id or job.job_id


def asked_signal(script: str) -> str:
    """As `B:USR1@90` (the script alone) or `USR1@90` (its steps); "" when it asks for none.

    Of a heterogeneous job the first component's options count, in which the script runs.
    """
    asked = ""
    for line in script.splitlines()[1:]:
        if not line.startswith("#"):
            if line.strip():
                break
            continue
        if _HET.match(line):
            break
        if line.startswith("#SBATCH"):
            asked = _option(_words(line.removeprefix("#SBATCH"))) or asked
    return _normal(asked)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote that nobody closes
        return []


def _option(words: list[str]) -> str:
    found = ""
    for word, following in pairwise([*words, ""]):
        if word == "--signal":
            found = following
        elif word.startswith("--signal="):
            found = word.partition("=")[2]
    return found


def _normal(asked: str) -> str:
    found = _SIGNAL.fullmatch(asked.upper())
    if found is None:
        return ""
    flags, name, seconds = found.groups()
    if name.isdecimal():
        try:
            name = signal.Signals(int(name)).name.removeprefix("SIG")
        except ValueError:
            return ""
    prefix = "B:" if "B" in (flags or "") else ""
    return f"{prefix}{name}@{int(seconds or DEFAULT_S)}"
