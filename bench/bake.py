"""Bakes an image in a folder over this computer's root, by the component's own commands.

    python -m bench.bake

Root, on Debian or Ubuntu; two minutes. What a plain image lacks is taken away there first, so that
the steps bring it back by apt. Prints each step, its time and its exit code, and what it left.

What is not real: no driver (its modules are for EC2's kernel), a stand-in for `mount.efs` (AWS's
repository has packages for Ubuntu alone), no systemd that runs, and no Image Builder around it.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from userdata.image import ImageValues, image_component
from userdata.monitoring import EXPORTER
from userdata.packages import NODE_PACKAGES

ROOT = Path(__file__).parents[1]
STAND_INS = ("mount.efs",)
VALUES = ImageValues("bench", "/aws/service/any", more=(EXPORTER,))
# curl is what apt may need to reach a mirror; the other is in no repository of Debian.
KEPT = ("curl", "amazon-efs-utils")


@contextmanager
def tree() -> Iterator[Path]:
    """This computer's root, with a layer for what is written."""
    with TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        for each in ("upper", "work", "root"):
            (folder / each).mkdir()
        options = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(folder / "root"))
        try:
            _run("mount", "-t", "proc", "proc", f"{folder}/root/proc")
            _run("mount", "--rbind", "--make-rslave", "/dev", f"{folder}/root/dev")
            _run("mount", "-t", "tmpfs", "tmpfs", f"{folder}/root/run")
            yield folder / "root"
        finally:
            subprocess.run(["umount", "-R", "-l", str(folder / "root")], check=True)


def make_plain(root: Path) -> None:
    """As an image without any of it; of EFS a stand-in, which no repository here has."""
    gone = [each for each in NODE_PACKAGES.split() if each not in KEPT]
    shell(root, f"apt-get -q -y purge {' '.join(gone)} munge slurm-wlm-basic-plugins >/dev/null")
    for name in STAND_INS:
        (root / "usr/sbin" / name).write_bytes((ROOT / "local" / "bin" / name).read_bytes())
        (root / "usr/sbin" / name).chmod(0o755)


def bake(root: Path) -> list[tuple[str, int]]:
    """The steps of all phases in their order; name and exit code of each."""
    phases: Any = image_component(VALUES)["phases"]
    ended: list[tuple[str, int]] = []
    for phase in phases:
        for step in phase["steps"]:
            began_s = time.monotonic()
            code, said = shell(root, "\n".join(step["inputs"]["commands"]))
            name = f"{phase['name']}/{step['name']}"
            print(f"{name:20} {time.monotonic() - began_s:6.1f} s  exit {code}")
            if code:
                print(said[-2000:])
            ended.append((name, code))
    return ended


def shell(root: Path, script: str) -> tuple[int, str]:
    """As Image Builder's agent runs a step, in the tree and with processes of its own."""
    done = subprocess.run(
        [
            *("unshare", "--pid", "--fork", "--kill-child"),
            "chroot",
            str(root),
            "bash",
            "-c",
            script,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
    )
    return done.returncode, done.stdout


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def main() -> int:
    with tree() as root:
        make_plain(root)
        _, lacked = shell(root, "command -v slurmd munged nft xfs_repair mdadm; true")
        ended = bake(root)
        _, left = shell(
            root,
            "slurmd -V; ls /etc/munge; ls -d /opt/tidegate/*; cat /etc/systemd/system-preset/10-*;"
            " ls /etc/systemd/system/multi-user.target.wants",
        )
    print(f"before: {' '.join(lacked.split()) or 'none of it'}\nleft:\n{left}")
    return int(any(code for _, code in ended))


if __name__ == "__main__":
    sys.exit(main())
