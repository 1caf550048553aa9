"""slurmctld is restarted for accounting once slurmdbd is there, with stand-ins for Slurm."""

import os
import subprocess
from pathlib import Path

import pytest

HEAD = Path(__file__).parents[2] / "userdata" / "head"
# slurmdbd is not there for the first questions; then it knows the cluster.
STAND_INS = {
    "sacctmgr": 'echo asks >>log; (($(grep -c asks log) <= DOWN)) || echo "$CLUSTER"',
    "systemctl": 'echo "$*" >>log',
    "scontrol": "echo 'Slurmctld(primary) at head is UP'",
}
# A second of waiting passes at once.
WAITS = "sleep() { SECONDS=$((SECONDS + 1)); }"


@pytest.mark.parametrize(("down", "asks"), [(5, range(6, 7)), (9999, range(40, 50))])
def test_slurmctld_is_restarted_once_slurmdbd_knows_the_cluster_or_does_not_come(
    tmp_path: Path, down: int, asks: range
) -> None:
    *asked, last = restarted(tmp_path, "yes", down)

    assert (set(asked), last) == ({"asks"}, "restart slurmctld")
    assert len(asked) in asks


def test_without_accounting_slurmdbd_is_not_asked(tmp_path: Path) -> None:
    assert restarted(tmp_path, "", 0) == ["restart slurmctld"]


def restarted(folder: Path, accounting: str, down: int) -> list[str]:
    """What was asked and done, in its order."""
    (folder / "bin").mkdir()
    (folder / "files").mkdir()
    (folder / "files" / "qos.sh").write_text((HEAD / "qos.sh").read_text())
    for name, text in STAND_INS.items():
        command = folder / "bin" / name
        command.write_text(f"#!/bin/bash\n{text}\n")
        command.chmod(0o755)
    subprocess.run(
        ["bash", "-euc", f"{WAITS}; source {HEAD / 'config.sh'}; restart_or_go_back"],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "ACCOUNTING": accounting,
            "CLUSTER": "dev",
            "DOWN": str(down),
        },
        check=True,
    )
    return (folder / "log").read_text().splitlines()
