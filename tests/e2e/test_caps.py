"""GPU limits of accounting, with a real slurmdbd: not one GPU is bought over the cap."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from local.namespaces import can_enter

REPOSITORY = Path(__file__).parents[2]


def test_no_gpu_is_bought_over_an_accounts_cap() -> None:
    if why_not := can_enter():
        pytest.skip(f"real path: {why_not}")

    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.caps_world"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert (seen["most_gpus"], seen["bought_gpus"]) == (2, 2)
    assert seen["completed"] == 5
    assert any("account lab allows 2 GPUs in all" in reason for reason in seen["told"])
    # What makes it necessary: with no node up Slurm does not name the cap.
    assert not any("Assoc" in reason for reason in seen["slurm_said"])
