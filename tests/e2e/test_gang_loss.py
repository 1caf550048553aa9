"""Jobs of several nodes that lose one, on real Slurm and as deployed: to their next run."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.resume import PATIENCE_S, Gang, deployed
from local.slurm.daemons import why_not_here
from local.waiting import eventually
from tidegate.core.model.job_files import LostWork

NODES = 3
PYTHON = os.environ.get("PYTHON_WITH_TORCH", "/usr/bin/python3")
SCRIPT = "trap 'echo got >> {notes}' USR1; for i in $(seq 3000); do sleep 0.1; done"
# The agent looks at the files every five seconds, and at Slurm at least every ten: five steps each.
LOOK_STEPS = 50
EXAMPLE = Path(__file__).parents[2] / "docs" / "experiments" / "auto_resume"


def has_torch() -> bool:
    asked = [PYTHON, "-c", "import torch"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _lost_by(gang: Gang) -> LostWork | None:
    """As the ledger has it, once the next run has said where it goes on."""
    view = gang.made.world.ledger().view()
    told = [each.lost for each in view.stuck if each.job_id == gang.job_id]
    return next((each for each in told if each and each.resumed_step is not None), None)


@pytest.fixture(scope="module")
def gang() -> Iterator[Gang]:
    if reason := why_not_here():
        pytest.skip(reason)
    with deployed() as made:
        yield made


def test_it_is_requeued_keeps_its_other_nodes_and_one_node_is_bought(gang: Gang) -> None:
    notes = gang.slurm.folder / "notes"
    asked = (f"-N{NODES}", "--gres=gpu:t4:4", "--comment=tidegate:ckpt=B:USR1@5")
    gang.job_id = gang.slurm.submit(*asked, script=SCRIPT.format(notes=notes))
    first = gang.runs("the gang runs", nodes=NODES)
    lost = min(first)

    gang.made.notify([lost])
    gang.leaves(lost)
    gang.runs("it runs again", nodes=NODES)

    assert first - gang.names == {lost}
    assert gang.bought == first | gang.names
    assert notes.read_text() == "got\n"
    assert "Restarts=1" in gang.slurm.run("scontrol", "show", "job", gang.job_id)
    gang.slurm.cancel(gang.job_id)


@pytest.mark.parametrize("name", ["train.py", "train_torch.py"])
def test_a_training_goes_on_at_its_step_on_its_good_node_and_a_new_one(
    gang: Gang, name: str
) -> None:
    """Another job waits for its good node in the moment in which the instance of the other ends."""
    if name == "train_torch.py" and not has_torch():
        pytest.skip(f"{PYTHON} has no PyTorch (package python3-torch; PYTHON_WITH_TORCH names it)")
    folder = gang.slurm.folder / name
    folder.mkdir()
    told = f"PYTHON={PYTHON},TRAIN={EXAMPLE}/{name},STEP_SECONDS=0.2"
    script = str(EXAMPLE / "train.sbatch")
    watched = f"--comment=tidegate:heartbeat={folder}/heartbeat@120"
    asked = ("sbatch", "--parsable", "-o", f"{folder}/out", f"--export=ALL,{told}", watched)
    gang.job_id = gang.slurm.run(*asked, script, str(folder))
    first = gang.runs("the training runs", nodes=2)
    # On two idle nodes of the test before it would go on at once, as it may.
    whole = ("--exclusive", "--gres=gpu:t4:4", "-w")
    fillers = [gang.slurm.submit(*whole, each) for each in gang.all_names - first]
    checkpoint = folder / "checkpoint"
    gang.made.until("it has a checkpoint", checkpoint.exists, PATIENCE_S)
    beat = folder / "heartbeat"

    def step_now() -> int:
        return int(f"0{beat.read_text().removeprefix('step ').strip()}")

    gang.made.until("its steps were seen", lambda: step_now() >= LOOK_STEPS, PATIENCE_S)
    # Here only slurmd ends with its instance: of the other node no script runs on, unseen.
    shown = gang.slurm.run("scontrol", "show", "job", gang.job_id)
    batch_host = shown.partition("BatchHost=")[2].split()[0]
    lost = max(first - {batch_host})

    # By name: a node that came for it would be open, and as good for the gang as its own.
    (good,) = first - {lost}
    rival = gang.slurm.submit(*whole, good)
    began_s = time.monotonic()
    gang.ends(lost)
    gang.leaves(lost)
    again = gang.runs("it runs again", nodes=2)

    print(f"instance ended to running again: {time.monotonic() - began_s:.1f} s")
    assert first - again == {lost}
    steps: list[int] = []

    def has_told() -> bool:
        steps[:] = map(int, re.findall(r"goes on at step (\d+)", (folder / "out").read_text()))
        return len(steps) == 2

    gang.made.until("it tells its step", has_told, PATIENCE_S)
    assert steps[0] == 0 < steps[1]
    work = eventually("it is told what it lost", lambda: _lost_by(gang), PATIENCE_S)
    assert work is not None
    assert work.gpus == 8
    assert work.step is not None
    # Where it went on is what was told when somebody looked: on a busy machine that is later.
    assert steps[1] <= (work.resumed_step or 0.0) <= step_now()
    # Each step is kept: what was told last was done, and nothing is done again.
    assert abs(work.step - steps[1]) <= LOOK_STEPS
    assert work.redone_s < 1.0
    gang.slurm.cancel(gang.job_id, rival, *fillers)
