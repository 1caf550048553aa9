"""Alarms of CloudWatch that a roll-out heeds: which, and what CloudWatch says of them."""

from enum import StrEnum

from tidegate.core.model.frozen import frozen

# A composite alarm joins others. One request of CloudWatch has room for 100, a pattern of
# EventBridge for 2,048 characters, and a name of CloudWatch for 255.
ALARMS_MAX = 5
# Who has paused a roll-out by an alarm.
BY_ALARM = "an alarm"


class AlarmState(StrEnum):
    """CloudWatch's own words. Source: CloudWatch API, DescribeAlarms, StateValue."""

    OK = "OK"
    ALARM = "ALARM"
    NO_DATA = "INSUFFICIENT_DATA"


@frozen
class RolloutAlarms:
    """Alarms by which roll-outs stop. `rolls_back`: one gives the new template up, else pauses."""

    names: tuple[str, ...]
    rolls_back: bool = True


@frozen
class SeenAlarm:
    """An alarm as it is now."""

    name: str  #: its name
    state: AlarmState | None  #: CloudWatch's word; null: there is no such alarm


@frozen
class SeenAlarms:
    """What CloudWatch has said of the alarms that the cluster file names."""

    alarms: tuple[SeenAlarm, ...] = ()  #: one for each name
    trouble: str = ""  #: why they could not be read; empty: they were

    def names(self, state: AlarmState | None) -> list[str]:
        """Of those in this state; None: of those that there are not."""
        return sorted(each.name for each in self.alarms if each.state is state)
