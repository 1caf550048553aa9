"""A node's stages that run again: after kills at any moment, and on a node that takes jobs.

node_world.py runs in namespaces and says what happened; the tests look at that.
"""

import json
from typing import Any

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")
KILLS = 50
# Which do something each time: they ask anew, or start what runs already.
EACH_TIME = {"gpu", "health", "health_watch", "spot", "orphan"}

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def killed() -> list[Seen]:
    found: list[Seen] = seen_in("boot.node_world", "kills", str(KILLS), timeout_s=600)
    return found


def test_a_boot_that_is_killed_at_any_moment_gets_ready_when_started_again(killed):
    for node in killed:
        assert node["is_ready"], node["console"]
        assert node["state"] == "IDLE+DYNAMIC_NORM"
        assert (node["munged"], node["slurmd"]) == ("1", "1")


def test_a_second_run_changes_nothing(killed):
    for node in killed:
        assert node["again"] == 0, node["console"][-2000:]
        assert not node["changed"]
        how = {row["stage"]: row["how"] for row in map(json.loads, node["stages"].splitlines())}
        assert {name for name, way in how.items() if way == "apply"} <= EACH_TIME


def test_a_second_run_that_fails_leaves_the_node_to_its_jobs(killed):
    for node in killed:
        assert node["failed"] == 1
        assert "stage health failed" in node["console"]
        assert node["stays"] == "IDLE+DYNAMIC_NORM"
