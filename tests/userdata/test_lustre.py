"""The stage that mounts FSx for Lustre, run with stand-ins for the commands."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read_stage

STAGE = Path(__file__).parents[2] / "userdata" / "both" / "lustre.sh"
HERE = "fs-1.fsx.us-east-1.amazonaws.com@tcp:/fsx"


def run(folder: Path, body: str, lacks: str = "") -> int:
    """Exit code of `body` after the stage's functions; calls are in `folder/calls`."""
    commands = folder / "bin"
    commands.mkdir()
    for name, does in (
        ("mount", f'echo mount "$@" >>{folder}/calls'),
        ("modinfo", "[ -z $LACKS ]"),
        ("mount.lustre", ""),
    ):
        (commands / name).write_text(f"#!/bin/sh\n{does}\n")
        (commands / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", f"refuse() {{ exit 78; }}; source {STAGE}; {body}"],
        env={
            "LACKS": lacks,
            "PATH": f"{commands}:{os.environ['PATH']}",
            "LUSTRE": f"{HERE}\t{folder}/fsx\t\n{HERE}2\t{folder}/old\tro\n",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode


def test_without_a_file_system_there_is_nothing_to_do():
    """The runner leaves it out then: see test_lib.py."""
    assert read_stage("both/lustre").only_with == "LUSTRE"


def test_what_is_not_mounted_is_mounted(tmp_path: Path):
    assert run(tmp_path, "check || apply") == 0
    usual = "mount -t lustre -o _netdev,noatime,flock,nosuid,nodev"
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"{usual} {HERE} {tmp_path}/fsx",
        f"{usual},ro {HERE}2 {tmp_path}/old",
    ]
    assert (tmp_path / "fsx").is_dir()
    assert (tmp_path / "old").is_dir()


def test_without_a_module_for_the_kernel_nothing_is_mounted(tmp_path: Path):
    """An image of one's own, or a hook that brought none where AWS's packages have none either."""
    assert run(tmp_path, "apply", lacks="lustre.ko") == 78
    assert not (tmp_path / "calls").exists()


PACKAGES = STAGE.parent / "packages.sh"
# What installs nothing; its apt knows Lustre's packages, and that of this kernel where KNOWN.
NOTHING = """
install_with() { :; }; add_slurm_user() { :; }; put_file() { cat >/dev/null; }
refuse() { exit 78; }
apt-cache() { [[ $2 == lustre-client-utils || -n $KNOWN ]] && echo "$2"; }
rm() { :; }
"""


@pytest.mark.parametrize(
    ("known", "hook", "code"),
    [("", "", 78), ("", "hook", 0), ("yes", "", 1), ("yes", "hook", 1)],
)
def test_what_could_not_be_fetched_is_tried_again_and_what_is_not_there_is_left_to_a_hook(
    tmp_path: Path, known: str, hook: str, code: int
):
    """A mirror that is away for a moment does not leave it to a hook that brings no client."""
    (tmp_path / "modinfo").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "mount.lustre").write_text("#!/bin/sh\n")
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    for each in tmp_path.iterdir():
        each.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUN_DIR": str(tmp_path),
        "PROGRAMS": "mount.lustre",
        "PACKAGES": "lustre-client-utils",
        "ON_NODE_START": hook,
        "KNOWN": known,
        "SLURM_RELEASE": "",
    }
    line = f"set -uo pipefail; source {PACKAGES}; {NOTHING}\napply"

    assert subprocess.run(["bash", "-c", line], env=env, check=False).returncode == code
