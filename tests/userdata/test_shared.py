"""The stage that mounts the shared file system, run with stand-ins for the commands."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "both" / "shared.sh"
USUAL = "_netdev,noresvport,tls,iam,nosuid,nodev,accesspoint=fsap-1"


def mounted(folder: Path, zone: str, efs_zone: str) -> str:
    """The call of mount, on a machine in this zone."""
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
    told = f"imds() {{ echo {zone}; }}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{told}; source {STAGE}; apply"],
        env={
            "PATH": f"{commands}:{os.environ['PATH']}",
            "SHARED_DIR": f"{folder}/there",
            "FILE_SYSTEM": "fs-1",
            "ACCESS_POINT": "fsap-1",
            **({"EFS_ZONE": efs_zone} if efs_zone else {}),
        },
        check=True,
    )
    return calls.read_text().strip()


@pytest.mark.parametrize(
    ("zone", "efs_zone", "also"),
    [
        ("us-east-1a", "", ""),
        ("us-east-1b", "us-east-1a", ""),
        ("us-gov-east-1b", "us-gov-east-1a", ""),
        ("us-east-1-dfw-2a", "us-east-1a", ",az=us-east-1a"),
    ],
)
def test_a_node_in_a_local_zone_uses_the_mount_target_of_the_head_s_zone(
    tmp_path: Path, zone: str, efs_zone: str, also: str
) -> None:
    """EFS has none there."""
    assert (
        mounted(tmp_path, zone, efs_zone)
        == f"mount -t efs -o {USUAL}{also} fs-1:/ {tmp_path}/there"
    )
