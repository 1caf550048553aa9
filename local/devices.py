"""The files of a machine's /dev: made here, where none of them takes a process."""

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from local.disks import Disk

_CHARACTER = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}


def make_devices(folder: Path, *, gpus: int, disks: Iterable[Disk]) -> None:
    """The folder anew, with what a machine finds in its /dev when it starts."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("pts", "shm", "disk/by-id"):
        (folder / name).mkdir(parents=True)
    for name, numbers in _CHARACTER.items():
        _make(folder / name, stat.S_IFCHR | 0o666, *numbers)
    for number in range(gpus):
        _make(folder / f"nvidia{number}", stat.S_IFCHR | 0o666, 195, number)
    for disk in disks:
        _make(folder / disk.name, stat.S_IFBLK | 0o660, disk.major, disk.minor)
        (folder / "disk/by-id" / disk.link).symlink_to(f"../../{disk.name}")
    for name, target in _LINKS.items():
        (folder / name).symlink_to(target)
    (folder / "console").touch()


def _make(file: Path, mode: int, major: int, minor: int) -> None:
    os.mknod(file, mode, os.makedev(major, minor))
    file.chmod(stat.S_IMODE(mode))  # whatever our umask is
