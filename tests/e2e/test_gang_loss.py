"""A gang that loses one node, on real Slurm and as deployed: from the notice to its next run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.deployed import Live, live
from tests.contracts.real_slurm import RealSlurm, slurm_of_its_own

PATIENCE_S = 90.0
NODES = 3
SCRIPT = "trap 'echo got >> {notes}' USR1; for i in $(seq 3000); do sleep 0.1; done"


@dataclass(slots=True)
class Gang:
    slurm: RealSlurm
    made: Live
    job_id: str
    notes: Path

    @property
    def names(self) -> frozenset[str]:
        """The nodes that it runs on."""
        jobs = self.slurm.port.read().jobs
        return frozenset(n for j in jobs if j.job_id == self.job_id for n in j.node_names)

    @property
    def bought(self) -> frozenset[str]:
        """Every node that EC2 ever gave, also those that have ended."""
        ours = [{"Name": "tag-key", "Values": ["tidegate:launch"]}]
        told = self.made.world.cloud.observer("ec2").describe_instances(Filters=ours)
        return frozenset(i["InstanceId"] for r in told["Reservations"] for i in r["Instances"])


@pytest.fixture
def gang() -> Iterator[Gang]:
    with slurm_of_its_own() as slurm:

        def boot(names: Sequence[str]) -> None:
            slurm.join(*names)

        with live(slurm.port, slurm.log, boot) as made:
            notes = slurm.folder / "notes"
            asked = (f"-N{NODES}", "--gres=gpu:t4:4", "--comment=tidegate:ckpt=B:USR1@5")
            script = SCRIPT.format(notes=notes)
            found = Gang(slurm, made, slurm.submit(*asked, script=script), notes)
            made.until("the gang runs", lambda: len(found.names) == NODES, PATIENCE_S)
            yield found


def test_it_is_requeued_keeps_its_other_nodes_and_one_node_is_bought(gang: Gang) -> None:
    first = gang.names
    lost = min(first)

    gang.made.notify([lost])
    gang.made.until("it left the node", lambda: lost not in gang.names, PATIENCE_S)
    gang.made.until("it runs again", lambda: len(gang.names) == NODES, PATIENCE_S)

    assert first - gang.names == {lost}
    assert gang.bought == first | gang.names
    assert gang.notes.read_text() == "got\n"
    assert "Restarts=1" in gang.slurm.run("scontrol", "show", "job", gang.job_id)
