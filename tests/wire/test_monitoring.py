"""Prometheus in the cluster file: off unless it is asked for, and what cannot be meant is said."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.wire.deployment import NEEDED_ENDPOINTS

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


URL = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
ROLE = "arn:aws:iam::210987654321:role/metrics"
NEEDED = NEEDED_ENDPOINTS


def written(
    url: str,
    *,
    role: str | None = None,
    prometheus: bool = True,
    endpoints: tuple[str, ...] = (),
) -> dict[str, object]:
    write = {"url": url} | ({"role": role} if role else {})
    found: dict[str, object] = {"monitoring": {"prometheus": prometheus, "remote_write": write}}
    return found | ({"network": {"endpoints": list(endpoints)}} if endpoints else {})


def test_a_workspace_is_known_by_its_url(tmp_path: Path) -> None:
    for change in (
        written(URL, endpoints=(*NEEDED, "aps-workspaces")),
        written(URL, role=ROLE, endpoints=(*NEEDED, "aps-workspaces", "sts")),
        {**written(URL.replace("east-1", "west-2")), "network": {"nat": "one"}},
    ):
        write = load(tmp_path, good(change)).monitoring.remote_write

        assert write
        assert write.workspace == "ws-0a1b2c3d"
        assert write.region in ("us-east-1", "us-west-2")


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
            written("https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1/api/v1/query"),
            "monitoring.remote_write.url",
        ),
        (written(URL.replace("us-east-1", "us-east-9")), "us-east-9 is no region of AWS"),
        (written(URL.replace("https", "http")), "must be a workspace's remote write URL"),
        (written("ws-0a1b2c3d"), "must be a workspace's remote write URL, https://aps-workspaces."),
        (written(URL, role="metrics"), "monitoring.remote_write.role"),
        (written(URL, prometheus=False), "needs monitoring.prometheus: true, whose metrics it"),
        (written(URL.replace("us-east-1", "us-gov-west-1")), "no role of us-east-1 is known in"),
        (written(URL, endpoints=NEEDED), "network.endpoints without NAT also aps-workspaces, by"),
        (
            written(URL, endpoints=(*NEEDED, "aps-workspaces"), role=ROLE),
            "network.endpoints without NAT also sts, by which metrics are written",
        ),
        (
            written(URL.replace("east-1", "west-2"), endpoints=(*NEEDED, "aps-workspaces")),
            "us-west-2 is not reached from us-east-1 by endpoints: set network.nat",
        ),
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
