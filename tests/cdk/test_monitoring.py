"""What Prometheus adds to head and nodes, and that nothing of it is there without it."""

from typing import Any

import pytest

from cdk.bootstrap import head_values, node_values, slurm_values
from local.boot.bundles import opened
from local.boot.values import AT as BUNDLE
from tests.cdk.made import Stack, joined
from tests.cdk.test_bootstrap import AGENT, AT, SHARED, cluster_file
from tests.cdk.variants import METRICS_ROLE, WORKSPACE, cluster_stack, stacks_of
from userdata.render import (
    HeadValues,
    NodeValues,
    head_bundle,
    head_parameter,
    node_user_data,
    slurm_conf,
)

ON = {"prometheus": True, "retention_days": 30}
AL2023 = {"al2023": {"url": "https://p.example.com/rpm", "key": "https://p.example.com/k.asc"}}
SLURM = {
    "version": "26.05",
    "repositories": {
        "ubuntu24.04": {"url": "https://p.example.com/slurm", "key": "https://p.example.com/k.asc"}
    },
}


def head(**changes: object) -> HeadValues:
    return head_values(cluster_file(**changes), SHARED, AGENT, "vol-1", agent_at=AT)


def node(**changes: object) -> NodeValues:
    file = cluster_file(**changes)
    return node_values(file, SHARED, file.cluster.pools[0])


def test_without_it_nothing_is_rendered() -> None:
    told = head_parameter(head(), BUNDLE) + node_user_data(node(), BUNDLE)

    files = opened(head_bundle(head()))
    assert not [name for name in files if name.startswith("files/") and "prom" in name]
    assert "files/tidegate.rules.yml" not in files
    for word in ("prometheus", "METRICS", "EXPORTERS", "REMOTE_WRITE"):
        assert word not in told


def test_the_head_gets_packages_configuration_rules_and_the_agent_s_folder() -> None:
    told = head_parameter(head(monitoring=ON), BUNDLE)
    files = opened(head_bundle(head(monitoring=ON)))

    assert "prometheus prometheus-node-exporter'" in told
    assert "METRICS_DAYS=30\n" in told
    assert 'TIDEGATE_METRICS_DIR="/run/tidegate/metrics"' in told
    assert "cluster: dev" in files["files/prometheus.yml"]
    assert "TidegateAgentSilent" in files["files/tidegate.rules.yml"]


@pytest.mark.parametrize(
    ("image", "installs"),
    [
        ("dlami", True),
        ("install", True),
        ("install-al2023", False),
        ("ami-0123456789abcdef0", False),
    ],
)
def test_nodes_install_the_exporter_where_their_system_has_a_package(
    image: str, installs: bool
) -> None:
    slurm = {"repositories": AL2023} if image == "install-al2023" else {}
    told = node_user_data(node(monitoring=ON, image=image, slurm=slurm), BUNDLE)

    software = {line.partition("=")[0]: line for line in told.splitlines()}
    assert ("prometheus-node-exporter" in software["PACKAGES"]) is installs
    assert "prometheus" not in software["PROGRAMS"], "a node is as good without it"
    assert "EXPORTERS=yes\n" in told


@pytest.mark.parametrize(
    ("slurm", "serves"),
    [
        (SLURM, True),
        ({"version": "23.11"}, False),
        (SLURM | {"settings": {"PrivateData": "jobs"}}, False),
    ],
)
def test_slurmctld_serves_metrics_where_its_release_can_and_nothing_is_private(
    slurm: dict[str, object], serves: bool
) -> None:
    file = cluster_file(monitoring=ON, slurm=slurm)

    said = "MetricsType=metrics/openmetrics" in slurm_conf(slurm_values(file))

    config = opened(head_bundle(head(monitoring=ON, slurm=slurm)))["files/prometheus.yml"]
    assert said is ("/metrics/jobs" in config) is serves


def test_a_release_that_serves_metrics_serves_none_without_prometheus() -> None:
    assert "MetricsType" not in slurm_conf(slurm_values(cluster_file(slurm=SLURM)))


def test_the_head_writes_to_the_workspace_of_the_file_and_to_no_other(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found = metrics_right(cluster_stack(stacks_of(tmp_path_factory, "metrics elsewhere")))

    assert found["Action"] == "aps:RemoteWrite"
    assert joined(found["Resource"]).endswith(":workspace/ws-0a1b2c3d-4e5f")
    assert ":aps:eu-west-1:" in joined(found["Resource"])


def test_another_account_s_workspace_is_written_to_by_its_role_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stacks = stacks_of(tmp_path_factory, "metrics of another account")
    found = metrics_right(cluster_stack(stacks))

    assert (found["Action"], found["Resource"]) == ("sts:AssumeRole", METRICS_ROLE)


def test_without_a_workspace_the_head_has_no_right_for_one(dev: Stack) -> None:
    assert not [each for each in rights_of_head(dev) if each["Sid"] == "Metrics"]


def test_the_relay_is_told_where_and_prometheus_writes_to_the_relay() -> None:
    on = ON | {"remote_write": {"url": WORKSPACE, "role": METRICS_ROLE}}
    told = head_parameter(head(monitoring=on), BUNDLE)
    config = opened(head_bundle(head(monitoring=on)))["files/prometheus.yml"]

    assert f"REMOTE_WRITE_URL={WORKSPACE}\n" in told
    assert "REMOTE_WRITE_REGION=eu-west-1\n" in told
    assert f"REMOTE_WRITE_ROLE={METRICS_ROLE}\n" in told
    assert "url: http://127.0.0.1:9091/\n" in config
    # Debian's and Ubuntu's Prometheus would sign nothing by it, and end without credentials.
    assert "sigv4:" not in config


def rights_of_head(stack: Stack) -> list[dict[str, Any]]:
    policy = stack.named("HeadRole", "AWS::IAM::Role")["Policies"][0]["PolicyDocument"]
    found: list[dict[str, Any]] = policy["Statement"]
    return found


def metrics_right(stack: Stack) -> dict[str, Any]:
    (found,) = [each for each in rights_of_head(stack) if each["Sid"] == "Metrics"]
    return found
