"""An image whose bash is too old for a boot says so, and its node ends."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read


def run(folder: Path, version: str, role: str) -> tuple[int, str, str]:
    """Exit code, console, and what systemctl was asked, of a runner under such a bash."""
    text = read("boot.sh").replace("BASH_VERSINFO", "OF_IMAGE")
    for path in ("/dev/console", "/etc/tidegate/boot.env"):
        text = text.replace(path, str(folder / path.rpartition("/")[2]))
    (folder / "boot.sh").write_text(text)
    (folder / "lib.sh").write_text("echo goes on; exit 3\n")
    (folder / "boot.env").write_text(f"ROLE={role}\n")
    (folder / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n')
    (folder / "systemctl").chmod(0o755)
    major, minor = version.split(".")
    done = subprocess.run(
        ["bash", "-c", f"OF_IMAGE=({major} {minor}); source {folder}/boot.sh start"],
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    console, asked = folder / "console", folder / "asked"
    return (
        done.returncode,
        console.read_text() if console.exists() else "",
        asked.read_text().strip() if asked.exists() else "",
    )


@pytest.mark.parametrize("version", ["4.2", "5.0"])
def test_a_node_s_image_with_an_older_bash_says_so_and_ends(tmp_path: Path, version: str) -> None:
    code, console, asked = run(tmp_path, version, "node")

    assert (code, asked) == (78, "poweroff")
    assert "a boot needs 5.1" in console


def test_a_head_stays_up_so_that_someone_can_look(tmp_path: Path) -> None:
    code, console, asked = run(tmp_path, "5.0", "head")

    assert (code, asked) == (78, "")
    assert "a boot needs 5.1" in console


@pytest.mark.parametrize("version", ["5.1", "6.0"])
def test_newer_ones_go_on(tmp_path: Path, version: str) -> None:
    assert run(tmp_path, version, "node") == (3, "", "")
