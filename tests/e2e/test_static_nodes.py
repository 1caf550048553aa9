"""Nodes that are not Tidegate's, in the same slurm.conf: nothing is ever done to them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from local.namespaces import can_enter

REPOSITORY = Path(__file__).parents[2]


def test_a_node_of_the_users_own_is_left_alone() -> None:
    if why_not := can_enter():
        pytest.skip(f"real path: {why_not}")

    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.static_world"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen == {"bought": 2, "idle": "idle none", "drained": "drained new disk"}
