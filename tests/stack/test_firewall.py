"""The security groups of the template, between machines: who reaches whom, and who does not."""

from itertools import permutations
from typing import Any

import pytest

from local.namespaces import can_enter
from tests.assemblies import assembled
from tests.stack.world import CLUSTER_FILE
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

MORE = "login: {}\nnetwork: {instance_connect: true}\n"
NODES = ("node", "other node")
CLUSTER = ("head", "login node", *NODES)
# Of EC2's own, which no group closes.
ALWAYS = {(who, what) for who in (*CLUSTER, "stranger") for what in ("metadata", "names")}

type Pairs = set[tuple[str, str]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("firewall")
    (folder / "dev.yaml").write_text(f"{CLUSTER_FILE.read_text()}\n{MORE}")
    assembly = assembled(folder / "dev.yaml", folder / "cdk.out")
    found: dict[str, Any] = seen_in("stack.firewall_world", str(assembly), timeout_s=120)
    return found


def pairs(reached: list[list[str]]) -> Pairs:
    return {(who, whom) for who, whom, _ in reached}


def test_head_nodes_files_and_aws_are_reached_by_who_needs_them_and_by_nobody_else(seen):
    to_files = {(who, "files") for who in CLUSTER}
    to_aws = {(who, "aws") for who in (*CLUSTER, "stranger")}

    assert pairs(seen["as_deployed"]) == {*permutations(CLUSTER, 2), *to_files, *to_aws, *ALWAYS}


def test_head_and_nodes_reach_each_other_at_every_port(seen):
    ports = {port for who, whom, port in seen["as_deployed"] if {who, whom} <= {*CLUSTER}}

    assert ports == {"22", "6817", "6818", "45123"}


def test_nodes_without_a_rule_that_lets_them_out_reach_each_other_alone(seen):
    of_nodes = {(who, whom) for who, whom in pairs(seen["without_a_way_out"]) if who in NODES}

    assert of_nodes == {*permutations(NODES, 2), *(each for each in ALWAYS if each[0] in NODES)}


def test_files_are_mounted_only_where_the_mount_target_s_group_lets_in(seen):
    assert seen["mounted"] == {"code": 0, "said": ""}
    assert seen["not_mounted"] == {"code": 32, "said": "mount.nfs4: Connection timed out"}
