"""What the story needs from the world it plays in."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Protocol

from local.demo.asks import Ask
from local.demo.chronicle import Chronicle
from tidegate.core.actions import Launch, Mark, Phase
from tidegate.core.explain import sentence
from tidegate.core.slurm import Reading
from tidegate.ports import LedgerView
from tidegate.service.control import Looked

# EC2's two minutes of notice pass in 20 s, and the agent's minute between heartbeats in 10 s,
# so that a demo fits into two minutes.
TIME_SCALE = 6.0
HEARTBEAT_S = 60.0 / TIME_SCALE


class Refused(Exception):
    """sbatch would not take the job; its own words."""


@dataclass(slots=True)
class Seen:
    """The latest view of everything, for the screen and for the story's questions."""

    reading: Reading = field(default_factory=lambda: Reading("", (), ()))
    instances: tuple[tuple[str, str, str], ...] = ()  # id, offering, EC2's state
    unmet: dict[str, str] = field(default_factory=dict)
    served: dict[str, str] = field(default_factory=dict)
    decisions: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=200))


class Stage(Protocol):
    """A world with a head, users and EC2; all times are seconds of its own clock."""

    name: str
    chronicle: Chronicle
    seen: Seen

    def now_s(self) -> float: ...

    def submit(self, ask: Ask) -> str:
        """The job id. Errors: Refused."""
        ...

    def cancel(self, job_id: str) -> None: ...

    def notice(self, instance_id: str) -> None:
        """EC2 announces that it reclaims this spot instance, and does so in time."""
        ...

    def wait(self, seconds: float) -> None:
        """Let the world go on; refreshes `seen` and `chronicle`."""
        ...

    def completed(self, job_id: str) -> int:
        """How many jobs (array tasks) under this id have ended well."""
        ...

    def output(self, ask: Ask, job_id: str) -> list[str]:
        """What the job's script wrote, one line per job or task; simulated jobs say the same."""
        ...

    def signals(self, job_id: str) -> list[str]:
        """Checkpoint signals that the job itself saw."""
        ...

    def requeued(self) -> int: ...

    def open_records(self) -> int:
        """Nodes that the ledger does not know as released or ended."""
        ...

    def aws_calls(self) -> Counter[str]: ...


def open_records(view: LedgerView) -> int:
    """How many nodes are neither released nor ended."""
    return sum(record.phase < Phase.RELEASED for record in view.nodes)


def record_look(looked: Looked, seen: Seen, chronicle: Chronicle, now_s: float) -> None:
    """Write a look into the view and the chronicle."""
    for done in looked.rounds:
        if done.outcome.is_stale:
            seen.decisions.append((now_s, "another planner was faster: this plan is thrown away"))
            continue
        launches = [a for a in done.plan.actions if isinstance(a, Launch)]
        by_launch = {launch.launch_id: launch for launch in launches}
        for instance in done.outcome.launched:
            launch = by_launch.get(instance.launch_id)
            jobs = launch.for_jobs if launch else ()
            chronicle.note_launch([instance.instance_id], jobs, now_s)
        seen.decisions.extend(
            (now_s, sentence(a)) for a in done.plan.actions if not isinstance(a, Mark)
        )
        seen.decisions.extend(
            (now_s, f"EC2 refused {r.offering}: {r.code}") for r in done.outcome.refused
        )
        seen.decisions.extend((now_s, note) for note in (*done.notes, *done.outcome.trouble))
        if done.snapshot.digest is not None:
            seen.unmet = {each.job_id: each.reason for each in done.plan.unmet}
            seen.served = {each.job_id: each.reason for each in done.plan.served}
    if looked.trouble:
        seen.decisions.append((now_s, f"this look failed: {looked.trouble}"))
