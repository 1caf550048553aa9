"""Bare metal in pools: who means it, and how long it boots."""

import pytest

from tests.wire.cluster_files import good, load
from tests.wire.test_pools import selected

IN_TIME = {"timings.boot_bound_s": 2400}


@pytest.mark.parametrize(
    ("names", "requirements", "types"),
    [
        (["c5n.*"], ["vcpus Gt 36"], ["c5n.18xlarge"]),
        (None, ["family In c5n", "vcpus Gt 36"], ["c5n.18xlarge"]),
        (["c5n.metal"], [], ["c5n.metal"]),
        (["c5n.18xlarge", "c5n.metal*"], [], ["c5n.18xlarge", "c5n.metal"]),
        (["c8g.metal-??xl"], [], ["c8g.metal-24xl", "c8g.metal-48xl"]),
    ],
)
def test_bare_metal_is_meant_only_by_what_says_metal(tmp_path, names, requirements, types):
    assert selected(tmp_path, names, *requirements, more=IN_TIME) == types


def test_bare_metal_that_a_pattern_leaves_out_is_told_at_once(tmp_path):
    by_family = {"pools.t4.instance_types": ["c8g.*"], "pools.t4.max_job_nodes": 1}
    by_need = {
        "pools.t4.instance_types": None,
        "pools.t4.requirements": [{"key": "family", "operator": "In", "values": ["c8g"]}],
        "pools.t4.max_job_nodes": 1,
    }

    told = "pools.t4: left out c8g.metal-24xl, c8g.metal-48xl, bare metal that boots for up to 20"
    assert any(each.startswith(told) for each in load(tmp_path, good(by_family)).notes)
    assert not any("metal" in each for each in load(tmp_path, good(by_need)).notes)


def test_bare_metal_is_expected_to_boot_and_to_start_for_20_minutes(tmp_path):
    metal = {"pools.t4.instance_types": ["c5.metal"], **IN_TIME}
    said = {**metal, "pools.t4.boot_s": 700, "pools.t4.start_s": 650}

    (usual,), (own,) = (load(tmp_path, good(each)).cluster.pools for each in (metal, said))
    (virtual,) = load(tmp_path, good()).cluster.pools

    assert (usual.boot_s, usual.start_s) == (1200, 1200)
    assert (own.boot_s, own.start_s) == (700, 650)
    assert (virtual.boot_s, virtual.start_s) == (300, 60)


def test_bare_metal_beside_other_types_is_told(tmp_path):
    mixed = {"pools.t4.instance_types": ["c5.24xlarge", "c5.metal"], **IN_TIME}

    told = load(tmp_path, good(mixed)).notes

    assert any(
        each.startswith("pools.t4: c5.metal is bare metal and others are not, but all are taken to")
        for each in told
    )
