"""Users in the node's own files (Amazon Linux), and those that a new head takes over."""

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


def test_prologs_of_jobs_that_start_together_keep_nobody_who_is_gone(node, tmp_path):
    """The second comes when the first has put the list in its place, and not the file yet."""
    node.users_after(ADA, BOB)
    (node.published / "passwd").write_text(f"{ADA}\n")
    slow = tmp_path / "bin" / "mv"
    slow.parent.mkdir()
    slow.write_text('#!/bin/sh\n/bin/mv "$@"; [ "$2" != passwd ] || sleep 0.2\n')
    slow.chmod(0o755)
    env = {"PATH": f"{slow.parent}:/usr/bin:/bin"}

    running: list[subprocess.Popen[bytes]] = []
    for _ in range(2):
        running.append(
            subprocess.Popen(["bash", "-c", f"sleep 0.0{len(running)}; {node.script}"], env=env)
        )
    codes = [each.wait() for each in running]

    assert codes == [0, 0]
    assert (node.etc / "passwd").read_text().splitlines() == [ROOT, OWN, ADA]


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


# -- a new head ----------------------------------------------------------------------------

# What the stage asks of the machine, on files of the test's.
MACHINE = """
getent() { grep -E "^($2:|[^:]*:[^:]*:$2(:|$))" $1; }
id() { grep -q "^$1:" passwd; }
groupadd() { echo "$3:x:$2:" >>group; }
useradd() {
    [[ ${@: -1} != *.* || $1 == --badname ]] || return 19
    [[ $1 != --badname ]] || shift
    echo "$8:x:$3:$5:$7" >>added
    printf '%s ' "$@" >>added; echo >>added
    local name=${@: -1}
    echo "$name:x:$3:$5::/:/bin/sh" >>passwd
}
gpasswd() { echo "$2 in $3" >>members; }
console() { echo "$*" >>console; }
"""


def taken_over(folder, passwd, group, *, mode=0o644, again=False):
    """The files of a head whose image has an `ubuntu`, after the stage."""
    published = folder / "shared" / ".tidegate" / "users"
    published.mkdir(parents=True, exist_ok=True)
    for name, text in (("passwd", passwd), ("group", group)):
        (published / name).write_text(text)
        (published / name).chmod(mode)
    if not again:
        (folder / "passwd").write_text(f"{ROOT}\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        (folder / "group").write_text("root:x:0:\nsudo:x:27:\nubuntu:x:1000:\n")
    for name in ("added", "members", "console"):
        (folder / name).write_text("")
    stage = (STAGE.parents[1] / "head" / "users.sh").read_text()
    stage = stage.replace("/etc/tidegate/", f"{folder}/")
    script = f"cd {folder}; SHARED_DIR={folder}/shared AGENT_USER=root\n{MACHINE}\n{stage}\n"
    subprocess.run(["bash", "-euc", f"{script}\ncheck || apply"], check=True)
    return {
        name: (folder / name).read_text().splitlines()
        for name in ("passwd", "group", "members", "console")
    }


def names(lines):
    return [line.split(":")[0] for line in lines]


def test_a_new_head_takes_over_people_groups_and_who_is_in_them(tmp_path):
    head = taken_over(tmp_path, f"{ADA}\n{BOB}\n", "ada:x:1001:\nml:x:2000:ada,bob,gone\n")

    assert names(head["passwd"]) == ["root", "ubuntu", "ada", "bob"]
    assert names(head["group"]) == ["root", "sudo", "ubuntu", "ada", "ml"]
    assert head["members"] == ["ada in ml", "bob in ml"]
    assert head["console"] == []


def test_it_does_so_once_in_its_life(tmp_path):
    taken_over(tmp_path, f"{ADA}\n", "ada:x:1001:\n")

    head = taken_over(tmp_path, f"{ADA}\n{BOB}\n", "ada:x:1001:\n", again=True)

    assert names(head["passwd"]) == ["root", "ubuntu", "ada"]


@pytest.mark.parametrize(
    "line",
    [
        "root2:x:0:0::/:/bin/sh",
        "-o:x:1003:1003::/:/bin/sh",
        "x y:x:1003:1003::/:/bin/sh",
        "daemon2:x:0999:1003::/:/bin/sh",
        "late:x:60000:1003::/:/bin/sh",
        "minus:x:-1:1003::/:/bin/sh",
        "a[$(reboot)]:x:1003:1003::/:/bin/sh",
        "sum:x:1000+3:1003::/:/bin/sh",
        "::::::",
        "",
    ],
)
def test_nobody_but_people_is_taken_over(tmp_path, line):
    head = taken_over(tmp_path, f"{line}\n{ADA}\n", "sudo:x:27:ada\nada:x:1001:\n")

    assert names(head["passwd"]) == ["root", "ubuntu", "ada"]
    assert head["members"] == []


def test_a_number_that_another_has_is_told(tmp_path):
    head = taken_over(tmp_path, "eve:x:1000:1000::/:/bin/sh\n", "eve:x:1000:\n")

    assert names(head["passwd"]) == ["root", "ubuntu"]
    assert (
        head["console"]
        == ["users: eve of the head before is not known here: 1000 is the number of another"] * 2
    )


def test_names_of_a_directory_service_are_taken_over(tmp_path):
    head = taken_over(tmp_path, "ada.l:x:1003:1003::/:/bin/sh\n", "ada.l:x:1003:\n")

    assert names(head["passwd"]) == ["root", "ubuntu", "ada.l"]


def test_what_others_could_have_written_is_not_believed(tmp_path):
    head = taken_over(tmp_path, f"{ADA}\n", "ada:x:1001:\n", mode=0o666)

    assert names(head["passwd"]) == ["root", "ubuntu"]
    assert "nobody is taken over" in head["console"][0]
