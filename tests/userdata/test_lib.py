"""What all stages of a boot use, run by bash."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "userdata" / "lib.sh"
GERMAN = "de_DE.UTF-8"


@pytest.mark.skipif(not shutil.which("localedef"), reason="localedef makes the language")
def test_a_boot_is_timed_in_an_image_whose_language_writes_a_comma(tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / GERMAN],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("the sources of languages are not installed")
    env = {"PATH": os.environ["PATH"], "LOCPATH": str(tmp_path), "LC_ALL": GERMAN}

    def said(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=True, env=env
        )
        return done.stdout.strip()

    assert "," in said("echo $EPOCHREALTIME")
    now_ms = int(said(f"source {LIB}; now_ms"))
    assert 0 <= time.time() - now_ms / 1000 < 60
    clock = said(
        f"source {LIB}; eval \"$(declare -f console | sed 's|>> */dev/console||')\"; console x"
    )
    assert re.fullmatch(r"tidegate \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z x", clock)
