"""What the head does before slurmctld starts: a first start that was cut off is not the last."""

import re
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "head" / "update.sh"
SAVED = ("assoc_usage", "job_state", "node_state", "resv_state", "trigger_state")


def before_start(state: Path) -> None:
    """Runs what the unit's drop-in has."""
    lines = f"ROLE=head MAY_START=/run/m STATE_DIR={state}; source {STAGE}; drop_in"
    drop_in = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
    for command in re.findall(r"^ExecStartPre=/bin/sh -c '(.*)'$", drop_in.stdout, re.MULTILINE):
        subprocess.run(["/bin/sh", "-c", command], check=True)


def starts(state: Path) -> bool:
    """slurmctld with a slurmdbd, from 25.05 on.

    Source: SchedMD commit 4344e6addc: where `clustername` has the database's number, each of these
    files has to be there, or it ends.
    """
    return not (state / "clustername").exists() or all(
        (state / name).exists() or (state / f"{name}.old").exists() for name in SAVED
    )


@pytest.mark.parametrize(
    "left",
    [(), ("job_state", "node_state")],
    ids=["by a fault of slurm.conf", "killed in its first five minutes"],
)
def test_a_first_start_that_saved_not_all_is_followed_by_another(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    (tmp_path / "clustername").write_text("dev|7")
    for name in left:
        (tmp_path / name).touch()
    assert not starts(tmp_path)

    before_start(tmp_path)

    assert starts(tmp_path)
    assert all((tmp_path / name).exists() for name in left)


@pytest.mark.parametrize("suffix", ["", ".old"])
def test_a_state_that_was_saved_once_stays_guarded(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "clustername").write_text("dev|7")
    for name in SAVED:
        (tmp_path / f"{name}{suffix}").touch()
    (tmp_path / f"job_state{suffix}").unlink()

    before_start(tmp_path)

    assert not starts(tmp_path)


def test_a_head_without_a_state_starts(tmp_path: Path) -> None:
    before_start(tmp_path)

    assert starts(tmp_path)
