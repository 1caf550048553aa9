"""The program that dumps accounting and loads it: what it refuses, and what stays then."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "userdata" / "head" / "tidegate-accounting.sh"
OLD, NEW = "-- the dump before\n", "-- the dump now\n"

# Stand in for MariaDB's clients: what they were asked stands in `asked`.
CLIENT = """#!/bin/bash
echo "mariadb $*" >>"$STUBS/asked"
[[ $* == -e* ]] || cat >>"$STUBS/loaded"
[[ ! -e $STUBS/is-empty || $* != *cluster_table* ]]
"""
DUMPER = """#!/bin/bash
printf -- '-- the dump now\\n'
[[ ! -e $STUBS/cannot-dump ]]
"""


class Head:
    """Its files, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("mariadb", CLIENT), ("mariadb-dump", DUMPER)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        (folder / "boot.env").write_text(f"SHARED_DIR={folder}/shared\n")
        script = PROGRAM.read_text().replace("/dev/console", f"{folder}/console")
        self.script = script.replace("/etc/tidegate/", f"{folder}/")
        self.dump = folder / "shared" / ".tidegate" / "accounting" / "slurm_acct_db.sql.gz"
        self.dump.parent.mkdir(parents=True)
        self.dump.parent.chmod(0o700)

    def has_dump(self) -> None:
        self.dump.write_bytes(gzip.compress(OLD.encode()))
        self.dump.chmod(0o600)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", self.script, "tidegate-accounting", *words],
            env={**os.environ, "STUBS": str(self.folder), "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def said(self, name: str) -> str:
        file = self.folder / name
        return file.read_text() if file.exists() else ""

    def dumps(self) -> dict[str, str]:
        found = self.dump.parent.glob("*.gz*")
        return {each.name: gzip.decompress(each.read_bytes()).decode() for each in found}


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path)


def mark(head: Head, name: str) -> None:
    (head.folder / name).touch()


def test_the_first_dump_of_a_head_keeps_what_the_one_before_left(head):
    head.has_dump()

    assert head.run("dump").returncode == 0
    assert head.run("dump").returncode == 0

    assert head.dumps() == {"slurm_acct_db.sql.gz": NEW, "slurm_acct_db.sql.gz.before": OLD}
    assert "dumped, " in head.said("console")


@pytest.mark.parametrize("trouble", ["cannot-dump", "is-empty"])
def test_a_dump_that_cannot_be_made_takes_nobodys_place(head, trouble):
    head.has_dump()
    mark(head, trouble)

    assert head.run("dump").returncode == 1

    assert head.dumps()["slurm_acct_db.sql.gz"] == OLD
    assert "stays" in head.said("console")


def test_nothing_to_load_is_no_trouble_and_asks_nothing(head):
    assert head.run("load").returncode == 0
    assert head.said("asked") == ""


def test_a_dump_is_loaded_in_place_of_what_there_is(head):
    head.has_dump()

    assert head.run("load").returncode == 0

    assert head.said("loaded") == OLD
    assert head.said("asked").splitlines()[0] == (
        "mariadb -e DROP DATABASE IF EXISTS slurm_acct_db; CREATE DATABASE slurm_acct_db"
    )
    assert "loaded from the dump of 20" in head.said("console")


@pytest.mark.parametrize(("part", "mode"), [("file", 0o602), ("file", 0o620), ("folder", 0o777)])
def test_what_others_may_have_written_is_not_loaded(head, part, mode):
    """A line of it may be a command of the client, which runs it as root."""
    head.has_dump()
    (head.dump if part == "file" else head.dump.parent).chmod(mode)

    assert head.run("load").returncode == 1

    assert head.said("asked") == ""
    assert "others than root" in head.said("console")


def test_half_a_dump_is_not_taken_for_a_whole_one(head):
    head.has_dump()
    head.dump.write_bytes(head.dump.read_bytes()[:-4])
    head.dump.chmod(0o600)

    assert head.run("load").returncode == 1

    assert "cannot be loaded" in head.said("console")


def test_other_words_are_refused(head):
    done = head.run("restore")

    assert (done.returncode, done.stderr) == (2, "usage: tidegate-accounting dump | load\n")
