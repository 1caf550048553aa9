"""Slurm's constraint expressions; what 22.05 did with them is in docs/real-slurm.md."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.constraint import Constraint, Unplannable, read_constraint


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


@pytest.mark.parametrize("text", ["[a*2&b*2]", "[(a&x)*1&(b&x)*1]"])
def test_several_kinds_of_nodes_are_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(Unplannable, match=r"several kinds of nodes.*heterogeneous job"):
        read_constraint(text)


@pytest.mark.parametrize("text", ["&", "a&", "(a", "[a", "a)", "a]b", "*2", "!a", "a||b", "()"])
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
    assert bool(found.alternatives) == bool(text)
