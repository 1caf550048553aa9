"""What the story needs from the world it plays in."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from local.demo.asks import Ask
from local.demo.chronicle import Chronicle
from tidegate.core.model.ledger import Phase
from tidegate.core.model.slurm import Reading
from tidegate.ports import LedgerView

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

    def is_listening(self, job_id: str) -> bool:
        """Whether the job has begun, so that a checkpoint signal would not just end it."""
        ...

    def signals(self, job_id: str) -> list[str]:
        """Checkpoint signals that the job itself saw."""
        ...

    def requeued(self) -> int: ...

    def open_records(self) -> int:
        """Nodes that the ledger does not know as released or ended."""
        ...

    def aws_calls(self) -> Counter[str]: ...

    def until_change_s(self) -> float:
        """How long the calendar keeps the cluster as it is now, by its own clock."""
        ...

    def pass_scheduled(self, seconds: float) -> None:
        """Jump so far on the schedules' clock; everything due on the way fires."""
        ...

    def head_state(self) -> str:
        """EC2's word for the state of the head."""
        ...

    def figures(self) -> Mapping[str, object]:
        """What only this stage can count."""
        ...

    def last_words(self) -> Sequence[str]:
        """How each machine's console ends, also those of machines that have ended."""
        ...


def open_records(view: LedgerView) -> int:
    """How many nodes are neither released nor ended."""
    return sum(record.phase < Phase.RELEASED for record in view.nodes)


def record_look(look: Mapping[str, Any], seen: Seen, chronicle: Chronicle, now_s: float) -> None:
    """Write the planner's log record of a look (service/describe.py) into view and chronicle."""
    for done in look["rounds"]:
        if done["is_stale"]:
            seen.decisions.append((now_s, "another planner was faster: this plan is thrown away"))
            continue
        for launched in done["launched"]:
            chronicle.note_launch([launched["instance_id"]], launched["jobs"], now_s)
        refused = [f"EC2 refused {each['offering']}: {each['code']}" for each in done["refused"]]
        decided = [each["sentence"] for each in done["decisions"]]
        said = (*decided, *refused, *done["notes"], *done["trouble"])
        seen.decisions.extend((now_s, text) for text in said)
    if look["unmet"] is not None:
        seen.unmet, seen.served = look["unmet"], look["served"]
    if look["trouble"]:
        seen.decisions.append((now_s, f"this look failed: {look['trouble']}"))
