"""Login nodes of several kinds: what a file says of each, and what it may not say."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.wire.login import MAX_LOGIN_KINDS, ONLY_KIND

NETWORK = {
    "vpc": "vpc-0a1b2c3d",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d", "us-east-1b": "subnet-0a1b2c3e"},
}
GPU = {"instance_type": "g5.xlarge", "count": 2, "zone": "us-east-1b"}


def script(text: str) -> dict[str, Any]:
    return {"on_login_configured": [{"inline": f"#!/bin/sh\n: {text}\n"}]}


def test_a_file_without_kinds_has_one(tmp_path: Path) -> None:
    (kind,) = load(tmp_path, good({"login": {"count": 2}})).login_kinds

    assert (kind.name, kind.host_name, kind.place) == (ONLY_KIND, "login", ("login",))
    assert kind.model.count == 2


def test_a_file_that_says_nothing_of_login_nodes_has_none(tmp_path: Path) -> None:
    assert load(tmp_path, good()).login_kinds == ()


def test_each_kind_is_what_it_says_and_runs_the_scripts_of_all_before_its_own(
    tmp_path: Path,
) -> None:
    kinds = {"small": {}, "gpu": {**GPU, "hooks": script("gpu")}}
    data = good({"network": NETWORK, "login": {"kinds": kinds}, "hooks": script("all")})

    file = load(tmp_path, data)

    small, gpu = sorted(file.login_kinds, key=lambda each: each.model.count)
    assert [each.host_name for each in (small, gpu)] == ["login-small", "login-gpu"]
    assert (small.model.count, gpu.model.count) == (1, 2)
    assert [file.login_zone(each) for each in (small, gpu)] == ["us-east-1a", "us-east-1b"]
    assert file.all_zones == ("us-east-1a", "us-east-1b")
    assert [each.inline[-4:-1] for each in gpu.hooks] == ["all", "gpu"]
    assert [each.inline[-4:-1] for each in small.hooks] == ["all"]
    assert {*file.machines[1:]} == {
        (("login", "kinds", "small"), "m6i.large", "us-east-1a"),
        (("login", "kinds", "gpu"), "g5.xlarge", "us-east-1b"),
    }


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ({"kinds": {}}, "login.kinds must have at least one entry, has none"),
        (
            {"count": 2, "kinds": {"gpu": {}}},
            "login count stands beside kinds: say it in each kind",
        ),
        (
            {"image": "ami-0a1b2c3d", "count": 2, "kinds": {"gpu": {}}},
            "login count and image stand beside kinds: say them in each kind",
        ),
        (
            {"kinds": {"gpu-": {}}},
            "login.kinds.gpu- the name must be lower-case letters, digits and -, first a letter,"
            " last no -, at most 31",
        ),
        (
            {"kinds": {"a-b": {}, "ab": {}}},
            "login.kinds a-b and ab differ by hyphens alone: rename one of them",
        ),
        (
            {"kinds": {f"k{number}": {} for number in range(MAX_LOGIN_KINDS + 1)}},
            "login.kinds at most 10 kinds, has 11",
        ),
        (
            {"kinds": {"gpu": {"kinds": {"a": {}}}}},
            "login.kinds.gpu.kinds unknown name",
        ),
        ({"hooks": {}}, "login.hooks unknown name"),
        (
            {"pools": {"gpu": {}}},
            "login.pools unknown name; pools of nodes are `pools`, at the top of the file; several"
            " kinds of login nodes are `login.kinds`",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, login: dict[str, Any], said: str
) -> None:
    found = problems(tmp_path, good({"login": login}))

    assert [each for each in found if each.startswith(said)], found


def test_the_rules_of_one_kind_hold_for_each(tmp_path: Path) -> None:
    """A fault of one hides none of another."""
    groups = {"security_groups": ["sg-0a1b2c3d"]}
    kinds = {
        "a": {**groups, "count": 0},
        "b": groups,
        "c": {"subnet": "subnet-0a1b2c3f"},
        "d": {"zone": "eu-west-1a"},
    }

    found = problems(tmp_path, good({"login": {"kinds": kinds}}))

    assert sorted(found) == [
        "login.kinds.a.count must be 1-10, is 0",
        "login.kinds.b.security_groups needs network.vpc: the VPC that the groups are in",
        "login.kinds.c.subnet needs login.kinds.c.zone, the availability zone that it is in",
        "login.kinds.c.subnet needs network.vpc: the VPC that the subnets are in",
        "login.kinds.d.zone eu-west-1a is not a zone of us-east-1",
    ]


def test_a_subnet_of_a_kind_is_in_one_zone_as_any_other(tmp_path: Path) -> None:
    kinds = {"gpu": {"zone": "us-east-1b", "subnet": "subnet-0a1b2c3d"}}

    (found,) = problems(tmp_path, good({"network": NETWORK, "login": {"kinds": kinds}}))

    assert found.startswith("login.kinds.gpu.subnet subnet-0a1b2c3d stands for two zones")
