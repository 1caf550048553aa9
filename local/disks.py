"""Volumes of the local EC2: sparse files behind loop devices, which go with their process."""

import errno
import fcntl
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

# <linux/loop.h>
_LOOP_SET_FD = 0x4C00
_LOOP_SET_STATUS64 = 0x4C04
_LOOP_CTL_GET_FREE = 0x4C82
_AUTOCLEAR = 4
# <linux/fs.h>
_BLKZEROOUT = 0x127F
_UNMOUNTED_IN_S = 20.0
_INFO_BYTES, _FLAGS_AT = 232, 52


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device of this computer, and the link under which udev shows it in a machine."""

    link: str
    major: int
    minor: int

    @property
    def name(self) -> str:
        return f"loop{self.minor}"


def ebs_link(volume_id: str) -> str:
    return f"nvme-Amazon_Elastic_Block_Store_{volume_id.replace('-', '')}"


class Disks:
    """Files in `directory` as disks. A disk is there for as long as this object is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._disks: dict[str, Disk] = {}
        self._held: list[int] = []

    def file(self, link: str) -> Path:
        """Where the content is; made by whoever comes first."""
        return self._directory / link

    def disk(self, link: str, mib: int = 256) -> Disk:
        """The disk behind `link`; a blank one when it is new."""
        if link not in self._disks:
            self._directory.mkdir(parents=True, exist_ok=True)
            file = self.file(link)
            if not file.exists():
                with file.open("wb") as made:
                    made.truncate(mib << 20)
            self._disks[link] = self._attach(link, file)
        return self._disks[link]

    def wipe(self, link: str) -> None:
        """What is on a disk is gone. A machine that has just ended may have it in use for a moment.

        Errors: OSError, when one that lives has it mounted.
        """
        size = self.file(link).stat().st_size
        device = os.open(f"/dev/{self._disks[link].name}", os.O_RDWR)
        until_s = time.monotonic() + _UNMOUNTED_IN_S
        try:
            while True:
                try:
                    fcntl.ioctl(device, _BLKZEROOUT, struct.pack("QQ", 0, size))
                    return
                except OSError as trouble:
                    if trouble.errno != errno.EBUSY or time.monotonic() > until_s:
                        raise
                time.sleep(0.1)
        finally:
            os.close(device)

    def close(self) -> None:
        for held in self._held:
            os.close(held)
        self._held.clear()

    def _attach(self, link: str, file: Path) -> Disk:
        """With autoclear, the kernel lets the file go when the last one closes the device."""
        control = os.open("/dev/loop-control", os.O_RDWR)
        backing = os.open(file, os.O_RDWR)
        try:
            for _ in range(20):  # another process may take the free one first
                minor = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
                device = os.open(f"/dev/loop{minor}", os.O_RDWR)
                try:
                    fcntl.ioctl(device, _LOOP_SET_FD, backing)
                except OSError:
                    os.close(device)
                    continue
                info = bytearray(_INFO_BYTES)
                struct.pack_into("I", info, _FLAGS_AT, _AUTOCLEAR)
                fcntl.ioctl(device, _LOOP_SET_STATUS64, bytes(info))
                self._held.append(device)
                return Disk(link, os.major(os.fstat(device).st_rdev), minor)
        finally:
            os.close(backing)
            os.close(control)
        raise RuntimeError("no free loop device")
