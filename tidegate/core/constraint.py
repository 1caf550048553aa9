"""Slurm's constraint expressions, rewritten so that each node can be judged by itself.

Slurm 22.05 reads `a|b&c` from left to right, as `(a|b)&c` (tried); counts and brackets speak
of the job as a whole. The result is a disjunction of conjunctions such as `a&c|b&c`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

# `a100*2&ib` over three groups of three alternatives gives 27; more was not meant.
MAX_ALTERNATIVES = 64

_TOKEN = re.compile(r"[&|,()\[\]]|\*[0-9]+|[^&|,()\[\]*]+")

type Alternatives = tuple[frozenset[str], ...]


class Unplannable(ValueError):
    """The expression is none, or asks for what one shape of nodes cannot be."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Features that nodes must have: all of one alternative, each a text like `a&b`.

    `is_same`: the nodes of a job must all meet the same alternative (`[a|b]`).
    """

    alternatives: tuple[str, ...] = ()
    is_same: bool = False

    def __str__(self) -> str:
        return "|".join(self.alternatives)


@lru_cache(maxsize=4_096)
def read_constraint(text: str) -> Constraint:
    """Errors: Unplannable. "" has no alternatives: every node will do.

    A feature that only some nodes must have (`a*2`) is asked of all: Slurm accepts that, and
    nodes of one launch are alike anyway.
    """
    if not text:
        return Constraint()
    reader = _Reader(_TOKEN.findall(text))
    found = reader.expression()
    if reader.rest:
        raise Unplannable(f"its constraint {text!r} does not end where it should")
    texts = dict.fromkeys("&".join(sorted(one)) for one in found)
    return Constraint(tuple(texts), reader.is_same and len(texts) > 1)


class _Reader:
    """Recursive descent; operators have no precedence, as in Slurm."""

    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens[::-1]
        self.is_same = False

    def expression(self, *, is_bracketed: bool = False) -> Alternatives:
        found, is_counted = self._term()
        num_counted = int(is_counted)
        while self.rest and self.rest[-1] in ("&", "|", ","):
            operator = self.rest.pop()
            more, is_counted = self._term()
            num_counted += is_counted
            if operator == "|":
                found = (*found, *more)
                self.is_same |= is_bracketed
            else:
                found = tuple(dict.fromkeys(one | other for one in found for other in more))
            if len(found) > MAX_ALTERNATIVES:
                raise Unplannable(f"its constraint has more than {MAX_ALTERNATIVES} alternatives")
            if is_bracketed and operator != "|" and num_counted > 1:
                raise Unplannable(
                    "its constraint asks for several kinds of nodes in one job; "
                    "a heterogeneous job (parts joined by ':') says the same"
                )
        return found

    def _term(self) -> tuple[Alternatives, bool]:
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
            found = (frozenset({token.strip()}),)
        is_counted = bool(self.rest) and self.rest[-1].startswith("*")
        if is_counted:
            self.rest.pop()
        return found, is_counted

    def _close(self, mark: str) -> None:
        if not self.rest or self.rest.pop() != mark:
            raise Unplannable(f"its constraint lacks a {mark!r}")
