"""What slurmctld does with the places that nodes tell it (`slurm.topology`), from 25.05 on.

`docs/topology.md` has what follows from it for users.
"""

from collections.abc import Iterator

import pytest

from local.boot.values import SLURM
from local.slurm.daemons import RealSlurm, release_here
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from userdata.slurm_conf import topology_conf

FIRST = (25, 5)
ZONE = "default:all:us-west-2a"
NEAR, FAR = f"{ZONE}:nn-1:nn-2:nn-2-hosts", f"{ZONE}:nn-1:nn-3:nn-3-hosts"
UNPLACED = f"{ZONE}:us-west-2a-unplaced"


def name(number: int) -> str:
    return f"i-0123456789abcde{number:02d}"


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    if release_here() < FIRST:
        pytest.skip("nodes of this Slurm tell no places: scripts/contracts.sh tries one that does")
    top, _ = topology_conf(SLURM).splitlines()
    placeholders = "SwitchName=elsewhere Nodes=ph-t4-[1-8],ph-a10g-[1-8]"
    with slurm_of_its_own("TopologyPlugin=topology/tree", top, placeholders) as made:
        for number, place in enumerate((NEAR, FAR, NEAR, FAR, NEAR, UNPLACED)):
            made.join(name(number), place=place)
        yield made


def nodes_of(slurm: RealSlurm, *options: str) -> set[str]:
    """Where a job of these options starts."""
    job_id = slurm.submit("--exclusive", *options)

    def told() -> str:
        return slurm.run("squeue", "-h", "-j", job_id, "-t", "RUNNING", "-o", "%N")

    found = eventually(f"job {job_id} runs", told)
    names = set(slurm.run("scontrol", "show", "hostnames", found).split())
    slurm.cancel(job_id)
    eventually("its nodes are free", lambda: not slurm.run("squeue", "-h", "-j", job_id))
    return names


def topology(slurm: RealSlurm) -> dict[str, str]:
    """The line of each switch."""
    lines = slurm.run("scontrol", "show", "topology").splitlines()
    return {line.split()[0].removeprefix("SwitchName="): line for line in lines}


def test_slurmctld_makes_the_switches_that_nodes_name(slurm: RealSlurm) -> None:
    found = topology(slurm)

    assert {"all", "elsewhere", "us-west-2a", "nn-1", "nn-2", "nn-3"} <= found.keys()
    assert "Switches=nn-2-hosts" in found["nn-2"]


def test_a_job_gets_nodes_of_one_switch_where_one_has_enough(slurm: RealSlurm) -> None:
    assert nodes_of(slurm, "-N3") == {name(0), name(2), name(4)}
    assert nodes_of(slurm, "-N2", "--switches=1") in (
        {name(1), name(3)},
        {name(0), name(2)},
        {name(0), name(4)},
        {name(2), name(4)},
    )


def test_a_job_too_large_for_a_switch_still_gets_all_nodes(slurm: RealSlurm) -> None:
    assert nodes_of(slurm, "-N6") == {name(each) for each in range(6)}


def test_the_weight_that_says_what_a_node_costs_goes_before_the_place(slurm: RealSlurm) -> None:
    for number in (0, 2):
        slurm.run("scontrol", "update", f"nodename={name(number)}", "weight=500")
    try:
        assert nodes_of(slurm, "-N4") == {name(1), name(3), name(4), name(5)}
    finally:
        for number in (0, 2):
            slurm.run("scontrol", "update", f"nodename={name(number)}", "weight=1")


def test_places_outlive_a_restart_of_slurmctld(slurm: RealSlurm) -> None:
    before = topology(slurm)

    slurm.run("scontrol", "shutdown", "slurmctld")
    eventually("it is down", lambda: "DOWN" in slurm.run("bash", "-c", "scontrol ping || true"))
    slurm.run("slurmctld")
    eventually("it is up", lambda: "UP" in slurm.run("bash", "-c", "scontrol ping || true"))

    assert topology(slurm) == before
    assert nodes_of(slurm, "-N3") == {name(0), name(2), name(4)}


def test_a_node_without_a_place_is_beside_no_other_until_it_gets_one(slurm: RealSlurm) -> None:
    """What the head does when a deployment brings the topology to nodes that are there."""
    slurm.join(name(9))
    job_id = slurm.submit("--exclusive", "-N7")
    slurm.pause(4)
    assert slurm.run("squeue", "-h", "-j", job_id, "-o", "%T") == "PENDING"

    slurm.run("scontrol", "update", f"nodename={name(9)}", "topology=default:all:elsewhere")

    eventually("it runs", lambda: slurm.run("squeue", "-h", "-j", job_id, "-o", "%T") == "RUNNING")
    slurm.cancel(job_id)
