"""Real systemd and real cloud-init: what the stand-in for systemctl cannot show.

systemd_world.py runs in namespaces and says what happened; the tests look at that.
"""

import re
from typing import Any

import pytest

from local.namespaces import can_enter
from tests.boot.systemd_world import LAYER
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}"),
    pytest.mark.skipif(
        not LAYER.exists(), reason=f"no {LAYER}: scripts/layer.sh cloud-init makes it"
    ),
]

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.systemd_world", timeout_s=600)
    return found


@pytest.mark.parametrize("role", ["head", "healthy"])
def test_user_data_that_cloud_init_runs_makes_a_machine_ready(seen, role):
    assert "ready after" in seen[role]["console"]
    assert seen[role]["cloud_init"] == "status: done"
    assert seen[role]["failed"] == ""


def test_a_node_that_is_ready_runs_what_it_should_and_no_longer_waits_to_be_ended(seen):
    assert seen["healthy"]["slurm"] == "IDLE+DYNAMIC_NORM"
    assert seen["healthy"]["running"] == "active\nactive\nactive\nactive"
    assert seen["healthy"]["timers"] == ""


def test_a_baked_image_starts_a_node_before_cloud_init_comes_to_it_and_once(seen):
    """Run a second time, user data would start the timer again that ends a node."""
    node = seen["early"]

    assert "ready after" in node["console"]
    assert node["slurm"] == "IDLE+DYNAMIC_NORM"
    assert (node["cloud_init"], node["failed"], node["timers"]) == ("status: done", "", "")
    early_us, cloud_final_us = map(int, node["order"].split())
    assert 0 < early_us < cloud_final_us


def test_jobs_may_register_memory_and_open_what_they_like(seen):
    assert seen["healthy"]["limits"].splitlines() == [
        "LimitMEMLOCK=infinity",
        "LimitNOFILE=131072",
        "LimitNPROC=infinity",
        "TasksMax=infinity",
    ]


@pytest.mark.parametrize("role", ["head", "healthy"])
def test_the_metadata_service_stays_closed_when_the_firewall_restarts(seen, role):
    assert (seen[role]["closed"], seen[role]["firewall"]) == ("closed", "closed")


def test_a_boot_that_is_killed_is_started_again(seen):
    assert "ready after" in seen["killed"]["console"]
    assert seen["killed"]["slurm"] == "IDLE+DYNAMIC_NORM"


def test_a_restart_of_the_boot_s_unit_leaves_the_shared_folder_its_proxy(seen):
    before, after = seen["proxy"]

    assert before
    assert after == before


def test_a_head_that_looks_for_a_deployment_and_finds_none_reads_no_unit_anew(seen):
    assert seen["reloads"] == 0


def test_a_head_takes_the_system_s_security_updates(seen):
    assert seen["upgrades"].strip() == "enabled"


def test_a_sick_node_powers_off(seen):
    assert "stage health failed (exit 78)" in seen["gpu_missing"]["console"]
    assert (seen["gpu_missing"]["alive"], seen["gpu_missing"]["slurm"]) == (False, "")


def test_a_node_that_hangs_is_ended_after_the_pool_s_bound(seen):
    assert "tidegate not ready after 8 s" in seen["hangs"]["console"]
    assert (seen["hangs"]["alive"], seen["hangs"]["slurm"]) == (False, "")


def test_a_node_whose_mig_mode_waits_for_a_reset_reboots_once_and_joins(seen):
    console = seen["mode_pending"]["console"]

    assert "stage mig reboots: the MIG mode of the GPUs waits for it" in console
    assert (console.count("ready after"), "failed" in console) == (1, False)
    assert seen["mode_pending"]["slurm"] == "IDLE+DYNAMIC_NORM"


def test_a_mount_that_hangs_is_cut_and_tried_again(seen):
    assert re.search(r"stage shared apply 3\d\.\d+ s, try 2", seen["efs_hung"]["console"])
    assert seen["efs_hung"]["slurm"] == "IDLE+DYNAMIC_NORM"


def test_a_node_whose_shutdown_hangs_is_off_all_the_same(seen):
    assert not seen["stuck"]["alive"]
    assert 3 <= seen["stuck"]["took_s"] < 30


@pytest.mark.parametrize("which", ["healthy", "early"])
def test_a_node_that_was_rebooted_boots_whole_again(seen, which):
    """Once, also where a baked image's unit and cloud-init could both do it."""
    node = seen[f"{which}_again"]

    assert node["boots"] == 2
    assert node["slurm"] == "IDLE+DYNAMIC_NORM"
    assert node["running"] == "active\nactive\nactive\nactive"
    assert (node["cloud_init"], node["failed"], node["timers"]) == ("status: done", "", "")


def test_slurm_reboots_a_node_and_opens_it_when_it_is_back(seen):
    assert seen["asked"]
    assert seen["healthy_again"]["slurm"] == "IDLE+DYNAMIC_NORM"


@pytest.mark.parametrize("which", ["healthy", "early", "head"])
def test_nothing_that_starts_with_the_machine_is_ahead_of_the_owner_rule(seen, which):
    assert seen[f"{which}_again"]["thief"] == ["closed"]
