"""Which of two idle nodes is sick, where they fail a check together.

By elimination: who failed is tried with others until one of them passes. Who has passed with
another is good; who fails with two good nodes and passes with nobody is sick. So a check that fails
everywhere condemns no node at all.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tidegate.core.model.durations import span
from tidegate.core.model.idle_check import (
    CHECKED_MAX,
    DAY_S,
    FOUND_PAIR,
    CheckedNode,
    IdleCheck,
    IdleChecks,
    PairChecks,
    SickNode,
    TriedPair,
)

# That did not run, one after the other, until the pool asks for none for a day.
MISSED_MAX = 2

# So many good nodes have to have failed with it: with one it may be what lies between the two.
PARTNERS_MIN = 2

# So many pairs that fail while none passes: every pair of four nodes. It is not the nodes.
FAILED_MAX = 6

# A question that is open for longer needs a person, or more nodes.
OPEN_S = 3600.0

PAIR_FAILS = "idle-pair-failed"
NOT_KNOWN = "which of them is sick is not known, and each is tried with others"


def with_passed(pairs: PairChecks, nodes: tuple[str, ...], now_s: float) -> PairChecks:
    """Both are good; while a question is open that may answer it."""
    others = (each for each in pairs.nodes if each.instance_id not in nodes)
    done = (CheckedNode(name, now_s) for name in nodes)
    found = replace(pairs, nodes=(*others, *done), missed=0, said="", rests_until_s=0.0)
    if not pairs.tried:
        return found
    return replace(found, tried=(*pairs.tried, TriedPair(nodes[0], nodes[1], now_s)))


def with_failed(pairs: PairChecks, nodes: tuple[str, ...], said: str, now_s: float) -> PairChecks:
    """One of them is sick, or what lies between them, or the check errs."""
    tried = (*pairs.tried, TriedPair(nodes[0], nodes[1], now_s, said))
    fine = good(tried)
    # Due again, but for who has passed with another meanwhile.
    left = tuple(e for e in pairs.nodes if e.instance_id not in nodes or e.instance_id in fine)
    return replace(pairs, tried=tried, nodes=left, missed=0, said="")


def failed_now(before: PairChecks, now: PairChecks) -> str:
    """How a pair failed that had not before; "": none did."""
    new = [each.said for each in now.tried if each not in before.tried]
    return new[-1] if new else ""


def good(tried: Sequence[TriedPair]) -> set[str]:
    """Who has passed with another."""
    return {name for each in tried if not each.said for name in each.nodes}


def suspects(tried: Sequence[TriedPair]) -> list[str]:
    """Who has failed, and passed with nobody; who failed first is first."""
    fine = good(tried)
    failed = (name for each in tried if each.said for name in each.nodes)
    return [name for name in dict.fromkeys(failed) if name not in fine]


def next_pair(tried: Sequence[TriedPair], free: Sequence[str]) -> tuple[str, str] | None:
    """What is tried next to answer an open question; None: nothing that is free now.

    With a node that is known to be good, else with another suspect, else with anybody. `free`:
    nodes that may be tested together, in their turn.
    """
    fine, open_ = good(tried), suspects(tried)
    done = {frozenset(each.nodes) for each in tried}
    failures = {name: sum(name in e.nodes for e in tried if e.said) for name in open_}

    def rank(pair: tuple[str, str]) -> tuple[int, int, int, int]:
        suspect, other = pair
        kind = 0 if other in fine else 1 if other in open_ else 2
        return kind, failures[suspect], open_.index(suspect), free.index(other)

    found = [
        (suspect, other)
        for suspect in open_
        if suspect in free
        for other in free
        if other != suspect and frozenset((suspect, other)) not in done
    ]
    return min(found, key=rank, default=None)


def with_verdict(
    state: IdleChecks, check: IdleCheck, known: Collection[str], now_s: float
) -> IdleChecks:
    """What is known now of nodes that failed in pairs. `known`: the pool's nodes."""
    pairs = state.pairs
    nodes = tuple(each for each in pairs.nodes if each.instance_id in known)[-CHECKED_MAX:]
    since_s = now_s - (check.pair.every_s if check.pair else 0.0)
    is_late = any(each.at_s < since_s for each in pairs.tried[:1])
    tried = tuple(e for e in pairs.tried if not is_late and {*e.nodes} <= {*known})
    pairs = replace(pairs, nodes=nodes, tried=tried)
    if state.sick is None and (sick := _sick(tried, now_s)):
        pairs = replace(pairs, tried=tuple(e for e in tried if sick.instance_id not in e.nodes))
        state = replace(state, sick=sick)
    pairs = pairs if suspects(pairs.tried) else replace(pairs, tried=())
    return replace(state, pairs=_doubted(pairs, now_s))


def long_open(pairs: PairChecks, now_s: float) -> str:
    """What is asked of a person while it is not known who is sick; "": nothing yet."""
    if not pairs.tried or now_s - pairs.tried[0].at_s < OPEN_S:
        return ""
    names = suspects(pairs.tried)
    since = span(now_s - pairs.tried[0].at_s)
    return (
        f"at least one of {', '.join(names)} is sick: they failed the check of pairs {since} ago, "
        "and too few nodes of their type and zone idle to tell which"
    )


def _sick(tried: Sequence[TriedPair], now_s: float) -> SickNode | None:
    """A node that failed with good ones and passed with nobody; None: it is not known."""
    fine = good(tried)
    for name in suspects(tried):
        failed = [each for each in tried if each.said and name in each.nodes]
        partners = {other: e for e in failed for other in e.nodes if other in fine}
        if len(partners) >= PARTNERS_MIN:
            last = failed[-1].said
            said = f"failed with {' and '.join(sorted(partners))}, which pass with others; {last}"
            return SickNode(name, f"{FOUND_PAIR}: {said}", now_s, now_s)
    return None


def _doubted(pairs: PairChecks, now_s: float) -> PairChecks:
    """Where pair after pair fails, the check errs, or what all of them share: a person is asked."""
    failed = [each for each in pairs.tried if each.said]
    if len(failed) < FAILED_MAX or good(pairs.tried):
        return pairs
    names = {name for each in failed for name in each.nodes}
    said = (
        f"{len(failed)} pairs of {len(names)} nodes failed and none passed ({failed[-1].said}): the"
        " check errs, or what these nodes share"
    )
    rest_s = now_s + DAY_S
    return replace(pairs, tried=(), missed=MISSED_MAX, said=said, rests_until_s=rest_s)
