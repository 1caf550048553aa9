"""How the runner of stages ends: when a stage's time is over."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read

# It waits for what comes, and ends a moment too soon.
WAITS = "check() { [[ -e %s ]]; }; apply() { echo waited in vain; %s return %s; }"


def run(folder: Path, stage: str, *, only_with: str = "-") -> int:
    """Exit code of one stage that has no time for a second try."""
    for name in ("boot.sh", "lib.sh"):
        text = read(name)
        for path in ("/run/tidegate", "/var/log/tidegate", "/etc/tidegate", "/dev/console"):
            text = text.replace(path, f"{folder}{path}")
        (folder / name).write_text(text)
    (folder / "boot.sh").chmod(0o755)
    for path in ("dev", "etc/tidegate", "stages"):
        (folder / path).mkdir(parents=True)
    (folder / "etc/tidegate/boot.env").write_text("ROLE=node\n")
    (folder / "graph.node").write_text(f"joins 60 0 {only_with}\n")
    (folder / "stages/joins.sh").write_text(stage)
    done = subprocess.run(
        [folder / "boot.sh", "stage", "joins"],
        env={"PATH": os.environ["PATH"], "ROLE": "node"},
        capture_output=True,
        check=False,
    )
    return done.returncode


@pytest.mark.parametrize(("comes", "said", "code"), [(True, 1, 0), (False, 1, 1), (True, 78, 78)])
def test_what_came_as_the_last_try_ended_has_come(
    tmp_path: Path, comes: bool, said: int, code: int
) -> None:
    """Unless the stage has said that nothing can mend it."""
    here = tmp_path / "joined"
    later = f"touch {here};" if comes else ""

    assert run(tmp_path, WAITS % (here, later, said)) == code


def test_a_stage_without_its_setting_says_that_it_had_nothing_to_do(tmp_path: Path) -> None:
    """The test of a baked image asks each stage for it."""
    assert run(tmp_path, "apply() { return 3; }", only_with="LUSTRE") == 0
    assert (tmp_path / "run/tidegate/how.joins").read_text() == "skip\n"


def test_a_stage_that_cannot_tell_has_failed(tmp_path: Path) -> None:
    assert run(tmp_path, "apply() { return 3; }") == 3
