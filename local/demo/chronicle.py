"""What happened when, seen from outside, and the figures that follow from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.core.model.slurm import Reading


@dataclass(slots=True)
class Chronicle:
    """First sightings, in seconds of the stage's clock.

    A job's launch is the first instance bought with the job named as its reason; a node's
    registration and a job's start are when Slurm first shows them.
    """

    submitted: dict[str, float] = field(default_factory=dict)
    bought_for: dict[str, float] = field(default_factory=dict)
    launched: dict[str, float] = field(default_factory=dict)
    registered: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    ran_on: dict[str, tuple[str, ...]] = field(default_factory=dict)
    noticed: dict[str, float] = field(default_factory=dict)
    drained: dict[str, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)
    terminated: dict[str, float] = field(default_factory=dict)

    def note_launch(self, instance_ids: Iterable[str], job_ids: Iterable[str], at_s: float) -> None:
        for instance_id in instance_ids:
            self.launched.setdefault(instance_id, at_s)
        for job_id in job_ids:
            self.bought_for.setdefault(job_id, at_s)

    def note_reading(self, reading: Reading, at_s: float) -> None:
        """Compare one look at Slurm with what was known."""
        for node in reading.nodes:
            self.registered.setdefault(node.name, at_s)
            if node.state.is_drain and node.name in self.noticed:
                self.drained.setdefault(node.name, at_s)
            if node.state.is_idle:
                self.idle.setdefault(node.name, at_s)
            else:
                self.idle.pop(node.name, None)
        for job in reading.jobs:
            if job.is_running:
                self.running.setdefault(job.job_id, at_s)
                self.ran_on.setdefault(job.job_id, job.node_names)

    def note_terminated(self, instance_ids: Iterable[str], at_s: float) -> None:
        for instance_id in instance_ids:
            self.terminated.setdefault(instance_id, at_s)

    def figures(self) -> dict[str, list[float]]:
        """The measured durations, each a list of the values seen."""
        return {
            "submit_to_launch_s": _between(self.submitted, self.bought_for),
            "launch_to_registered_s": _between(self.launched, self.registered),
            "registered_to_running_s": self._starts(),
            "notice_to_drained_s": _between(self.noticed, self.drained),
            "idle_to_terminated_s": self._ends(),
        }

    def _starts(self) -> list[float]:
        """From the last of a job's new nodes to its start; later jobs of a node do not count."""
        first_use: dict[str, str] = {}
        for job_id in sorted(self.running, key=lambda each: self.running[each]):
            for name in self.ran_on[job_id]:
                first_use.setdefault(name, job_id)
        waits = [
            self.running[job_id] - max(self.registered[name] for name in names)
            for job_id, names in self.ran_on.items()
            if names and all(first_use[name] == job_id for name in names)
        ]
        return [round(max(wait, 0.0), 2) for wait in waits]

    def _ends(self) -> list[float]:
        """Nodes that were let go because they idled; reclaimed ones are another matter."""
        kept = {name: at_s for name, at_s in self.idle.items() if name not in self.noticed}
        return _between(kept, self.terminated)


def _between(starts: dict[str, float], ends: dict[str, float]) -> list[float]:
    both = sorted(starts.keys() & ends.keys())
    return [round(max(ends[key] - starts[key], 0.0), 2) for key in both]
