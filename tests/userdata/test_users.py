"""Users in the node's own files, where the system has no library for others' (Amazon Linux)."""

import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "users.sh"
ROOT = "root:x:0:0:root:/root:/bin/bash"
OWN = "ec2-user:x:1000:1000::/home/ec2-user:/bin/bash"
ADA = "ada:x:1001:1001::/shared/home/ada:/bin/bash"
BOB = "bob:x:1002:1002::/shared/home/bob:/bin/bash"


class Node:
    """The node's files, and those that the head publishes, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.etc, self.published = folder / "etc", folder / "published"
        for each in (self.etc, self.published, folder / "var"):
            each.mkdir()
        (self.etc / "passwd").write_text(f"{ROOT}\n{OWN}\n")
        (self.etc / "group").write_text("root:x:0:\n")
        (self.published / "group").write_text("ada:x:1001:\n")
        script = subprocess.run(
            ["bash", "-c", f"source {STAGE}; prolog_of_files"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        script = script.replace("/etc/", f"{self.etc}/")
        script = script.replace("/var/lib/tidegate-users", str(folder / "var"))
        self.script = f"published={self.published}\n{script}"

    def users_after(self, *published: str) -> list[str]:
        """Its lines after a Prolog that found these."""
        (self.published / "passwd").write_text("".join(f"{line}\n" for line in published))
        subprocess.run(["bash", "-c", self.script], check=True)
        return (self.etc / "passwd").read_text().splitlines()


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_published_users_come_after_the_node_s_own(node):
    assert node.users_after(ADA, BOB) == [ROOT, OWN, ADA, BOB]
    assert (node.etc / "group").read_text() == "root:x:0:\nada:x:1001:\n"
    assert (node.etc / "passwd").stat().st_mode & 0o777 == 0o644


def test_a_user_who_is_gone_goes_and_one_who_changed_changes(node):
    node.users_after(ADA, BOB)

    moved = ADA.replace("/shared/home", "/elsewhere")

    assert node.users_after(moved) == [ROOT, OWN, moved]


def test_a_second_run_changes_nothing(node):
    assert node.users_after(ADA) == node.users_after(ADA) == [ROOT, OWN, ADA]


@pytest.mark.parametrize(
    "line",
    [
        "root:x:4711:4711::/:/bin/bash",  # the name of one of the node's
        "eve:x:1000:1000::/:/bin/bash",  # the number of one of the node's
        "eve:x:0:0::/:/bin/bash",
        "eve:x:64030:1::/:/bin/bash",
    ],
)
def test_nobody_becomes_one_of_the_node_s_own_users(node, line):
    assert node.users_after(ADA, line) == [ROOT, OWN, ADA]


def test_a_shared_folder_that_is_away_takes_nobody_away(node):
    node.users_after(ADA)
    (node.published / "passwd").unlink()

    subprocess.run(["bash", "-c", node.script], check=True)

    assert (node.etc / "passwd").read_text().splitlines() == [ROOT, OWN, ADA]
    assert sorted(each.name for each in node.etc.iterdir()) == ["group", "passwd"]
