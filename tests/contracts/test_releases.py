"""Nodes whose Slurm is older or newer than the head's, each pair of releases with real daemons.

`scripts/contracts.sh` makes the trees and names them, `/` for this machine's own Slurm; without
them nothing of this runs.
"""

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from local.slurm.daemons import RealSlurm, why_not_here
from local.waiting import eventually

TREES = os.environ.get("TIDEGATE_RELEASE_TREES", "").split()
WHY_NOT = why_not_here() or (
    "" if len(TREES) > 1 else "needs the trees that scripts/contracts.sh names"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
SCRIPT = Path(__file__).with_name("other_release.sh")
STAGE = Path(__file__).parents[2] / "userdata" / "node" / "slurmd.sh"
RELEASES = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05")
INSIDE = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child=SIGKILL")


def is_heard(head: str, own: str) -> bool:
    """Whether slurmctld and slurmd of these releases speak with each other.

    Source: slurm.schedmd.com/upgrades.html, "Compatibility Window".
    """
    behind = RELEASES.index(head) - RELEASES.index(own)
    return 0 <= behind <= (3 if head >= "24.11" else 2)


def version_of(tree: str) -> str:
    """As 24.11.5."""
    said = subprocess.run(
        ["chroot", tree, "slurmd", "-V"], capture_output=True, text=True, check=True
    )
    return said.stdout.split()[1]


@contextmanager
def node(slurm: RealSlurm, tree: str) -> Iterator[subprocess.Popen[str]]:
    """A node of this tree, that the stage lets into the head's Slurm or not."""
    key = slurm.run("base64", "-w0", "/run/munge.key")
    (slurm.folder / "munge.key").write_bytes(base64.b64decode(key))
    for source, name in ((SCRIPT, SCRIPT.name), (STAGE, "stage.sh")):
        shutil.copy(source, slurm.folder / name)
    (slurm.folder / ".tidegate").mkdir()
    version = slurm.run("slurmctld", "-V").split()[1]
    (slurm.folder / ".tidegate" / "slurm.version").write_text(f"{version}\n")
    network = slurm.prefix[:4]
    argv = [*network, *INSIDE, "bash", str(SCRIPT), tree, str(slurm.folder), "other"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        yield running
        running.kill()


def fate(running: subprocess.Popen[str]) -> str:
    """Up to the word that tells it."""
    assert running.stdout
    said = ""
    for line in running.stdout:
        said += line
        if line.startswith(("refused", "joined")):
            break
    return said


@pytest.mark.parametrize(("head", "own"), list(permutations(TREES, 2)))
def test_a_node_that_the_head_cannot_understand_ends_at_once_any_other_joins(head, own):
    releases = [version_of(tree).rpartition(".")[0] for tree in (head, own)]

    with (
        TemporaryDirectory(prefix="tg", dir="/tmp", ignore_cleanup_errors=True) as folder,
        RealSlurm(Path(folder), tree=head.rstrip("/")) as slurm,
        node(slurm, own) as running,
    ):
        said = fate(running)

        if is_heard(*releases):
            assert said.endswith("joined\n")
            assert eventually("it is there", lambda: "IDLE" in slurm.node_words("other"))
        else:
            assert f"does not understand slurmd {version_of(own)}" in said
            assert slurm.node_words("other") == frozenset()
