"""The stack and the functions agree on the environment."""

import pytest

from tidegate.core.model.errors import BadConfig
from tidegate.wire.settings import FunctionSettings, environment

NAMES = {
    "cluster_bucket": "assets",
    "cluster_key": "abc.yaml",
    "table": "ledger",
    "bucket": "digests",
    "bus": "tidegate-dev",
    "look_queue_url": "https://sqs/look.fifo",
    "dead_look_queue_url": "https://sqs/dead.fifo",
    "urgent_queue_url": "https://sqs/urgent",
    "routine_queue_url": "https://sqs/routine",
}


def made() -> dict[str, str]:
    return environment(
        templates={"pool-0": ("lt-0123456789abcdef0", "3", "0a1b2c3d-3")},
        subnets={"us-east-1a": "subnet-1"},
        placement_groups={"pool-0/us-east-1a": "group-1"},
        **NAMES,
    )


def test_what_the_stack_writes_the_function_reads():
    settings = FunctionSettings.from_environment({**made(), "PATH": "/usr/bin"})

    assert settings.templates == {"pool-0": ("lt-0123456789abcdef0", "3", "0a1b2c3d-3")}
    assert settings.subnets == {"us-east-1a": "subnet-1"}
    assert settings.placement_groups == {"pool-0/us-east-1a": "group-1"}
    assert {name: getattr(settings, name) for name in NAMES} == NAMES


def test_all_problems_are_told_at_once():
    wrong = made() | {"TIDEGATE_TABLE": "", "TIDEGATE_SUBNETS": "{"}
    del wrong["TIDEGATE_BUS"]

    with pytest.raises(BadConfig) as caught:
        FunctionSettings.from_environment(wrong)

    for name in ("TIDEGATE_TABLE", "TIDEGATE_SUBNETS", "TIDEGATE_BUS"):
        assert name in str(caught.value)


def test_no_letter_is_spent_on_white_space():
    """Lambda takes 4096 bytes of all variables."""
    assert made()["TIDEGATE_SUBNETS"] == '{"us-east-1a":"subnet-1"}'
