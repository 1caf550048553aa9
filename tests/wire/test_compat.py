"""Facts about GPUs, drivers and images, and what they say about cluster files."""

import pytest
import yaml

from tests.cdk.made import ROOT
from tests.wire.cluster_files import good
from tidegate.wire.compat import facts_of, findings, load_compat
from tidegate.wire.config import ClusterFile, load_cluster, parse_cluster

RULES = {each["id"] for each in load_compat()["reject"]}


def file_with(instance_type: str, image: str = "dlami") -> ClusterFile:
    changes = {
        "image": image,
        "pools.t4.instance_types": [instance_type],
        "prices_usd_per_hour": {instance_type: {"on-demand": 9.0, "spot": 3.0}},
    }
    return parse_cluster(yaml.safe_dump(good(changes)), "test.yaml")


def told(file: ClusterFile) -> list[tuple[str, bool]]:
    return [(each.rule, each.is_error) for each in findings(file)]


@pytest.mark.parametrize("name", ["dev", "research"])
def test_nothing_speaks_against_the_examples(name):
    assert not [
        each for each in findings(load_cluster(ROOT / f"clusters/{name}.yaml")) if each.is_error
    ]


@pytest.mark.parametrize(
    ("instance_type", "image", "rules"),
    [
        ("g5.xlarge", "dlami", []),
        ("p3dn.24xlarge", "dlami", [("R06", True)]),
        ("p3dn.24xlarge", "install", [("R05", True)]),
        ("p3dn.24xlarge", "ami-0123456789abcdef0", []),
        ("g4dn.xlarge", "install", [("R05", False)]),
        ("p6-b300.48xlarge", "install", []),
        ("p5.48xlarge", "install", []),
    ],
)
def test_what_does_not_go_together_is_found(instance_type, image, rules):
    assert told(file_with(instance_type, image)) == rules


@pytest.mark.parametrize(
    ("instance_types", "changes", "rules"),
    [
        (["g4dn.8xlarge"], {}, []),
        (["c7i.48xlarge"], {}, []),
        (["g5.xlarge"], {}, ["R07"]),
        (["g4dn.8xlarge", "g5.xlarge"], {}, ["R07", "R07"]),
        (["g4dn.8xlarge", "p4d.24xlarge"], {"network": {"nat": "one"}}, ["R07"]),
        (["p5.48xlarge"], {}, ["R17"]),
        (["p5.48xlarge"], {"network": {"nat": "one"}}, []),
        (["g4dn.8xlarge"], {"image": "install"}, ["R18"]),
    ],
)
def test_efa_needs_types_with_alike_interfaces_and_a_way_out(instance_types, changes, rules):
    prices = {name: {"on-demand": 9.0, "spot": 3.0} for name in instance_types}
    change = {
        "pools.t4.instance_types": instance_types,
        "pools.t4.efa": True,
        "prices_usd_per_hour": prices,
        **changes,
    }

    file = parse_cluster(yaml.safe_dump(good(change)), "test.yaml")

    assert [rule for rule, is_error in told(file) if is_error] == rules


def test_a_finding_names_pool_fact_and_source():
    (found,) = findings(file_with("p3dn.24xlarge"))

    assert str(found).startswith("pools.t4: p3dn.24xlarge: error R06: V100 is dropped after")
    assert "NVIDIA Data Center Drivers" in found.source


def test_every_rule_that_is_found_is_in_the_list():
    for instance_type in ("p3dn.24xlarge", "g4dn.xlarge"):
        for image in ("dlami", "install"):
            assert {each.rule for each in findings(file_with(instance_type, image))} <= RULES


@pytest.mark.parametrize(
    ("instance_type", "has_nvswitch", "min_driver"),
    [
        ("p5.48xlarge", True, "525.60.13"),
        ("p5.4xlarge", False, "525.60.13"),
        ("g6.xlarge", False, ""),  # only heard of
        ("unheard.of", False, ""),
    ],
)
def test_nodes_are_held_against_facts(instance_type, has_nvswitch, min_driver):
    facts = facts_of(instance_type)

    assert (facts.has_nvswitch, facts.min_driver) == (has_nvswitch, min_driver)


def test_every_fact_names_sources_that_are_listed():
    sources = set(load_compat()["sources"])

    def check(value: object) -> None:
        if isinstance(value, dict):
            assert set(value.get("src") or ()) <= sources, value
            if value.get("conf") == "seen":
                assert value.get("src"), value
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)

    for part in ("gpus", "driver_branches", "cuda", "pairs", "instance_rules"):
        check(load_compat()[part])
