"""The people of a cluster, as the head's command tells of them."""

from dataclasses import dataclass, field

import pytest

from tidegate.adapters.head_users import PROGRAM, HeadUsers, User
from tidegate.core.model.errors import Permanent


@dataclass
class Said:
    """A shell that says this, and remembers what it was asked."""

    text: str = ""
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, *argv: str) -> str:
        self.asked.append(argv)
        return self.text


def test_each_line_is_somebody() -> None:
    ada = "ada\t1000\tada,vision\t/shared/home/ada\t2\t3\n"
    shell = Said(f"{ada}bob\t1001\tbob\t/shared/home/bob\t0\t?\n")

    assert HeadUsers(shell).all() == (
        User("ada", 1000, ("ada", "vision"), "/shared/home/ada", keys=2, jobs=3),
        User("bob", 1001, ("bob",), "/shared/home/bob", keys=0, jobs=None),
    )
    assert shell.asked == [(PROGRAM, "list")]


def test_nobody_is_no_trouble() -> None:
    assert HeadUsers(Said("")).all() == ()


@pytest.mark.parametrize("text", ["ada", "ada\tx\tada\t/h\t0\t0", "ada\t1\tada\t/h\t?\t0"])
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(Permanent, match="said what is not understood"):
        HeadUsers(Said(text)).all()


def test_what_is_given_arrives_as_options() -> None:
    shell = Said("done\n")

    assert HeadUsers(shell).add("ada", keys=["k 1", "k 2"], groups=["g"], account="lab") == "done"
    assert HeadUsers(shell).add("bob") == HeadUsers(shell).remove("bob") == "done"
    assert [each[1:] for each in shell.asked] == [
        ("add", "ada", "--key", "k 1", "--key", "k 2", "--group", "g", "--account", "lab"),
        ("add", "bob"),
        ("remove", "bob"),
    ]
