"""A change that is aimed at one place finds it by its shape, and says when the code has changed."""

import pytest

from bench.aimed import Aimed, Stale, always, becomes, drop, never

SOURCE = '''\
from x import LIMIT, Use, send


class Pool:
    def room(self, nodes, spot=False):
        """Says LIMIT."""
        left = self.most(
            nodes
        ) - self.used
        for each in nodes:
            if each.is_idle and not each.is_kept:
                left += 1
        send(left, Use.IDLE, why="room", at_s=0)
        return left if left < LIMIT else max(left, self.used)


def count(nodes):
    def inner(node):
        return node.gpus or node.cpus

    return sum(inner(each) for each in nodes if each.gpus >= LIMIT)
'''


def changed(aimed: Aimed, source: str = SOURCE) -> list[str]:
    """The lines that are not in the source."""
    after = aimed.change(source).of(source)
    assert compile(after, "after", "exec")
    return [line.strip() for line in after.splitlines() if line not in source.splitlines()]


@pytest.mark.parametrize(
    ("aimed", "line"),
    [
        (never("m:Pool.room", "_ < LIMIT"), "return left if False else max(left, self.used)"),
        (always("m:Pool.room", "not _.is_kept"), "if each.is_idle and True:"),
        (always("m:Pool.room", "_.is_idle and _"), "if True:"),
        (becomes("m:Pool.room", "_1 += 1", "_1 += 2"), "left += 2"),
        (becomes("m:Pool.room", "max(_1, _)", "_1"), "return left if left < LIMIT else left"),
        (becomes("m:Pool.room", "_1 if _1 < _ else _2", "_2"), "return (max(left, self.used))"),
        (drop("m:Pool.room", "send(...)"), "pass"),
        (drop("m:Pool.room", "send(_, Use.IDLE, ...)"), "pass"),
        (drop("m:Pool.room", "send(..., why='room')"), "pass"),
        (drop("m:Pool.room", "if _: _ += _"), "pass"),
        (becomes("m:Pool.room", "_1.most(_) - _", "_1.most(0)"), "left = (self.most(0))"),
        (becomes("m:count.inner", "_1 or _2", "_2 or _1"), "return (node.cpus or node.gpus)"),
        (never("m:count", "_ >= LIMIT"), "return sum(inner(each) for each in nodes if False)"),
        (
            becomes("m:count", "_ >= _1", "_0 or _1 > 2"),
            "return sum(inner(each) for each in nodes if (each.gpus >= LIMIT or LIMIT > 2))",
        ),
    ],
)
def test_what_is_like_the_pattern_becomes_something_else(aimed: Aimed, line: str) -> None:
    assert changed(aimed) == [line]


@pytest.mark.parametrize(("old", "new"), [("each", "node"), ("left", "rest"), ("nodes", "all_of")])
def test_no_renaming_of_a_variable_makes_a_change_stale(old: str, new: str) -> None:
    aimed = becomes("m:Pool.room", "_1 if _1 < LIMIT else max(_, _2)", "_2 + _1")

    assert changed(aimed, SOURCE.replace(old, new)) == [
        changed(aimed)[0].replace(old, new),
    ]


@pytest.mark.parametrize(
    ("aimed", "said"),
    [
        (drop("m:Pool.rooms", "send(...)"), "there is no rooms"),
        (drop("m:Pools.room", "send(...)"), "there is no Pools"),
        (drop("m:count", "send(...)"), "0 places are like that"),
        (drop("m:Pool.room", "send(_, Use.DOWN, ...)"), "0 places are like that"),
        (drop("m:Pool.room", "send(..., because=_)"), "0 places are like that"),
        (becomes("m:Pool.room", "_1 < _1", "True"), "0 places are like that"),
        (becomes("m:Pool.room", "_.used", "0"), "2 places are like that"),
        (never("m:Pool.room", "left < _"), "its module has no left"),
        (becomes("m:Pool.room", "_ < LIMIT", "left"), "its module has no left"),
        (becomes("m:Pool.room", "_ < LIMIT", "_1"), "nothing was found as _1"),
        (becomes("m:Pool.room", "_ < LIMIT", "_"), "nothing was found as _"),
    ],
)
def test_a_change_whose_place_is_gone_or_not_the_only_one_says_so(aimed: Aimed, said: str) -> None:
    with pytest.raises(Stale, match=said):
        aimed.change(SOURCE)
