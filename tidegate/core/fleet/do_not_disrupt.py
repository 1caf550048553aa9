"""Do-not-disrupt: `tidegate:keep` or `tidegate:keep=UNTIL`, as a node's feature or a job's comment.

UNTIL is a time in ISO 8601, in UTC where it names no zone: 2027-01-31T18:00 or 2027-01-31. The
pool says for how long at most: counted from the start of the job, for a node from its launch,
and where a time is given, from now.
"""

import re
from datetime import UTC, datetime

from tidegate.core.fleet.members import Member
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import moment

MARK = re.compile(r"(?<![\w-])tidegate:keep(?:=([0-9][0-9TZ:.+-]*))?(?![\w=-])")


def kept_because(member: Member, pool: Pool, now_s: float) -> str:
    """What keeps this node from being let go, in words; "": nothing does.

    Somebody who asks for longer than the pool allows gets what it allows.
    """
    if member.reservation:
        return f"Slurm's reservation {member.reservation} names it"
    if member.node is not None and member.node.state.is_reserved:
        return "it is in a reservation of Slurm's"  # and Slurm deletes none of these
    most_s = pool.disruption.keep_max_s
    for feature in member.node.features if member.node else ():
        until_s = _until_s(feature, member.launched_at_s, most_s, now_s)
        if until_s is not None and now_s < until_s:
            return f"the feature {feature} keeps it until {moment(until_s)} UTC"
    for job in member.jobs:
        began_s = job.started_at_s if job.started_at_s is not None else now_s
        until_s = _until_s(job.comment, began_s, most_s, now_s)
        if until_s is not None and now_s < until_s:
            return f"job {job.job_id} keeps it until {moment(until_s)} UTC at most"
    return ""


def _until_s(text: str, since_s: float, most_s: float, now_s: float) -> float | None:
    """When the mark in `text` ends; None: there is none.

    An end further away than the pool allows does not count yet: the mark counts as one without.
    """
    found = MARK.search(text)
    if found is None:
        return None
    at_s = _instant_s(found[1]) if found[1] else None
    if at_s is None or at_s > now_s + most_s:
        return since_s + most_s
    return at_s


def _instant_s(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
