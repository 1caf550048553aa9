"""What was asked of IAM and what it said, so that a test can name what nobody used."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from local.iam.evaluate import Decision


@dataclass(frozen=True, slots=True)
class Checked:
    """One question to IAM and its answer. `principal`: a role's ARN, or a service."""

    principal: str
    action: str
    resource: str
    decision: Decision


@dataclass(slots=True)
class DecisionLog:
    """Every different decision, once, in the order of its first time. Threads may share it.

    `not_modelled`: what the evaluator could not judge, and therefore refused.
    """

    _checked: dict[Checked, None] = field(default_factory=dict)
    _not_modelled: dict[str, None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add(self, checked: Checked) -> None:
        with self._lock:
            self._checked[checked] = None

    def add_gap(self, what: str) -> None:
        with self._lock:
            self._not_modelled[what] = None

    def clear(self) -> None:
        with self._lock:
            self._checked.clear()
            self._not_modelled.clear()

    @property
    def used(self) -> Sequence[Checked]:
        """What was allowed, each with the statements that allowed it."""
        with self._lock:
            return [one for one in self._checked if one.decision.is_allowed]

    @property
    def denied(self) -> Sequence[Checked]:
        with self._lock:
            return [one for one in self._checked if not one.decision.is_allowed]

    @property
    def not_modelled(self) -> Sequence[str]:
        with self._lock:
            return list(self._not_modelled)
