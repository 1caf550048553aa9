"""The QOS that partitions name, made with a stand-in for sacctmgr."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "userdata" / "head" / "qos.sh"
# slurmdbd is down for the first calls; then it lists and adds.
SACCTMGR = """#!/bin/bash
cd "${0%/*}/.." && echo "$1" >>calls
(($(wc -l <calls) > DOWN)) || { echo "Connection refused" >&2; exit 1; }
case $* in
*" list qos "*) cat known ;;
*"add qos "*) echo "${*: -1}" >>known ;;
esac
"""


def made(folder: Path, down: int) -> tuple[int, list[str]]:
    """Exit code, and the QOS that there are afterwards."""
    command = folder / "bin" / "sacctmgr"
    command.parent.mkdir()
    command.write_text(SACCTMGR)
    command.chmod(0o755)
    (folder / "known").write_text("normal\n")
    path = f"{command.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", f"sleep() {{ :; }}; source {SCRIPT}; make_qos"],
        env={"PATH": path, "QOS": "normal team", "DOWN": str(down)},
        capture_output=True,
        check=False,
    )
    return done.returncode, (folder / "known").read_text().split()


def test_a_qos_is_made_once_slurmdbd_is_there_again(tmp_path: Path) -> None:
    assert made(tmp_path, down=5) == (0, ["normal", "team"])


def test_a_slurmdbd_that_stays_away_fails_the_stage(tmp_path: Path) -> None:
    assert made(tmp_path, down=10_000) == (1, ["normal"])
