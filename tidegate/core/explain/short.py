"""A verdict in one line: the first line of `why`, and the note that a job carries."""

from collections.abc import Sequence

from tidegate.core.explain.verdicts import Verdict
from tidegate.core.model.durations import clock
from tidegate.core.model.why import PASSED_OVER, PASSING, Why, WhyNot

NOTE_MAX_CHARS = 300

# What stands in a waiting job's AdminComment begins like this.
NOTE_IS_OURS = "tidegate: "


def in_short(verdict: Verdict) -> str:
    """The reason; of many obstacles the first, and when the next try is. No word of it ticks."""
    first = told_first(verdict.why_nots)
    until_s = [each.until_s for each in first if each.until_s is not None]
    if until_s and all(each.kind is Why.RESTING for each in first):
        many = f"all {len(first)} offerings that fit rest" if len(first) > 1 else "what fits rests"
        return f"{many} after EC2 refused them, the next try is at {clock(min(until_s))}"
    broken = [each for each in first if each.kind is Why.BROKEN]
    if until_s and broken and all(each.kind in (Why.RESTING, Why.BROKEN) for each in first):
        return f"{broken[0].sentence}; the next try is at {clock(min(until_s))}"
    if until_s and first[0].kind in PASSED_OVER and len({each.kind for each in first}) == 1:
        because = PASSED_OVER[first[0].kind]
        return f"{because}: nothing is bought for it until {clock(max(until_s))}"
    sentences = list(dict.fromkeys(each.sentence for each in first))
    more = f"; {len(sentences) - 1} more below" if len(sentences) > 1 else ""
    return f"{sentences[0]}{more}" if sentences else verdict.reason


def told_first(why_nots: Sequence[WhyNot]) -> Sequence[WhyNot]:
    """What would fit and is held back says more than all that would not."""
    return [each for each in why_nots if each.kind in PASSING] or why_nots


def note(verdict: Verdict) -> str:
    """What a job's AdminComment says of its verdict; "": nothing.

    Nothing where Slurm's own reason says it: an update hides that reason until the next pass,
    and a reason that is hidden looks as if nodes would help.
    """
    if verdict.is_served:
        return f"{NOTE_IS_OURS}starts soon: {verdict.reason}"
    if all(each.kind is Why.HELD for each in verdict.why_nots):
        return ""
    said = in_short(verdict).replace(" more below", " more reasons")
    words = dict.fromkeys(each.words for each in told_first(verdict.why_nots) if each.words)
    said = "; EC2 said ".join((said, *list(words)[:1]))
    return f"{NOTE_IS_OURS}waits: {said}"[:NOTE_MAX_CHARS]
