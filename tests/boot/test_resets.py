"""What a node does that Slurm is to reboot, where a reset of the GPUs may mend it.

reset_world.py runs in namespaces and says what happened; the tests look at that.
"""

import json
from typing import Any

import pytest

from local.namespaces import can_enter
from tests.boot.reset_world import CASES
from tests.worlds import seen_in
from tidegate.core.model.events import GpuReset
from tidegate.wire.events import parse_event

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]

FAILS = {
    "unknown_error": "nvidia-smi --gpu-reset: GPU 00000000:00:1E.0: Unknown Error",
    "hangs": "nvidia-smi --gpu-reset: nothing in 2 s",
    "useless": "stage health failed then: 1 uncorrected ECC errors",
    "memory_is_bad": "stage health failed then: dcgmi diag -r memory ended with 205",
}


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.reset_world", timeout_s=450)
    return found


def told(node: Seen) -> GpuReset:
    (event,) = [parse_event(json.dumps(each)) for each in node["told"]]
    assert isinstance(event, GpuReset)
    return event


def test_every_case_ends_one_way_or_the_other():
    assert CASES.keys() == {"works", "cut", "a_reboot_is_asked", *FAILS}


def test_a_node_whose_gpus_are_reset_takes_jobs_again_without_a_reboot(seen):
    node = seen["works"]

    assert node["drained"].endswith("(fatal; NVIDIA's remedy: reset, then a test)")
    assert (node["alive"], node["state"], node["job"]) == (True, "IDLE+DYNAMIC_NORM", "0")
    assert "ready after" in node["console"].split("the GPUs are being reset")[0]
    assert "the GPUs were reset in" in node["console"]


def test_whatever_has_the_gpus_open_is_stopped_before_and_runs_again_after(seen):
    """The stand-in refuses a reset else, as the real one does."""
    assert seen["works"]["active"].split() == ["active"] * 5


def test_gpus_are_reset_all_at_once_and_set_as_the_pool_asks_again(seen):
    calls = seen["works"]["smi"].splitlines()
    reset = calls.index("--gpu-reset")

    assert "-pm 0" in calls[:reset]
    assert [each for each in calls[reset:] if each.startswith("-p")] == ["-pm 1", "-pl 250"]
    assert seen["works"]["gpus"].splitlines()[-1] == "power.limit=250.00"


def test_what_the_log_said_before_the_reset_ends_no_later_boot_of_the_node(seen):
    assert seen["works"]["gate"] == "0"


def test_a_node_that_is_sick_right_after_it_is_drained_again(seen):
    """Also by the same Xid within the minute in which the watch says nothing twice."""
    assert "Xid 48" in seen["works"]["again"]


def test_the_service_hears_how_long_it_took(seen):
    event = told(seen["works"])

    assert event.failed == ""
    assert 0 < event.took_s < 60


@pytest.mark.parametrize(("name", "why"), FAILS.items())
def test_in_any_other_case_the_node_reboots_at_once_and_says_why(seen, name, why):
    node = seen[name]

    assert not node["alive"]
    assert node["state"] == "DOWN+DRAIN+DYNAMIC_NORM+REBOOT_ISSUED"
    assert f"a reset of the GPUs has not mended them: {why}" in node["console"]
    assert told(node).failed.startswith(why[:40])


@pytest.mark.parametrize("name", ["cut", "a_reboot_is_asked"])
def test_gpus_that_are_cut_or_need_more_are_not_reset(seen, name):
    assert not seen[name]["alive"]
    assert "reset" not in seen[name]["console"].partition("Slurm asks for a reboot")[2]
    assert seen[name]["told"] == []
