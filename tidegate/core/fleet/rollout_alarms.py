"""Alarms of CloudWatch and roll-outs: one that goes into ALARM meanwhile stops what is rolled out.

What was in ALARM before says nothing of a template that no node is made from yet: the roll-out
waits until all have been quiet at once. So does one whose alarms nobody can read.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.model.alarms import BY_ALARM, AlarmState
from tidegate.core.model.rollout import Rollout, RolloutCode
from tidegate.core.model.snapshot import Snapshot


def held(rollout: Rollout, snapshot: Snapshot) -> str:
    """Why no more nodes are made from it now; "": its alarms keep it from nothing.

    INSUFFICIENT_DATA holds nothing: an alarm on errors has no data where there are none.
    """
    wanted, seen = snapshot.cluster.alarms, snapshot.alarms
    if wanted is None:
        return ""
    if seen is None:
        return "its alarms were not read yet"
    if seen.trouble:
        return f"its alarms cannot be read: {seen.trouble}"
    if missing := seen.names(None):
        them = "it" if len(missing) == 1 else "them"
        does = f"make {them}, or take {them} out of rollout.alarms and deploy"
        return f"CloudWatch has no alarm {_listed(missing)} in this account and region: {does}"
    if not rollout.is_watched and (firing := seen.names(AlarmState.ALARM)):
        return f"{_are_firing(firing)} since before nodes were made from it: it goes on after that"
    return ""


def watched(rollout: Rollout, snapshot: Snapshot) -> Rollout:
    """With what its alarms say."""
    wanted, seen = snapshot.cluster.alarms, snapshot.alarms
    if wanted is None:
        return replace(rollout, is_watched=False, held="")
    if rollout.is_watched and seen and (firing := seen.names(AlarmState.ALARM)):
        said = f"{_are_firing(firing)}, and none was when it was rolled out"
        if wanted.rolls_back:
            return replace(rollout.giving_up(RolloutCode.BAD_ALARM, said), held="")
        paused = replace(rollout, is_paused=True, by=BY_ALARM, said=said)
        return replace(paused, is_watched=False, held="")
    why = held(rollout, snapshot)
    return replace(rollout, is_watched=rollout.is_watched or not why, held=why)


def told(was: Rollout, now: Rollout) -> tuple[RolloutCode, str] | None:
    """That it waits for its alarms, or does not any more; None: nothing new."""
    name = now.template.digest
    if now.is_paused and not was.is_paused and now.by == BY_ALARM:
        return RolloutCode.PAUSED, f"no more nodes are made from template {name}: {now.said}"
    if now.held and now.held != was.held:
        return RolloutCode.HELD, f"no nodes are made from template {name}: {now.held}"
    if was.held and not now.held:
        return RolloutCode.UNHELD, f"template {name} is rolled out: its alarms are quiet"
    return None


def _are_firing(names: Sequence[str]) -> str:
    are = "alarm {} is" if len(names) == 1 else "alarms {} are"
    return f"{are.format(_listed(names))} in ALARM"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
