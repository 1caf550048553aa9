"""The site's check in the cluster file, beside what `cluster_file_faults.yaml` has."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.wire.cluster_files import good, load, problems
from tests.wire.test_monitoring import EXISTING
from tidegate.core.model.alarms import RolloutAlarms
from tidegate.core.model.site_check import SiteCheck

CHECK = {"rollout": {"check": {"script": "/shared/nccl.sbatch", "user": "ci"}}}


def test_a_head_that_was_there_before_has_nothing_to_submit_it_with(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, good({**EXISTING, **CHECK}))

    assert said.startswith("rollout.check existing.head is not changed, and lacks what submits")


def test_a_long_script_belongs_on_shared_storage(tmp_path: Path) -> None:
    script = "#!/bin/bash\n" + "x" * 5000
    check = {"rollout": {"check": {"script": script, "user": "ci"}}}

    (said,) = problems(tmp_path, good(check))

    assert said.startswith("rollout.check.script has 5012 characters, 4096 fit: put it on shared")


@pytest.mark.parametrize(("how", "rolls_back"), [({}, True), ({"on_alarm": "pause"}, False)])
def test_alarms_roll_back_where_the_file_says_nothing_else(
    tmp_path: Path, how: dict[str, str], rolls_back: bool
) -> None:
    file = load(tmp_path, good({"rollout": {"alarms": ["errors", "both of them"], **how}}))

    assert file.cluster.alarms == RolloutAlarms(("errors", "both of them"), rolls_back)
    assert load(tmp_path, good()).cluster.alarms is None


def example() -> dict[str, Any]:
    """The check in docs/rollout.md."""
    text = (Path(__file__).parents[2] / "docs" / "rollout.md").read_text()
    found: dict[str, Any] = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    return {**found["rollout"]["check"]}


def test_the_example_of_the_documents_is_sound(tmp_path: Path) -> None:
    file = load(tmp_path, good({"rollout": {"check": example() | {"pools": ["t4"]}}}))

    assert file.cluster.check == SiteCheck("ci", 2, 900.0, 3600.0, ("t4",))


NCCL = """# Avg bus bandwidth    : {}
#
"""


@pytest.mark.parametrize(
    ("printed", "code", "is_good"),
    [
        (NCCL.format("301.27"), 0, True),
        (NCCL.format("210.88"), 0, False),
        ("NCCL WARN Call to connect failed\n", 0, False),
        (NCCL.format("301.27"), 1, False),
    ],
)
def test_the_collective_of_the_documents_finds_what_is_a_third_slower(
    tmp_path, printed, code, is_good
):
    """With a stand-in for srun; its last lines are those of nccl-tests."""
    script = example()["script"]
    (tmp_path / "printed").write_text(printed)
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\ncat {tmp_path}/printed\nexit {code}\n")
    srun.chmod(0o755)

    done = subprocess.run(
        ["bash", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False
    )

    assert (done.returncode == 0) is is_good
