"""People work on login nodes: real sshd and PAM let them in, real Slurm runs what they send.

login_world.py runs in namespaces and says what happened; the tests look at that.
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
    found: Seen = seen_in("boot.login_world", timeout_s=300)
    return found


def test_a_person_of_the_head_logs_in_with_a_key_soon_after_being_published(seen: Seen) -> None:
    assert "Permission denied" in seen["unpublished"]
    assert seen["id"].split() == ["ada", "/shared/home/ada"]
    assert seen["known_s"] < 5
    assert "Permission denied" in seen["gone"]


def test_jobs_are_sent_from_there_and_srun_hears_its_node(seen: Seen) -> None:
    assert seen["batch"].split() == ["1", seen["node"], "/shared/home/ada"]
    assert seen["srun"] == seen["node"]
    assert seen["why"].splitlines() == ["function", "Slurmctld(primary) at head is UP"]


def test_people_have_no_way_to_the_rights_of_the_machine(seen: Seen) -> None:
    assert seen["imds"] == {"root": True, "ada": False}
    assert seen["files"] == {"root": True, "ada": False}
    assert "Permission denied" in seen["key"]
    assert "uid=0" not in seen["sudo"]


def test_no_daemon_of_slurms_runs_there_and_nobody_gets_all_its_memory(seen: Seen) -> None:
    assert seen["daemons"] == ""
    assert "MemoryMax=75%" in seen["slice"]


def test_the_sites_own_script_runs(seen: Seen) -> None:
    assert seen["hook"] == "hook"


def test_a_deployment_reaches_one_that_runs(seen: Seen) -> None:
    assert seen["deployed"] == "MaxArraySize=77"
