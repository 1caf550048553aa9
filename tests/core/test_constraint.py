"""Slurm's constraint expressions; what 22.05 did with them is in docs/real-slurm.md."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.demand.constraint import Constraint, NodeKind, Unplannable, read_constraint


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("", []),
        ("a", ["a"]),
        ("a&b", ["a&b"]),
        ("a,b", ["a&b"]),
        ("a|b", ["a", "b"]),
        # Left to right: Slurm refused a job that only the other reading would have let in.
        ("a|b&c", ["a&c", "b&c"]),
        ("a&b|c", ["a&b", "c"]),
        ("a&b|c&d", ["a&b&d", "c&d"]),
        ("(a&b)|(c&d)", ["a&b", "c&d"]),
        ("(a|b)&c", ["a&c", "b&c"]),
        ("a*2&b", ["a&b"]),
        ("(a&b)*4", ["a&b"]),
        ("g5.xlarge&on-demand", ["g5.xlarge&on-demand"]),
    ],
)
def test_an_expression_is_alternatives_of_what_each_node_has(
    text: str, alternatives: list[str]
) -> None:
    assert read_constraint(text) == Constraint(tuple(alternatives))


@pytest.mark.parametrize("text", ["[a|b]", "[(a)|(b)]"])
def test_brackets_ask_the_same_of_all_nodes(text: str) -> None:
    assert read_constraint(text) == Constraint(("a", "b"), is_same=True)


@pytest.mark.parametrize(
    ("text", "kinds", "others"),
    [
        ("[a*2&b*4]", [(2, "a"), (4, "b")], []),
        ("[(a&x)*1&(b|c)*1]", [(1, "a&x"), (1, "b|c")], []),
        ("g&[a*1&b*1]", [(1, "a&g"), (1, "b&g")], ["g"]),
        ("[a*1&b*1]&(g|h)", [(1, "a&g|a&h"), (1, "b&g|b&h")], ["g", "h"]),
    ],
)
def test_brackets_count_several_kinds_of_nodes(
    text: str, kinds: list[tuple[int, str]], others: list[str]
) -> None:
    found = read_constraint(text)

    assert found == Constraint(tuple(others), kinds=tuple(NodeKind(*each) for each in kinds))
    assert found.nodes == sum(count for count, _ in kinds)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a*1&b]&[c*1&d*1]&[e*1&f*1]", "two pairs of brackets"),
        ("[a|b]&[c*1&d*1]", "two pairs of brackets"),
        ("[a*1&b*1]|c", "kinds of nodes beside a '|'"),
        ("[a*1&b*1&c]", "some kinds of nodes and not the others"),
        ("a*0", "counts no node of a kind"),
    ],
)
def test_counts_that_cannot_be_met_as_written_are_told(text: str, said: str) -> None:
    with pytest.raises(Unplannable, match=re.escape(said)):
        read_constraint(text)


@pytest.mark.parametrize(
    "text", ["&", "a&", "(a", "[a", "a)", "a]b", "*2", "!a", "a||b", "()", "a*1234567890"]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(Unplannable):
        read_constraint(text)


def test_an_expression_may_not_grow_without_bound() -> None:
    text = "&".join(f"(a{n}|b{n})" for n in range(20))

    with pytest.raises(Unplannable, match="more than 64"):
        read_constraint(text)


@given(st.text(alphabet="ab1&|,()[]*! ", max_size=20))
def test_any_text_is_a_constraint_or_refused(text: str) -> None:
    try:
        found = read_constraint(text)
    except Unplannable:
        return
    assert bool(found.alternatives or found.kinds) == bool(text)
