"""The head's agent comes from an archive in S3, whatever its image has.

agent_world.py runs in namespaces and says what happened; the tests look at that.
"""

from pathlib import Path
from typing import Any

import pytest

from cdk.agent_package import agent_package
from local.namespaces import can_enter
from tests.worlds import seen_in

ROOT = Path(__file__).parents[2]
WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.agent_world", str(agent_package(ROOT)), timeout_s=600)
    return found


def test_the_agent_of_the_archive_runs_with_the_archive_s_packages_and_reports(seen):
    (folder,) = seen["first"]["folders"]
    command, library = seen["first"]["agent"]

    assert command.split()[-2:] == ["-s", f"/opt/tidegate/agent/{folder}"]
    assert library.startswith(f"/opt/tidegate/agent/{folder}/cp313-")
    assert seen["first_s"] > 0


def test_a_deployment_with_another_agent_takes_its_place(seen):
    (folder,) = seen["second"]["folders"]

    assert [folder] != seen["first"]["folders"]
    assert seen["second"]["agent"][0].endswith(f"/opt/tidegate/agent/{folder} ")
    assert seen["second_s"] > 0


def test_an_archive_that_is_not_as_told_is_not_unpacked_and_the_agent_before_goes_on(seen):
    assert "stage agent_code failed (exit 78)" in seen["console"]
    assert "does not have its hash" in seen["console"]
    assert seen["tampered"] == seen["second"]


@pytest.fixture
def scraped(seen: Seen) -> Seen:
    if seen["scraped"] is None:
        pytest.skip(
            "real path: Debian's packages prometheus and prometheus-node-exporter are absent"
        )
    found: Seen = seen["scraped"]
    return found


def test_prometheus_of_the_head_scrapes_what_the_agent_wrote(scraped):
    agent = scraped["agent"]

    assert agent["tidegate_agent_slurm_up head"] == 1, scraped["log"]
    assert agent["tidegate_agent_digests_total sent head"] >= 1
    assert agent["tidegate_slurm_jobs pending head"] == 0
    assert scraped["up"] == {"up head": 1, "up prometheus": 1}
    assert scraped["disk"]
    assert scraped["alerts"] >= 17


def test_what_watches_the_head_is_heard_on_the_head_alone(scraped):
    """Jobs on nodes reach every port of the head, by its security group."""
    ours = [each for each in scraped["listens"] if each.endswith((":9090", ":9091", ":9100"))]

    assert sorted(ours) == ["127.0.0.1:9090", "127.0.0.1:9091", "127.0.0.1:9100"]
    assert scraped["mode"].splitlines() == ["slurm 644", "slurm 644"]


def test_what_signs_for_prometheus_is_the_agent_s_user_and_its_secret_no_one_else_s(scraped):
    assert scraped["relay"] == ["slurm"]
    assert scraped["secret"].split() == ["prometheus", "slurm", "440"]
    assert "Metrics do not reach the workspace, and are tried again" in scraped["relay_says"]


def test_a_deployment_without_prometheus_stops_it(seen, scraped):
    assert seen["daemons_after"] == []
    assert seen["secret_after"].split() == []
