"""What a cluster file is told of its Slurm's faults."""

from typing import Any

import pytest
import yaml

from tests.wire.cluster_files import good
from tidegate.wire.config import ClusterFile, parse_cluster
from tidegate.wire.names import TESTED_SLURM_VERSIONS
from tidegate.wire.slurm_faults import faults, slurm_findings

OWN = "ami-0123456789abcdef0"
FROM = {"url": "https://packages.example.com/slurm", "key": "https://packages.example.com/key"}


def file_with(version: str, image: str = "dlami", **slurm: Any) -> ClusterFile:
    changes = {"slurm": {"version": version, **slurm}, "image": image, "head.image": OWN}
    return parse_cluster(yaml.safe_dump(good(changes)), "test.yaml")


def told(file: ClusterFile) -> list[str]:
    return [str(each) for each in slurm_findings(file)]


def test_the_system_s_own_slurm_is_judged_by_its_patch():
    (weights,) = told(file_with("23.11"))

    assert weights.startswith("slurm.version: 23.11.4: warning R21: ")
    assert "--gpus-per-node" in weights


def test_faults_of_accounting_are_told_to_who_has_it():
    rights = [each for each in told(file_with("23.11", accounting=True)) if "CVE" in each]

    assert len(rights) == 1


@pytest.mark.parametrize("key", ["shards_per_gpu", "mps_per_gpu"])
def test_faults_of_shards_are_told_to_who_has_them(key):
    changes = {"pools.t4.gpu": {key: 4}}
    file = parse_cluster(yaml.safe_dump(good(changes)), "test.yaml")

    assert file.slurm.version == "23.11"
    assert len([each for each in told(file) if "shards" in each]) == 2


def test_faults_of_metrics_are_told_to_who_reads_them():
    with_metrics = good({"slurm": {"version": "25.11"}, "image": OWN, "head.image": OWN})
    quiet = parse_cluster(yaml.safe_dump(with_metrics), "test.yaml")
    with_metrics["monitoring"] = {"prometheus": True}
    watched = parse_cluster(yaml.safe_dump(with_metrics), "test.yaml")

    assert [len([each for each in told(of) if "metrics" in each]) for of in (quiet, watched)] == [
        0,
        1,
    ]


def test_a_fault_that_no_patch_mends_is_told_beside_the_patch_to_take():
    patch, licenses = told(file_with("25.05", OWN))

    assert "take 25.05.8 or newer" in patch
    assert "licenses" not in patch
    assert "forgets its licenses" in licenses
    assert "25.11.7" in licenses


@pytest.mark.parametrize(
    "file",
    [
        file_with("23.11", OWN),
        file_with("23.11", repositories={"ubuntu24.04": FROM}),
        file_with("23.11", OWN, accounting=True),
    ],
)
def test_where_nobody_knows_the_patch_the_first_good_one_is_named(file):
    (line,) = told(file)

    first_good = "11" if file.slurm.accounting else "6"
    assert f"take 23.11.{first_good} or newer" in line
    assert "when a dynamic node registers (before .2)" in line


def test_what_tidegate_goes_around_is_not_told():
    assert told(file_with("22.05", OWN)) == []


def test_a_fault_is_there_from_its_first_patch_until_it_is_mended():
    (fault,) = [each for each in faults() if each.name == "half-of-the-threads"]

    assert [fault.has(patch) for patch in (0, 6, 7, 11)] == [True, True, False, False]


def test_each_fault_says_what_where_and_what_to_do():
    names = [each.name for each in faults()]

    assert len(set(names)) == len(names)
    for each in faults():
        assert each.release in TESTED_SLURM_VERSIONS, each.name
        assert each.verdict in ("handled", "warn", "refuse"), each.name
        assert each.when in ("", "accounting", "prometheus", "shards"), each.name
        assert each.what, each.name
        assert each.advice, each.name
