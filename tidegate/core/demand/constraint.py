"""Slurm's constraint expressions, rewritten so that each node can be judged by itself.

Slurm 22.05 reads `a|b&c` from left to right, as `(a|b)&c` (tried); counts and brackets speak
of the job as a whole. The result is a disjunction of conjunctions such as `a&c|b&c`, and one
more for each kind of nodes that `[a*2&b*4]` counts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from tidegate.core.demand.fit import satisfies
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job
from tidegate.core.model.slurm_names import is_constraint

# `a100*2&ib` over three groups of three alternatives gives 27; more was not meant.
MAX_ALTERNATIVES = 64

_TOKEN = re.compile(r"[&|,()\[\]]|\*[0-9]{1,9}|[^&|,()\[\]*]+")

type Alternatives = tuple[frozenset[str], ...]

ANY_NODE: frozenset[str] = frozenset()


class Unplannable(ValueError):
    """The expression is none, or asks for what no nodes can be."""


@frozen
class NodeKind:
    """So many of a job's nodes must meet this, a text like `a&c|b&c`; "": any node will do."""

    nodes: int
    constraint: str


@frozen
class Constraint:
    """Features that nodes must have: all of one alternative, each a text like `a&b`.

    `is_same`: the nodes of a job must all meet the same alternative (`[a|b]`). `kinds`: nodes
    of which each counts for one kind only (`[a*2&b*4]`); then `alternatives` are what any
    further node must meet.
    """

    alternatives: tuple[str, ...] = ()
    is_same: bool = False
    kinds: tuple[NodeKind, ...] = ()

    def __str__(self) -> str:
        return "|".join(self.alternatives)

    @property
    def nodes(self) -> int:
        """How many nodes its kinds need together."""
        return sum(kind.nodes for kind in self.kinds)


@lru_cache(maxsize=4_096)
def read_constraint(text: str) -> Constraint:
    """Errors: Unplannable. "" has no alternatives: every node will do.

    A feature that only some nodes must have (`a*2` without another count beside it in brackets)
    is asked of all: Slurm accepts that, and without brackets 22.05 demands it (tried).
    """
    if not text:
        return Constraint()
    reader = _Reader(_TOKEN.findall(text))
    found = reader.expression()
    if reader.rest:
        raise Unplannable(f"its constraint {text!r} does not end where it should")
    if reader.is_same and reader.kinds:
        raise Unplannable("its constraint has two pairs of brackets")
    kinds = tuple(
        NodeKind(count, "|".join(_texts(_both(found, which)))) for count, which in reader.kinds
    )
    texts = tuple(text for text in _texts(found) if text)
    return Constraint(texts, reader.is_same and len(texts) > 1, kinds)


def _texts(alternatives: Alternatives) -> Iterable[str]:
    return dict.fromkeys("&".join(sorted(one)) for one in alternatives)


def _both(some: Alternatives, others: Alternatives) -> Alternatives:
    """Errors: Unplannable."""
    found = tuple(dict.fromkeys(one | other for one in some for other in others))
    if len(found) > MAX_ALTERNATIVES:
        raise Unplannable(f"its constraint has more than {MAX_ALTERNATIVES} alternatives")
    return found


def with_feature(text: str, feature: str) -> str | None:
    """The constraint and one feature more; the same where it asks for that already.

    None: releases of Slurm differ in what `a|b&c` means, and counts speak of several nodes.
    """
    if not text:
        return feature
    found = text.replace(",", "&").replace(" ", "")
    if not is_constraint(found):
        return None
    return text if feature in found.split("&") else f"{found}&{feature}"


def without_feature(text: str, feature: str) -> str | None:
    """The constraint and this feature less; None where it asks for none, or not plainly."""
    asked = text.replace(",", "&").replace(" ", "").split("&")
    if feature not in asked or not is_constraint("&".join(asked)):
        return None
    return "&".join(each for each in asked if each != feature)


class _Reader:
    """Recursive descent; operators have no precedence, as in Slurm."""

    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens[::-1]
        self.is_same = False
        self.kinds: list[tuple[int, Alternatives]] = []

    def expression(self, *, is_bracketed: bool = False) -> Alternatives:
        found, count = self._term()
        terms, is_either = [(count, found)], False
        while self.rest and self.rest[-1] in ("&", "|", ","):
            operator = self.rest.pop()
            more, count = self._term()
            terms.append((count, more))
            if operator == "|":
                is_either = True
                if ANY_NODE in (*found, *more):
                    raise Unplannable("its constraint has counted kinds of nodes beside a '|'")
                found = _both((*found, *more), (ANY_NODE,))
                self.is_same |= is_bracketed
            else:
                found = _both(found, more)
        if is_bracketed and not is_either and sum(count > 0 for count, _ in terms) > 1:
            self._count(terms)
            return (ANY_NODE,)
        return found

    def _count(self, terms: list[tuple[int, Alternatives]]) -> None:
        """The kinds of nodes that one pair of brackets counts."""
        if self.kinds:
            raise Unplannable("its constraint counts kinds of nodes in two pairs of brackets")
        if any(not count for count, _ in terms):
            raise Unplannable("its constraint counts some kinds of nodes and not the others")
        self.kinds = terms

    def _term(self) -> tuple[Alternatives, int]:
        token = self.rest.pop() if self.rest else ""
        if token == "(":
            found = self.expression()
            self._close(")")
        elif token == "[":
            found = self.expression(is_bracketed=True)
            self._close("]")
        elif token in ("", "&", "|", ",", ")", "]") or token.startswith(("*", "!")):
            raise Unplannable(
                f"its constraint has {token or 'nothing'!r} where a feature should be"
            )
        else:
            if not token.strip():
                raise Unplannable("its constraint has nothing where a feature should be")
            found = (frozenset({token.strip()}),)
        is_counted = bool(self.rest) and self.rest[-1].startswith("*")
        count = int(self.rest.pop()[1:]) if is_counted else 0
        if is_counted and not count:
            raise Unplannable("its constraint counts no node of a kind")
        return found, count

    def _close(self, mark: str) -> None:
        if not self.rest or self.rest.pop() != mark:
            raise Unplannable(f"its constraint lacks a {mark!r}")


def kinds_left(kinds: Sequence[NodeKind], kept: Sequence[tuple[str, ...]]) -> list[NodeKind]:
    """What is left to find of each kind beside nodes with the features `kept`.

    A node counts for one kind; one that few kinds could use is counted before the others.
    """
    left = [kind.nodes for kind in kinds]
    fits = [[satisfies(kind.constraint, features) for kind in kinds] for features in kept]
    for of_node in sorted(fits, key=sum):
        number = next((n for n, fitting in enumerate(of_node) if fitting and left[n]), None)
        if number is not None:
            left[number] -= 1
    return [
        NodeKind(count, kind.constraint) for count, kind in zip(left, kinds, strict=True) if count
    ]


def with_all_kinds(job: Job) -> Job:
    """The job on as many nodes as the kinds in its constraint count, if that is more."""
    try:
        needed = read_constraint(job.constraint).nodes
    except Unplannable:
        return job
    if needed <= job.nodes:
        return job
    wider = [spread for spread in job.spreads if spread.nodes <= needed]
    shape = wider[-1].shape if wider else job.shape
    return replace(job, nodes=needed, shape=shape, spreads=())
