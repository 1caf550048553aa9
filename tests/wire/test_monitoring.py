"""Prometheus in the cluster file: off unless it is asked for, and what cannot be meant is said."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems

EXISTING = {
    "existing.head": {
        "instance": "i-0123456789abcdef0",
        "host": "head.example.com",
        "role": "head",
        "security_group": "sg-0123456789abcdef0",
    },
    "existing.file_system": "fs-0123456789abcdef0",
    "existing.file_security_group": "sg-0123456789abcdef1",
    "existing.munge_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf",
    "network": {
        "vpc": "vpc-0123456789abcdef0",
        "subnets": {"us-east-1a": "subnet-0123456789abcdef0"},
    },
}


def test_without_a_word_there_is_no_prometheus(tmp_path: Path) -> None:
    assert not load(tmp_path, good()).monitoring.prometheus


def test_it_is_one_word_and_keeps_half_a_month(tmp_path: Path) -> None:
    found = load(tmp_path, good({"monitoring": {"prometheus": True}})).monitoring

    assert (found.prometheus, found.retention_days) == (True, 15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"monitoring": {"promtheus": True}}, "monitoring.promtheus"),
        ({"monitoring": {"prometheus": True, "retention_days": 0}}, "monitoring.retention_days"),
        ({"monitoring": {"prometheus": "soon"}}, "monitoring.prometheus"),
        ({"monitoring": True}, "monitoring"),
        (
            {**EXISTING, "monitoring.prometheus": True},
            "existing.head is not changed: scrape it with a Prometheus of your own",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    found = problems(tmp_path, good(change))

    assert len(found) == 1
    assert said in found[0]
