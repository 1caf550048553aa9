"""`slurm.topology` in the cluster file: where it is of use, and the way to EC2."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.wire.deployment import NEEDED_ENDPOINTS

SLURM = {
    "version": "26.05",
    "topology": "tree",
    "repositories": {
        "ubuntu24.04": {"url": "https://example.com/noble", "key": "https://example.com/k"}
    },
}


def asked(*types: str, **more: Any) -> dict[str, Any]:
    own = {"slurm": SLURM, "pools.t4.instance_types": [*types], "prices_usd_per_hour": None}
    return good({**own, **more})


@pytest.mark.parametrize("types", [["g6e.xlarge"], ["g4dn.xlarge", "g6e.xlarge"]])
def test_one_type_that_ec2_tells_of_is_enough(tmp_path: Path, types: list[str]) -> None:
    assert load(tmp_path, asked(*types)).slurm.topology == "tree"


@pytest.mark.parametrize("types", [["g4dn.xlarge"], ["p5.4xlarge"], ["g6.xlarge", "g5.xlarge"]])
def test_a_topology_of_which_ec2_tells_nothing_is_refused(tmp_path: Path, types: list[str]) -> None:
    (said,) = problems(tmp_path, asked(*types))

    assert said == (
        "slurm.topology EC2 tells of none of the pools' instance types where they are in its"
        " network (docs/topology.md): leave it out"
    )


@pytest.mark.parametrize(("more", "is_refused"), [((), True), (("ec2",), False)])
def test_without_nat_nodes_need_an_endpoint_of_ec2(
    tmp_path: Path, more: tuple[str, ...], is_refused: bool
) -> None:
    network = {"nat": "none", "endpoints": [*NEEDED_ENDPOINTS, *more]}

    said = problems(tmp_path, asked("g6e.xlarge", network=network)) if is_refused else []

    assert [each.split()[0] for each in said] == ["network.endpoints"] * is_refused
    if not is_refused:
        assert load(tmp_path, asked("g6e.xlarge", network=network)).network.endpoints
