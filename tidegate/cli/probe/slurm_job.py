"""The job of a probe: submitted, watched, requeued and cancelled on the head."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tidegate.cli.probe.cheapest import Cheapest
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.frozen import frozen

NAME = "tidegate-probe"
# The first run waits for its requeue, the second one ends at once.
SCRIPT = "[ ${SLURM_RESTART_COUNT:-0} -gt 0 ] || sleep 600"
TIME_LIMIT_MIN = 12

_PAIR = re.compile(r"(?:^|\s)(\w+)=(\S*)")
# squeue(1), "JOB STATE CODES": what ends a job for good.
OVER = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "TIMEOUT"),
    }
)


class Shell(Protocol):
    """The head's. Errors: SlurmUnavailable, the command failed; Permanent, there is no shell."""

    def run(self, *argv: str) -> str: ...


@frozen
class JobState:
    """Slurm's word for the job. `runs_on`: its node while it runs, else ""."""

    name: str = ""
    reason: str = ""
    runs_on: str = ""
    restarts: int = 0
    started_at_s: float | None = None

    @property
    def is_over(self) -> bool:
        """Also when Slurm knows it no more."""
        return self.name in OVER or not self.name


@dataclass(slots=True)
class SlurmJob:
    """One job. `refused`: what EC2 refused since a time, in sentences about a job of this id."""

    shell: Shell
    refused: Callable[[str, float], tuple[str, ...]]
    job_id: str = ""
    is_begun: bool = False

    def submit(self, on: Cheapest) -> None:
        kind = on.instance_type
        self.shell.run("true")
        self.is_begun = True
        said = self.shell.run(
            *("sbatch", "--parsable", f"--job-name={NAME}", "--requeue", "--nodes=1", "--ntasks=1"),
            *(f"--partition={on.partition}", f"--constraint={on.pool}&{kind.name}"),
            *((f"--gres=gpu:{kind.gpu_type}:1",) if kind.gpus else ()),
            *(f"--time={TIME_LIMIT_MIN}", "--chdir=/tmp", "--output=/dev/null"),
            f"--wrap={SCRIPT}",
        )
        self.job_id = said.strip().splitlines()[-1].split(";")[0]

    def state(self) -> JobState:
        """Errors: those of the shell, but for a job that Slurm has forgotten."""
        try:
            # strftime(3)'s %s: no doubt about the head's time zone.
            asked = ("env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "job")
            said = dict(_PAIR.findall(self.shell.run(*asked, self.job_id)))
        except SlurmUnavailable as error:
            if "Invalid job id" in str(error):
                return JobState()
            raise
        name, start = said.get("JobState", ""), said.get("StartTime", "")
        return JobState(
            name,
            said.get("Reason", ""),
            said.get("NodeList", "") if name == "RUNNING" else "",
            int(said.get("Restarts") or 0),
            float(start) if name != "PENDING" and start.isdecimal() else None,
        )

    def requeue(self) -> None:
        self.shell.run("scontrol", "requeue", self.job_id)

    def cancel(self) -> None:
        """By name: the answer to a submission may have been lost, and then its id is asked for."""
        mine = (f"--name={NAME}", "--user=root")
        if not self.job_id:
            listed = self.shell.run("squeue", "--noheader", *mine, "--format=%A").split()
            self.job_id = listed[-1] if listed else ""
        self.shell.run("scancel", *mine)

    def is_alone_on(self, name: str) -> bool:
        """Whether nobody else's job is on a node, which takes none from then on.

        A node that is shared with others goes on to take jobs.
        """
        update = ("scontrol", "update", f"nodename={name}")
        try:
            self.shell.run(*update, "state=drain", f"reason={NAME}")
            listed = self.shell.run(
                "squeue", "--noheader", f"--nodelist={name}", "--states=R,CG,S,CF", "--format=%A"
            )
        except SlurmUnavailable as error:
            if "Invalid node name" in str(error):  # it has not joined, or Slurm forgot it
                return True
            raise
        if {one for one in listed.split() if one != self.job_id}:
            self.shell.run(*update, "state=undrain")
            return False
        return True

    def refusals(self, *, since_s: float) -> tuple[str, ...]:
        return self.refused(self.job_id, since_s)
