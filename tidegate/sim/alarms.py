"""CloudWatch's alarms, as the simulated world sets them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.core.model.alarms import AlarmState, SeenAlarm
from tidegate.core.model.errors import TidegateError


@dataclass(slots=True)
class SimAlarms:
    """`states_by_name`: of the alarms that there are. `trouble`: what each call fails with; None:
    it answers. `is_narrow`: the right to read them is not on `*`, so that CloudWatch leaves out the
    composite ones without a word.
    """

    states_by_name: dict[str, AlarmState] = field(default_factory=dict)
    composite: set[str] = field(default_factory=set)
    trouble: TidegateError | None = None
    is_narrow: bool = False
    num_calls: int = 0

    def set(self, name: str, state: AlarmState) -> None:
        self.states_by_name[name] = state

    def states(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        self.num_calls += 1
        if self.trouble is not None:
            raise self.trouble
        hidden = self.composite if self.is_narrow else set()
        shown = {name: state for name, state in self.states_by_name.items() if name not in hidden}
        return tuple(SeenAlarm(name, shown.get(name)) for name in names)
