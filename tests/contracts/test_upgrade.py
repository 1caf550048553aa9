"""Slurm is upgraded on the head: the state directory goes from release to release.

`scripts/contracts.sh` makes the trees and names them from the oldest to the newest, `/` for this
machine's own Slurm; without them nothing of this runs.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from local.slurm.daemons import RealSlurm, why_not_here
from local.waiting import eventually
from tests.contracts.test_releases import is_heard, version_of

TREES = [each.rstrip("/") for each in os.environ.get("TIDEGATE_UPGRADE_TREES", "").split()]
WHY_NOT = why_not_here() or (
    "" if len(TREES) > 1 else "needs the trees that scripts/contracts.sh names"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
# slurmctld saves what has changed within five seconds.
SAVED_S = 7.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="upgrade-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made) / "slurm"


def seen(slurm: RealSlurm) -> tuple[list[str], list[str]]:
    """Ids and names of jobs, and dynamic nodes."""
    asked = [*slurm.prefix, "squeue", "-h", "-o", "%i %j"]

    def shown() -> list[str]:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        return sorted(done.stdout.splitlines())

    jobs = eventually("the queue is shown", shown)
    return jobs, [node.name for node in slurm.port.read().nodes]


def filled(folder: Path) -> tuple[tuple[int, int], tuple[list[str], list[str]]]:
    """A cluster of the oldest Slurm: a job that runs, two that wait, one of them held."""
    with RealSlurm(folder, tree=TREES[0]) as slurm:
        slurm.join("n1")
        running = slurm.submit("-J", "runs", "--gres=gpu:t4:1")
        slurm.submit("-J", "waits", "--gres=gpu:a10g:4")
        slurm.submit("-J", "held", "--hold", "--gres=gpu:t4:1")
        eventually("it runs", lambda: slurm.state(running) == "RUNNING")
        before = slurm.release, seen(slurm)
        slurm.pause(SAVED_S)
    return before


def test_queue_job_ids_and_nodes_come_along_over_every_release(folder):
    was, before = filled(folder)

    releases, (jobs, nodes) = [was], before
    for tree in TREES[1:]:
        with RealSlurm(folder, tree=tree) as slurm:
            releases.append(slurm.release)
            assert seen(slurm) == (jobs, nodes)
            later = slurm.submit("-J", "later", "--hold")
            assert int(later) > max(int(each.split()[0]) for each in jobs)
            jobs = [*jobs, f"{later} later"]
            slurm.pause(SAVED_S)

    assert releases == sorted(set(releases))
    assert len(releases) == len(TREES)


def too_new() -> list[str]:
    """Trees that cannot take up the state of the oldest one."""
    of = {tree: version_of(tree or "/")[:5] for tree in TREES}
    return [tree for tree in TREES if not is_heard(of[tree], of[TREES[0]])]


def test_a_release_that_is_too_new_refuses_the_state_and_the_old_one_can_go_on(folder):
    if not (newer := too_new()):
        pytest.skip("needs a release that is too new for the oldest")
    _, before = filled(folder)

    # It ends before or after it has become a daemon.
    with suppress(AssertionError), RealSlurm(folder, tree=newer[0]) as slurm:
        eventually("it is down", lambda: "is DOWN" in slurm.run("scontrol", "ping"))
    assert "incompatible version" in (folder / "log" / "slurmctld.log").read_text()

    # But it has noted an id of its own: the old one takes the state for another cluster's.
    (folder / "state" / "clustername").unlink()
    with RealSlurm(folder, tree=TREES[0]) as slurm:
        assert seen(slurm) == before
