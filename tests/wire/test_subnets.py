"""Subnets of an existing network: one for each zone, and those that machines name themselves."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems

NODES, PUBLIC, MORE = "subnet-0a1b2c3d", "subnet-0a1b2c3e", "subnet-0a1b2c3f"
NETWORK = {"vpc": "vpc-0a1b2c3d", "subnets": {"us-east-1a": NODES}}


def test_head_login_nodes_and_pools_name_subnets_of_their_own_in_one_zone(tmp_path: Path) -> None:
    public = {"zone": "us-east-1a", "subnet": PUBLIC}
    own = {"us-east-1a": [NODES, MORE]}
    data = good({"network": NETWORK, "head": public, "login": public, "pools.t4.subnets": own})

    file = load(tmp_path, data)

    shared = file.network.subnets
    assert file.subnets_of("t4", "us-east-1a", shared) == (NODES, MORE)
    assert [(each.place, each.subnet_id) for each in file.named_subnets] == [
        (("network", "subnets", "us-east-1a"), NODES),
        (("head", "subnet"), PUBLIC),
        (("login", "subnet"), PUBLIC),
        (("pools", "t4", "subnets", "us-east-1a", 0), NODES),
        (("pools", "t4", "subnets", "us-east-1a", 1), MORE),
    ]


def test_nodes_with_efa_may_be_in_several_subnets_of_their_zone(tmp_path: Path) -> None:
    """AWS says of EFA's traffic that it crosses no zones and no VPCs, and nothing of subnets."""
    own = {"us-east-1a": [NODES, MORE]}
    efa = {"pools.t4.efa": True, "pools.t4.instance_types": ["g4dn.8xlarge"]}
    data = good({"network": NETWORK, **efa, "prices_usd_per_hour": None, "pools.t4.subnets": own})

    file = load(tmp_path, data)

    assert file.subnets_of("t4", "us-east-1a", file.network.subnets) == (NODES, MORE)


def test_who_names_none_is_in_that_of_its_zone(tmp_path: Path) -> None:
    file = load(tmp_path, good({"network": NETWORK}))

    assert file.subnets_of("t4", "us-east-1a", file.network.subnets) == (NODES,)
    assert file.pool_subnets == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"head.subnet": PUBLIC},
            "head.subnet needs head.zone, the availability zone that it is in",
        ),
        (
            {"login": {"subnet": PUBLIC}},
            "login.subnet needs login.zone, the availability zone that it is in",
        ),
        (
            {"pools.t4.subnets": {"us-east-1b": [MORE]}},
            "pools.t4.subnets.us-east-1b the pool has no nodes in us-east-1b: add it to zones, or"
            " leave it out here",
        ),
        (
            {"head": {"zone": "us-east-1b", "subnet": NODES}},
            f"head.subnet {NODES} stands for two zones, us-east-1a and us-east-1b, and is in one",
        ),
        (
            {"pools.t4.subnets": {"us-east-1a": [MORE, MORE]}},
            f"pools.t4.subnets.us-east-1a names {MORE} twice",
        ),
        (
            {"pools.t4.subnets": {"us-east-1a": []}},
            "pools.t4.subnets.us-east-1a must have at least one entry, has none",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    assert said in problems(tmp_path, good({"network": NETWORK, **changes}))


def test_a_network_that_the_stack_makes_has_no_subnet_to_name(tmp_path: Path) -> None:
    machine = {"zone": "us-east-1a", "subnet": PUBLIC}
    own = {"us-east-1a": [NODES]}

    found = problems(tmp_path, good({"head": machine, "login": machine, "pools.t4.subnets": own}))

    told = "needs network.vpc: the VPC that the subnets are in"
    assert found == [
        f"{each} {told}" for each in ("head.subnet", "login.subnet", "pools.t4.subnets")
    ]
