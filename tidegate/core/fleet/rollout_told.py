"""What people hear of roll-outs, and what they may do about them."""

from tidegate.core.fleet.rollout_alarms import told as told_alarms
from tidegate.core.fleet.site_check import job_name
from tidegate.core.model.alarms import BY_ALARM
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.rollout import BY_CHECK, CANARIES_MAX, SHARE_PERCENT, Rollout, RolloutCode


def told(before: PoolHistory, after: PoolHistory) -> tuple[RolloutCode, str] | None:
    """What has become of the roll-out, and the sentence; None: nothing new."""
    was, now = before.rollout, after.rollout
    if was == now:
        return None
    if now is None:
        return _told_end(before, after)
    name, good = now.template.digest, after.good.digest if after.good else ""
    if was is None or was.template.digest != name:
        return RolloutCode.BEGUN, (
            f"template {name} comes on one node first, then on {CANARIES_MAX}; all others are "
            f"made from {good} until these are good{f'; but {now.held}' if now.held else ''}"
        )
    if now.given_up:
        return now.given_up, f"template {name} is given up: {now.said}; nodes come from {good}"
    if was.asked and not now.asked:
        return _told_word(now)
    if alarmed := told_alarms(was, now):
        return alarmed
    if check := _told_check(before.pool, was, now):
        return check
    if was.step is not now.step:
        return RolloutCode.TENTH, (
            f"the first nodes of template {name} are good ({_shown(was)}): {SHARE_PERCENT} % of "
            "the nodes are made from it now"
        )
    return RolloutCode.SEEN, f"template {name} so far: {_shown(now)}"


def remedy(pool: str, rollout: Rollout) -> str:
    """What somebody may do about one that was given up or paused."""
    if rollout.is_paused:
        return f"go on: tidegate rollout resume {pool}, or back: tidegate rollout abort {pool}"
    return f"mend it and deploy again, or have it tried once more: tidegate retry {pool}"


def why_paused(rollout: Rollout) -> str:
    """A colon and why, where no person has paused it."""
    return f": {rollout.said}" if rollout.by in (BY_CHECK, BY_ALARM) else ""


def _told_end(before: PoolHistory, after: PoolHistory) -> tuple[RolloutCode, str]:
    was = before.rollout
    assert was is not None, "it has ended"
    if after.good is None:
        return RolloutCode.NO_WAY_BACK, (
            "the last good template cannot be launched any more, EC2 refuses what it says: all "
            f"nodes are made from {was.template.digest}"
        )
    if after.good.digest == was.template.digest:
        why = f"taken for good by the word of {was.by}" if was.asked else "good"
        return RolloutCode.DONE, f"template {was.template.digest} is {why}: all nodes go over to it"
    return RolloutCode.DONE, f"template {after.good.digest} is deployed again: nothing to roll out"


def _told_word(rollout: Rollout) -> tuple[RolloutCode, str]:
    name, by = rollout.template.digest, rollout.by
    if rollout.is_paused:
        return RolloutCode.PAUSED, f"no more nodes are made from template {name}: paused by {by}"
    return RolloutCode.RESUMED, f"template {name} is rolled out again: resumed by {by}"


def _told_check(pool: str, was: Rollout, now: Rollout) -> tuple[RolloutCode, str] | None:
    name = now.template.digest
    if now.is_paused and not was.is_paused:
        return RolloutCode.UNCHECKED, (
            f"template {name} is not taken for good: {now.said}; {remedy(pool, now)}"
        )
    if now.checked.is_passed and not was.checked.is_passed and now.step is was.step:
        return RolloutCode.CHECKED, f"template {name} has passed the site's check"
    if now.checked.sent_at_s != was.checked.sent_at_s and now.checked.asked_at_s is not None:
        nodes = " and ".join(now.checked.nodes)
        return RolloutCode.CHECKING, (
            f"the site's check of template {name} is asked for on {nodes}: job "
            f"{job_name(now, pool)}"
        )
    return None


def _shown(rollout: Rollout) -> str:
    """What its nodes and jobs have shown."""
    jobs, well = rollout.jobs, len(set(rollout.tried) - set(rollout.bad))
    nodes = f"{well} of {len(rollout.tried)} first nodes joined well"
    passed = ", the site's check passed" if rollout.checked.is_passed else ""
    said = f", {rollout.said}" if rollout.bad or rollout.checked.missed else ""
    return f"{nodes}, {jobs.failed} of {jobs.ended} jobs failed there{passed}{said}"
