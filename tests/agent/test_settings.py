"""All problems of the agent's environment are shown at once."""

from pathlib import Path

import pytest

from tidegate.agent.settings import Settings
from tidegate.core.model.errors import BadConfig

GOOD = {
    "TIDEGATE_CLUSTER": "dev",
    "TIDEGATE_BUCKET": "tidegate-dev",
    "TIDEGATE_BUS": "tidegate-dev",
    "TIDEGATE_URGENT_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/urgent",
    "TIDEGATE_ROUTINE_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/routine",
    "TIDEGATE_SHARED_DIR": "/shared",
    "TIDEGATE_SLURMCTLD_LOG": "/var/log/slurm/slurmctld.log",
}


def test_a_good_environment_is_read():
    settings = Settings.from_environment(GOOD | {"PATH": "/bin", "TIDEGATE_OTHER": "x"})

    assert (settings.cluster, settings.shared_dir) == ("dev", Path("/shared"))
    assert (settings.look_queue_url, settings.head_instance_id) == (None, None)


def test_every_problem_is_named_at_once():
    bad = GOOD | {"TIDEGATE_CLUSTER": "", "TIDEGATE_URGENT_QUEUE_URL": "sqs", "TIDEGATE_BUS": "a b"}

    with pytest.raises(BadConfig) as error:
        Settings.from_environment(bad)

    lines = str(error.value).splitlines()
    assert lines[0] == "agent environment: 3 problems"
    for name in ("TIDEGATE_CLUSTER", "TIDEGATE_BUS", "TIDEGATE_URGENT_QUEUE_URL"):
        assert sum(name in line for line in lines) == 1
