"""The stage that mounts the site's own file systems, run with stand-ins for the commands."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "both" / "file_systems.sh"
CLIENTS = ("mount.nfs", "mount.s3files", "mount-s3")


def run(
    folder: Path, kind: str, source: str, *, without: str = "", has_scratch: bool = False
) -> tuple[int, str, list[str]]:
    """Exit code, output and calls of one mount; systemd-run does what it is given in its scope."""
    commands = folder / "bin"
    commands.mkdir()
    calls = folder / "calls"
    stubs = {
        **dict.fromkeys((*CLIENTS, "mount", "install"), f'echo "$(basename "$0") $*" >>{calls}'),
        "systemd-run": 'while [[ $1 == -* ]]; do [[ $1 != -p ]] || shift; shift; done; exec "$@"',
        "mountpoint": f"[[ $2 == /scratch ]] && {'true' if has_scratch else 'false'}",
    }
    for name in stubs.keys() - {without}:
        command = commands / name
        command.write_text(f"#!/bin/bash\n{stubs[name]}\n")
        command.chmod(0o755)
    line = f"{kind}\t{source}\t{folder}/there\tro\n"
    done = subprocess.run(
        ["bash", "-c", f"refuse() {{ echo $*; exit 78; }}; source {STAGE}; apply"],
        env={"PATH": f"{commands}:{os.environ['PATH']}", "FILE_SYSTEMS": line},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, calls.read_text().splitlines() if calls.exists() else []


def escaped(path: Path) -> str:
    """As systemd-escape --path writes it."""
    done = subprocess.run(
        ["systemd-escape", "--path", path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_bucket_is_mounted_to_be_read_by_all(tmp_path: Path) -> None:
    code, _, calls = run(tmp_path, "s3", "data-sets")

    assert (code, calls) == (0, [f"mount-s3 data-sets {tmp_path}/there --read-only --allow-other"])


def test_what_is_read_of_a_bucket_stays_on_the_node_s_own_disk_for_root_alone(
    tmp_path: Path,
) -> None:
    _, _, calls = run(tmp_path, "s3", "data-sets/imagenet/v2", has_scratch=True)

    # Mountpoint empties the cache folder that it is given: no two may have the same.
    cache = f"/scratch/.tidegate-s3/{escaped(tmp_path / 'there')}"
    assert calls == [
        f"install -d -m 700 /scratch/.tidegate-s3 {cache}",
        f"mount-s3 data-sets {tmp_path}/there --read-only --allow-other"
        f" --prefix imagenet/v2/ --cache {cache}",
    ]


def test_an_s3_file_system_goes_by_its_helper_s_own_security(tmp_path: Path) -> None:
    _, _, calls = run(tmp_path, "s3files", "fs-0a1b2c3d4e5f60001")

    options = "_netdev,nosuid,nodev,ro"
    assert calls == [f"mount -t s3files -o {options} fs-0a1b2c3d4e5f60001 {tmp_path}/there"]


@pytest.mark.parametrize(
    ("kind", "client"), [("nfs", "mount.nfs"), ("s3files", "mount.s3files"), ("s3", "mount-s3")]
)
def test_an_image_without_the_client_is_refused_in_words(
    tmp_path: Path, kind: str, client: str
) -> None:
    code, said, calls = run(tmp_path, kind, "x", without=client)

    assert (code, calls) == (78, [])
    assert f"({client})" in said or f"(no {client})" in said
