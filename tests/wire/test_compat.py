"""Facts about GPUs, drivers and images, and what they say about cluster files."""

import gzip
import json
from pathlib import Path
from typing import Any

import moto.ec2
import pytest
import yaml

from tests.cdk.made import ROOT
from tests.wire.cluster_files import good
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.compat import findings
from tidegate.wire.compat_facts import facts_of, load_compat
from tidegate.wire.compat_rules import Rule
from tidegate.wire.compat_software import software_of
from tidegate.wire.config import ClusterFile, load_cluster, parse_cluster

RULES = set(Rule)


def file_with(
    instance_type: str, image: str = "dlami", gpu: object = None, **more: Any
) -> ClusterFile:
    changes = {
        **more,
        "image": image,
        "head.image": "ami-0a1b2c3d",
        "pools.t4.instance_types": [instance_type],
        "pools.t4.gpu": gpu or {},
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


OWN = "ami-0123456789abcdef0"
OLD_SHELL = ("R22", True)


@pytest.mark.parametrize(
    ("instance_type", "image", "software", "found"),
    [
        ("p5.48xlarge", OWN, {"driver": "525.60.13", "cuda": "12.0"}, []),
        ("p5.48xlarge", OWN, {"driver": "525.60.12"}, [("R01", True)]),
        ("p5.48xlarge", OWN, {"driver": "570.10", "cuda": "13.0"}, [("R03", True)]),
        ("p5.48xlarge", OWN, {"driver": "580.10", "cuda": "13.2"}, []),
        ("p5.48xlarge", "dlami", {"cuda": "13.2"}, []),
        ("p5.48xlarge", "dlami", {"cuda": "11.0"}, [("R03", True)]),
        ("p3dn.24xlarge", OWN, {"cuda": "12.9"}, []),
        ("p3dn.24xlarge", OWN, {"cuda": "13.0"}, [("R03", True)]),
        ("p5.48xlarge", OWN, {"driver": "580.1", "fabric_manager": "580.2"}, [("R04", True)]),
        ("p5.48xlarge", OWN, {"driver": "580.1", "fabric_manager": "580.1"}, []),
        ("p5.4xlarge", OWN, {"driver": "580.1", "fabric_manager": "580.2"}, []),
        ("p6-b200.48xlarge", OWN, {"kernel_module": "proprietary"}, [("R05", True)]),
        ("p6-b200.48xlarge", OWN, {"kernel_module": "open"}, []),
        ("p3dn.24xlarge", OWN, {"kernel_module": "open"}, [("R05", True)]),
        ("g5.xlarge", OWN, {"driver": "535.10"}, [("R11", False)]),
        ("g5.xlarge", OWN, {"aws_ofi_nccl": "1.12.0", "efa_installer": "1.35.0"}, [("R08", True)]),
        ("g5.xlarge", OWN, {"aws_ofi_nccl": "1.12.0", "efa_installer": "1.34.0"}, []),
        ("g5.xlarge", OWN, {"aws_ofi_nccl": "1.21.1", "nccl": "2.16.5"}, [("R08", True)]),
        ("g5.xlarge", OWN, {"aws_ofi_nccl": "1.21.1", "nccl": "2.17.1"}, []),
        (
            "g5.xlarge",
            OWN,
            {"aws_ofi_nccl": "1.21.1", "libfabric": "1.21.9amzn1.0"},
            [("R08", True)],
        ),
        ("g5.xlarge", OWN, {"aws_ofi_nccl": "1.21.1", "efa_installer": "1.43.2"}, []),
        ("g5.xlarge", OWN, {"os": "al2", "efa_installer": "1.50.0"}, [("R10", True), OLD_SHELL]),
        ("g5.xlarge", OWN, {"os": "al2", "efa_installer": "1.49.0"}, [OLD_SHELL]),
        (
            "g5.xlarge",
            OWN,
            {"os": "ubuntu20.04", "efa_installer": "1.45.1"},
            [("R10", True), OLD_SHELL],
        ),
        ("g5.xlarge", OWN, {"os": "ubuntu22.04", "efa_installer": "1.45.1"}, []),
    ],
)
def test_versions_that_do_not_go_together_are_found(instance_type, image, software, found):
    file = file_with(instance_type, image, software=software)

    assert told(file) == found


@pytest.mark.parametrize(
    ("instance_type", "mig", "software", "rules"),
    [
        ("p4d.24xlarge", "1g.5gb", {"driver": "450.80.02"}, []),
        ("p4d.24xlarge", "1g.18gb", {}, ["R02"]),
        ("p5.48xlarge", "1g.10gb", {"driver": "525.60.13"}, ["R02"]),
        ("p5.48xlarge", "1g.10gb", {"driver": "525.85.12"}, []),
        ("g5.xlarge", "1g.5gb", {}, ["R02"]),
        ("g7e.2xlarge", "1g.24gb+me", {}, []),
    ],
)
def test_a_mig_profile_is_one_that_gpu_and_driver_have(instance_type, mig, software, rules):
    file = file_with(instance_type, OWN, gpu={"mig": mig}, software=software)

    assert [rule for rule, is_error in told(file) if is_error] == rules


@pytest.mark.parametrize(
    ("instance_type", "more", "rules"),
    [
        ("g6f.large", {}, ["R25"]),
        ("g6f.large", {"image": OWN, "software": {"driver": "580.105.08"}}, []),
        ("gr6f.4xlarge", {"image": OWN, "software": {"driver": "595.10"}}, ["R06"]),
        ("g6.xlarge", {}, []),
    ],
)
def test_a_fraction_of_a_gpu_needs_an_image_with_nvidia_s_grid_driver(instance_type, more, rules):
    file = file_with(instance_type, **more)

    assert [rule for rule, is_error in told(file) if is_error] == rules


@pytest.mark.parametrize(
    ("instance_type", "profiles", "rules"),
    [
        ("p4d.24xlarge", ["1g.5gb", "3g.20gb"], []),
        ("p4d.24xlarge", ["1g.5gb", "3g.40gb", "4g.40gb"], ["R02", "R02"]),
        ("g4dn.xlarge", ["1g.5gb"], ["R02"]),
        ("g6.xlarge", ["1g.5gb"], ["R02"]),
    ],
)
def test_each_of_several_profiles_is_one_that_the_gpu_has(instance_type, profiles, rules):
    file = file_with(instance_type, OWN, gpu={"mig_profiles": profiles})

    assert [rule for rule, is_error in told(file) if is_error] == rules


def test_mig_on_an_image_that_may_lack_the_tool_is_told():
    assert ("R19", False) in told(file_with("p4d.24xlarge", gpu={"mig": "1g.5gb"}))
    assert told(file_with("p4d.24xlarge", OWN, gpu={"mig": "1g.5gb"})) == []


def test_pyxis_needs_an_image_that_holds_it():
    assert told(file_with("g5.xlarge", containers="pyxis")) == [("R20", True)]
    assert told(file_with("g5.xlarge", OWN, containers="pyxis")) == []


def test_lustre_without_an_image_that_holds_its_client_is_told():
    """Where AWS has none for a kernel yet no node would join, and the head would not boot."""
    lustre = {"storage_gib": "1200"}

    (warning,) = findings(file_with("g5.xlarge", lustre=lustre))
    assert (warning.rule, warning.is_error, warning.place) == ("R20", False, "lustre")
    assert "mount.lustre" in warning.text
    assert told(file_with("g5.xlarge", OWN, lustre=lustre)) == []


def test_images_that_are_baked_hold_enroot_and_pyxis():
    """Head and login nodes build it as they boot, and need no image of their own for it."""
    (warning,) = findings(file_with("g5.xlarge", containers="pyxis", images={}))

    assert (warning.rule, warning.is_error) == ("R20", False)
    assert "until the first image is baked" in warning.text


def test_a_build_looks_for_what_mig_needs():
    assert ("R19", False) in told(file_with("p4d.24xlarge", gpu={"mig": "1g.5gb"}))
    assert told(file_with("p4d.24xlarge", gpu={"mig": "1g.5gb"}, images={})) == []


def repository(os):
    return {os: {"url": "https://example.com/slurm", "key": "https://example.com/key"}}


@pytest.mark.parametrize(
    ("instance_type", "os", "rules"),
    [
        ("p5.48xlarge", "ubuntu22.04", []),
        ("p5.48xlarge", "al2023", []),
        ("p3dn.24xlarge", "al2023", [("R05", True)]),
        ("trn1.32xlarge", "ubuntu22.04", []),
        ("trn1.32xlarge", "al2023", [("R20", True)]),
    ],
)
def test_other_systems_to_install_on_are_held_against_the_same_facts(instance_type, os, rules):
    file = file_with(instance_type, f"install-{os}", slurm={"repositories": repository(os)})

    assert told(file) == rules
    assert software_of(file, file.cluster.pools[0].name).os == os


def test_what_a_pool_s_own_image_holds_is_what_the_file_says():
    own = {"pools.t4.image": "ami-0123456789abcdef0"}

    assert told(file_with("p3dn.24xlarge")) == [("R06", True)]
    assert told(file_with("p3dn.24xlarge", **own)) == []
    said = file_with("p3dn.24xlarge", **own, software={"driver": "595.71.05"})
    assert told(said) == [("R06", True)]


def test_sssd_needs_an_image_that_is_set_up_for_it():
    assert told(file_with("g5.xlarge", users="sssd")) == [("R20", True)]
    assert told(file_with("g5.xlarge", OWN, users="sssd")) == []


def test_nodes_logs_need_the_agent_of_aws_s_image():
    assert ("R20", True) in told(file_with("g5.xlarge", "install", logs={"nodes": True}))
    assert told(file_with("g5.xlarge", logs={"nodes": True})) == []


def test_mps_with_programs_beside_it_is_told():
    gpu = {"mps": True, "compute_mode": "default"}

    assert told(file_with("g5.xlarge", gpu=gpu)) == [("R16", False)]
    assert told(file_with("g5.xlarge", gpu={"mps": True})) == []


def test_a_mode_in_which_no_program_runs_is_told():
    file = file_with("g5.xlarge", gpu={"compute_mode": "prohibited"})

    assert told(file) == [("R16", False)]


def test_a_finding_names_pool_fact_and_source():
    (found,) = findings(file_with("p3dn.24xlarge"))

    assert str(found).startswith("pools.t4: p3dn.24xlarge: error R06: V100 is dropped after")
    assert "NVIDIA Data Center Drivers" in found.source


def head(**changes: object) -> list[tuple[str, bool]]:
    file = parse_cluster(yaml.safe_dump(good({"head.image": OWN, **changes})), "test.yaml")
    return [each for each in told(file) if each[0] == "R24"]


@pytest.mark.parametrize(
    ("instance_type", "more", "found"),
    [
        ("t3.nano", {}, [("R24", True)]),
        ("t3.micro", {}, [("R24", False)]),
        ("t3.small", {}, []),
        ("t3.small", {"slurm.accounting": True}, [("R24", False)]),
        ("t3.medium", {"slurm.accounting": True}, []),
    ],
)
def test_a_head_has_memory_for_what_runs_on_it(instance_type, more, found):
    assert head(**{"head.instance_type": instance_type, **more}) == found


@pytest.mark.parametrize(
    ("instance_types", "rules"),
    [
        (["g4dn.xlarge", "m6i.large"], ["R23"]),
        (["g4dn.xlarge", "g5.xlarge"], []),
        (["m6i.large", "m6i.xlarge"], []),
    ],
)
def test_a_pool_with_and_without_gpus_is_told_what_that_means(instance_types, rules):
    change = {
        "pools.t4.instance_types": instance_types,
        "prices_usd_per_hour": {each: {"on-demand": 9.0, "spot": 3.0} for each in instance_types},
    }

    file = parse_cluster(yaml.safe_dump(good(change)), "test.yaml")

    assert [rule for rule, _ in told(file) if rule == "R23"] == rules


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


def test_types_with_efa_have_it_on_as_many_cards_as_ec2_says():
    """By moto's crawl of DescribeInstanceTypes; the newest types are not in it."""
    file = Path(moto.ec2.__file__).parent / "resources" / "instance_types.json.gz"
    said = {
        name: (each["NetworkInfo"].get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0)
        for name, each in json.loads(gzip.decompress(file.read_bytes())).items()
    }
    ours = {name: facts_of(name).efa_interfaces for name in load_catalogue() if name in said}

    assert len(ours) > 1000
    assert {name: (count, said[name]) for name, count in ours.items() if count != said[name]} == {}
