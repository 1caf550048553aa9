"""A head that is stopped in the evening is itself again in the morning, and so is a node.

restart_world.py runs in namespaces and says what happened; the tests look at that.
"""

from typing import Any

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("e2e.restart_world", timeout_s=600)
    return found


@pytest.fixture(scope="module")
def night(seen: Seen) -> Seen:
    found: Seen = seen["night"]
    return found


def test_a_stopped_instance_has_no_processes_and_its_daemons_were_told(night):
    assert night["stopped"]
    assert night["state"] == "stopped"
    assert night["clean_end"]


def test_a_started_head_is_the_same_machine(night):
    assert night["same_machine"]
    assert night["after"]["ip"] == night["before"]["ip"]
    assert night["after"]["key"] == night["before"]["key"]


def test_a_pending_job_waits_over_night(night):
    assert night["before"]["job"] == "1 waits PENDING"
    assert night["after"]["job"] == "1 waits PENDING"


def test_slurmctld_starts_once_in_the_morning_and_behind_the_owner_rule(night):
    assert night["starts"] == ["behind"]
    assert night["after"]["owner_rule"] == night["before"]["owner_rule"]


def test_the_agent_reports_again(night):
    assert 0 < night["before"]["digest_start_s"] < night["evening_s"]
    assert night["after"]["digest_start_s"] > night["evening_s"]


def test_user_data_runs_once(night):
    assert "user data ran again" not in night["console"]


def test_what_an_administrator_changed_stays(night):
    assert night["slurm_conf"] == "# by the administrator"


@pytest.mark.parametrize("which", ["head", "node"])
def test_a_machine_acts_as_the_role_of_its_instance(seen, which):
    role = f"assumed-role/{which}-role/{seen[f'{which}_id']}"

    assert seen[f"{which}_role"] == f"arn:aws:sts::123456789012:{role}"


def test_a_node_finds_the_head_by_its_name_in_route_53(seen):
    assert seen["head_name"] == seen["night"]["after"]["ip"]
    assert seen["node_joined"] == "IDLE"


def test_a_head_that_powers_itself_off_is_stopped(seen):
    assert seen["state_after_poweroff"] == "stopped"


def test_a_node_that_comes_back_boots_whole_again(seen):
    """Its Slurm daemon is enabled by its package, and starts behind the owner rule all the same."""
    back = seen["again"]

    assert back["is_ready"], back["console"]
    assert back["starts"] == ["behind"]
    assert (back["timer"], back["job"]) == ("inactive", "games")
    assert back["state"].startswith("IDLE+DYNAMIC_NORM")
