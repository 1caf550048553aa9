"""The stage that mounts the shared file system, run with stand-ins for the commands."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.values import Shared

STAGE = Path(__file__).parents[2] / "userdata" / "both" / "shared.sh"
USUAL = "_netdev,noresvport,tls,iam,nosuid,nodev"


def mounted(folder: Path, shared: Shared) -> str:
    """The call of mount, where user data say this."""
    commands, calls = folder / "bin", folder / "calls"
    commands.mkdir()
    stubs = {
        "mount": f'echo "mount $*" >>{calls}',
        "mountpoint": "false",
        "systemd-escape": "echo there.mount",
        "systemd-run": 'while [[ $1 == -* ]]; do [[ $1 != -p ]] || shift; shift; done; exec "$@"',
    }
    for name, text in stubs.items():
        (commands / name).write_text(f"#!/bin/bash\n{text}\n")
        (commands / name).chmod(0o755)
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"source {STAGE}; apply"],
        env={
            "PATH": f"{commands}:{os.environ['PATH']}",
            "SHARED_DIR": f"{folder}/there",
            "FILE_SYSTEM": shared.file_system_id,
            "EFS_OPTIONS": shared.efs_options,
        },
        check=True,
    )
    return calls.read_text().strip()


@pytest.mark.parametrize(
    ("shared", "also"),
    [
        (Shared("fs-1"), ""),
        (Shared("fs-1", access_point_id="fsap-1"), ",accesspoint=fsap-1"),
        (Shared("fs-1", efs_zone="us-east-1a"), ",az=us-east-1a"),
    ],
)
def test_the_mount_helper_is_told_of_access_point_and_zone(
    tmp_path: Path, shared: Shared, also: str
) -> None:
    """A Local Zone has no mount target: its nodes use that of the head's zone."""
    assert mounted(tmp_path, shared) == f"mount -t efs -o {USUAL}{also} fs-1:/ {tmp_path}/there"
