"""The head's data volume, its replacement, and deployments that it takes up while it runs.

head_world.py runs in namespaces and says what happened; the tests look at that.
"""

import json
import re
from typing import Any

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

POWER_CUTS = 50

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.head_world", timeout_s=600)
    return found


@pytest.fixture(scope="module")
def cut_short() -> Seen:
    found: Seen = seen_in("boot.head_world", str(POWER_CUTS), timeout_s=600)
    return found


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ("data_in_front", "it holds data that blkid does not know"),
        ("data_at_the_end", "it holds data that blkid does not know"),
        ("partitioned", r"is not blank: DEVNAME=/dev/loop\d+ PTTYPE=dos"),
        ("swap", "is not blank"),
    ],
)
def test_a_volume_that_is_not_provably_blank_is_refused_and_left_as_it_is(seen, volume, words):
    assert re.search(words, seen["refused"][volume]["console"])
    assert seen["refused"][volume]["is_same"]


def test_a_volume_whose_formatting_was_cut_off_is_formatted_once_more(seen):
    assert seen["cut_off"] == {"is_mounted": True, "has_mark": False}


def test_the_volume_of_another_cluster_is_refused(seen):
    assert "belongs to another: cluster=other" in seen["wrong"]


def test_an_instance_store_that_comes_before_the_volume_is_left_alone(seen):
    assert seen["store_is_blank"]


def test_slurmctld_s_state_is_on_the_data_volume(seen):
    assert seen["mount"].split() == ["ext4", "rw,nosuid,nodev,noatime"]
    assert seen["state_dir"].endswith("= /srv/tidegate/slurmctld")


def test_a_new_head_with_the_same_volume_has_queue_jobs_and_nodes(seen):
    assert seen["is_another"]
    assert seen["waiting_after"] == "waits PENDING"
    assert seen["was_running"] == seen["job_after"] == "RUNNING"
    assert seen["nodes_after"] == [seen["node_id"]]


def test_a_new_head_with_the_same_volume_has_the_accounting(seen):
    job_id, state, user = seen["accounted"].split("|")

    assert (state, user) == ("RUNNING", "root")
    assert seen["accounted_before"] == seen["accounted"]
    assert job_id.isdigit()


def test_a_new_head_knows_the_people_of_the_one_before(seen):
    assert seen["alice"].splitlines() == [
        "alice:x:2001:2001::/shared/home/alice:/bin/bash",
        "alice vision",
        "!",
    ]
    assert seen["submits"] == 0


def number(said: str) -> int:
    """Which one somebody got."""
    found = re.search(r": number (\d+), home /shared/home/", said)
    assert found, said
    return int(found[1])


def test_people_are_made_known_once_and_for_all(seen):
    people, bob = seen["people"], number(seen["people"]["first"])

    assert people["first"] == (
        f"0 bob: number {bob}, home /shared/home/bob; nodes know bob in a minute"
    )
    assert people["again"] == people["first"]
    assert people["key"].splitlines() == ["600 bob /shared/home/bob/.ssh/authorized_keys", "1"]
    assert people["unended"] == f"{people['first']}2", "a line of its own"
    assert people["groups"] == "bob sound"
    assert people["association"] == "lab|bob"
    assert f"bob\t{bob}\tbob,sound\t/shared/home/bob\t1\t1" in people["listed"]


def test_who_has_jobs_stays_and_whose_home_stays_keeps_the_number(seen):
    people, bob = seen["people"], number(seen["people"]["first"])

    assert people["busy"] == "1 bob has 1 jobs; first: scancel -u bob"
    assert people["gone"].startswith("0 bob is gone, from nodes within a minute; /shared/home/bob")
    # The group that was made after bob has a number of its own, which no person gets either.
    assert (number(people["carol"]), number(people["back"])) == (bob + 2, bob)
    assert people["taken"] == (
        "1 /shared/home/dora is there and belongs to number 0: move it away first"
    )


def test_what_cannot_be_meant_of_people_is_refused_and_says_why(seen):
    assert [line.removeprefix("1 ") for line in seen["people"]["refused"].splitlines()] == [
        "Bob: a name begins with a small letter and has small letters, digits, - and _ alone",
        "root is a user of the system",
        "root is a user of the system (number 0)",
        "there is no user nobody-there",
        "this is no public key of SSH: no key",
        "there is no option --shell",
        "shadow is a group of the system",
        "add NAME, and a value for each option",
        "list takes no more words",
        "list, add NAME or remove NAME",
        "there is no account not-there; make it first: sacctmgr add account not-there",
    ]


def test_a_log_that_was_rotated_tells_on_in_a_new_file(seen):
    """The agent wakes on that file."""
    assert seen["rotated"] == {"is_told": True, "is_same": True}


def test_a_deployment_adds_a_partition_under_running_jobs(seen):
    assert seen["updates"]["more"] == ["cheap up", "gpu up", "more up"]
    assert seen["updates"]["job"] == "RUNNING"


def test_a_partition_goes_when_no_job_names_it_any_more(seen):
    assert seen["updates"]["less"] == ["cheap drain", "gpu up"]
    assert seen["updates"]["job_in_leaving"] == "RUNNING"
    assert seen["updates"]["refused"] != 0
    assert seen["updates"]["at_end"] == ["gpu up"]
    assert seen["updates"]["node"]


def test_a_partition_that_waits_to_go_restarts_nothing(seen):
    assert not seen["updates"]["restarts_again"]


def test_pyxis_comes_to_nodes_by_the_head_s_configuration(seen):
    assert seen["updates"]["plugins"] == (
        "optional /usr/lib/slurm/spank_pyxis.so importer=/usr/local/libexec/tidegate-import"
    )


def test_an_estimate_at_submit_may_be_switched_on_later(seen):
    """slurmctld does not start where its script comes later than the line that names it."""
    assert seen["updates"]["submit"] == "lua"
    assert seen["updates"]["advice"] == "a line"


def test_a_slurm_conf_that_slurmctld_refuses_is_taken_back(seen):
    assert seen["updates"]["said"]
    assert seen["updates"]["after_broken"]


def test_a_head_whose_plug_was_pulled_at_any_moment_is_ready_with_its_queue_when_it_boots(
    cut_short,
):
    """Nor does it ask a name service for its own name: the world has none that knows it."""
    assert cut_short["is_ready"], cut_short["console"]
    assert cut_short["running"] == ["1", "1"]
    assert cut_short["queue"] == "waits PENDING"


def test_a_second_run_of_the_head_s_stages_changes_nothing(cut_short):
    assert (cut_short["again"], cut_short["changed"]) == (0, [])
    how = {row["stage"]: row["how"] for row in map(json.loads, cut_short["stages"].splitlines())}
    assert set(how.values()) == {"skip"}


def test_accounting_may_be_switched_on_later(cut_short):
    later = cut_short["accounting_later"]

    assert later["is_told"], later
    assert later["queue"] == "waits PENDING"


def test_a_qos_that_a_new_partition_bears_is_made_before_slurmctld_reads_of_it(seen):
    assert seen["updates"]["qos"] == "QoS=team"


def test_a_hook_of_the_head_runs_once_and_again_only_when_it_changes(seen):
    assert seen["updates"]["hooks"] == ["one", "two"]
