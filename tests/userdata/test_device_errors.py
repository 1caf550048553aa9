"""What a node makes of what the kernel says of its disks and EFA devices, in its own words.

Lines are of linux/drivers/nvme/host/pci.c and core.c, block/blk-core.c, fs/xfs, fs/ext4, fs/jbd2,
drivers/md/raid0.c and drivers/infiniband/hw/efa/efa_com.c, where no place is named beside them.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.userdata.findings import NODE_FINDINGS
from tidegate.core.model.drain_reason import SENTENCE_MAX_CHARS
from userdata.node_bundle import FINDINGS

FOLDER = Path("userdata/node")
DEVICES = ("store", "root", "efa", "any")
ROWS = [
    line.split(maxsplit=6)
    for line in FINDINGS.read_text().splitlines()
    if line.split()[0] in DEVICES
]
# Two instance stores, an array over them with /scratch, and the volume with the system.
DISKS = "nvme1 store\nnvme2 store\nmd127 store\ndm-0 store\nnvme0 root\n"
# Only lines that hold one of SIGNS are looked at.
JUDGE = """
source "$0"; read_findings
while IFS= read -r line; do
    verdict=ignore source= finding=
    ! grep -qF "$SIGNS" <<<"$line" || judge "$line"
    echo "$verdict|$source|$finding"
done
"""

type Judged = tuple[str, str, str]


def judged(run_dir: Path, *lines: str, disks: str = DISKS) -> list[Judged]:
    """Of each line the verdict, who says it, and the sentence."""
    (run_dir / "disks").write_text(disks)
    done = subprocess.run(
        ["bash", "-uc", JUDGE, str(FOLDER / "findings.sh")],
        env={**os.environ, "RUN_DIR": str(run_dir), "FINDINGS": NODE_FINDINGS},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    found = [line.split("|", 2) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return [(verdict, source, finding) for verdict, source, finding in found]


def test_each_row_says_of_which_device_with_which_remedy() -> None:
    assert {of for of, *_ in ROWS} == set(DEVICES)
    for of, name, action, *_, pattern in ROWS:
        remedies = {"store": "replace", "root": "reboot", "efa": "reboot"}
        assert action in (remedies.get(of), "tell"), "an unknown disk ends no node"
        assert re.fullmatch(r"[a-z-]+", name)
        re.compile(pattern)
        groups = re.findall(r"(?<!\\)\(|%", pattern)
        assert groups[0] == "%", "the first group is the device"
        assert groups.count("%") == 1


FATAL = [
    (  # lore.kernel.org, "nvme-pci: Disabling device after reset failure"
        "nvme nvme1: Disabling device after reset failure: -19",
        "nvme1 (instance store): Disabling device after reset failure: -19 (degraded;"
        " remedy: replace)",
    ),
    (  # linux-nvme/nvme-cli issue 151
        "[11508.697977] ip-10-0-0-7 kernel: nvme nvme2: Removing after probe failure status: -19",
        "nvme2 (instance store): Removing after probe failure status: -19 (degraded;"
        " remedy: replace)",
    ),
    (  # Drive-Trust-Alliance/sedutil issue 507
        "critical medium error, dev nvme1n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio"
        " class 2",
        "nvme1 (instance store): critical medium error, dev nvme1n1, sector 0 op 0x0:(READ)",
    ),
    (  # raspberrypi/rpi-eeprom issue 378, of a kernel of before 5.16
        "blk_update_request: critical medium error, dev nvme1n1, sector 534080 op 0x1:(WRITE)"
        " flags 0x800 phys_seg 1 prio class 0",
        "nvme1 (instance store): critical medium error, dev nvme1n1, sector 534080",
    ),
    (  # oxidecomputer/crucible issue 1844
        "I/O error, dev nvme1n1, sector 4217392 op 0x1:(WRITE) flags 0x9800 phys_seg 7 prio"
        " class 2",
        "nvme1 (instance store): I/O error, dev nvme1n1, sector 4217392 op 0x1:(WRITE)",
    ),
    (  # siderolabs/talos pull request 8733
        "XFS (nvme1n1): Filesystem has been shut down due to log error (0x2).",
        "nvme1 (instance store): XFS (nvme1n1): Filesystem has been shut down",
    ),
    (  # linux-fsdevel, 2024-01-03
        "XFS (md127): Log I/O Error (0x6) detected at xfs_fs_goingdown+0x93/0xd0 [xfs]"
        " (fs/xfs/xfs_fsops.c:458).  Shutting down filesystem.",
        "md127 (instance store): XFS (md127): Log I/O Error (0x6) detected",
    ),
    (  # kubernetes/node-problem-detector pull request 845
        "XFS (dm-0): I/O Error Detected. Shutting down filesystem",
        "dm-0 (instance store): XFS (dm-0): I/O Error Detected. Shutting down filesystem (deg",
    ),
    (
        "md: md127: raid0 array has a missing/failed member",
        "md127 (instance store): md: md127: raid0 array has a missing/failed member (degraded",
    ),
    (
        "md/raid0md127: Disk failure on nvme1n1 detected, failing array.",
        "md127 (instance store): md/raid0md127: Disk failure on nvme1n1 detected",
    ),
    ("Aborting journal on device dm-0-8.", "dm-0 (instance store): Aborting journal on"),
    (
        "EXT4-fs (dm-0): Remounting filesystem read-only",
        "dm-0 (instance store): EXT4-fs (dm-0): Remounting filesystem read-only (degraded; rem",
    ),
    (  # oxidecomputer/crucible issue 1844
        "Aborting journal on device nvme0n1p1-8.",
        "nvme0 (disk of the system): Aborting journal on device nvme0n1p1-8. (degraded; remedy:"
        " reboot)",
    ),
    (
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
        "nvme0 (disk of the system): EXT4-fs (nvme0n1p1): Remounting filesystem read-only (d",
    ),
    (
        "XFS (nvme0n1p1): Filesystem has been shut down due to log error (0x2).",
        "nvme0 (disk of the system): XFS (nvme0n1p1): Filesystem has been shut down",
    ),
]


def test_a_disk_that_is_of_no_use_drains_its_node(tmp_path: Path) -> None:
    lines = [line for line, _ in FATAL]

    for (line, says), (verdict, source, finding) in zip(
        FATAL, judged(tmp_path, *lines), strict=True
    ):
        assert (verdict, source) == ("drain", "nvme"), line
        assert finding.startswith(says)
        assert len(finding) < SENTENCE_MAX_CHARS
        assert not set(finding) & set('[]"='), "Slurm's records cannot carry it"


TRANSIENT = [
    # oxidecomputer/propolis issue 578, raspberrypi/linux issue 6661, a kernel of 6.x
    "nvme {}: I/O 775 QID 2 timeout, aborting",
    "nvme {}: I/O 193 (I/O Cmd) QID 4 timeout, aborting",
    "nvme {}: I/O tag 465 (71d1) opcode 0x1 (I/O Cmd) QID 4 timeout, aborting req_op:WRITE(1)"
    " size:94208",
    "nvme {}: I/O 0 QID 0 timeout, reset controller",
    "nvme {}: I/O 5 QID 2 timeout, completion polled",
    "nvme {}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
    "nvme {}: Device not ready; aborting reset, CSTS=0x1",
    # Read ahead, and not tried again: oxidecomputer/crucible issue 1844
    "I/O error, dev {}n1, sector 131209936 op 0x0:(READ) flags 0x80700 phys_seg 25 prio class 0",
    "I/O error, dev {}n1, sector 8 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 2",
    "Buffer I/O error on dev {}n1, logical block 0, async page read",
]
OF_A_VOLUME = [
    "nvme {}: Disabling device after reset failure: -19",
    "I/O error, dev {}n1, sector 4217392 op 0x1:(WRITE) flags 0x9800 phys_seg 7 prio class 2",
    "critical medium error, dev {}n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "Buffer I/O error on dev {}n1p1, logical block 10362505, lost async page write",
    "EXT4-fs error (device {}n1p1): __ext4_find_entry:1682: inode #2: comm x: reading directory",
]


def test_what_a_disk_may_recover_from_is_told(tmp_path: Path) -> None:
    """nvme0 is a volume of EBS with the system, nvme9 one that is neither: both come back."""
    asked = [(line, disk) for line in TRANSIENT for disk in ("nvme0", "nvme1", "nvme9")]
    asked += [(line, disk) for line in OF_A_VOLUME for disk in ("nvme0", "nvme9")]
    asked.append(("XFS ({}n1): Filesystem has been shut down due to log error (0x2).", "nvme9"))
    lines = [line.format(disk) for line, disk in asked]

    for line, (_, disk), found in zip(lines, asked, judged(tmp_path, *lines), strict=True):
        assert found[0] == "tell", line
        assert found[2].startswith(disk)


HARMLESS = [
    "nvme nvme1: failed to set APST feature (2)",
    "nvme nvme1: Abort status: 0x0",
    "nvme nvme1: 16/0/0 default/read/poll queues",
    "nvme nvme1: pci function 0000:00:1f.0",
    "nvme nvme1: Shutdown timeout set to 8 seconds",
    "operation not supported error, dev nvme1n1, sector 0 op 0x9:(WRITE_ZEROES) flags 0x0",
    "XFS (nvme1n1): Mounting V5 Filesystem",
    "EXT4-fs (nvme0n1p1): mounted filesystem with ordered data mode",
    "nvme1n1: I/O Cmd(0x2) @ LBA 0, 8 blocks, I/O Error (sct 0x2 / sc 0x86) DNR",
    "process '/home/x/critical medium error, dev nvme1n1, ' started with executable stack",
    "[ 5.0] n kernel: process 'nvme nvme1: Disabling device after reset failure' started",
    "critical medium error, dev",
    # Another driver's, in the same words.
    "ena 0000:00:05.0 eth0: Admin queue is closed",
    "",
]


def test_what_is_no_error_is_not_even_told(tmp_path: Path) -> None:
    found = judged(tmp_path, *HARMLESS)

    assert [line for line, each in zip(HARMLESS, found, strict=True) if each[0] != "ignore"] == []


def test_where_nothing_was_noted_no_disk_ends_a_node(tmp_path: Path) -> None:
    found = judged(tmp_path, *(line for line, _ in FATAL), disks="")

    assert {verdict for verdict, *_ in found} <= {"tell", "ignore"}


RDMA = "efa 0000:00:1d.0 rdmap0s29: "
EFA = [
    (
        "The device didn't send any completion for admin cmd CREATE_QP(1) status 0 (id: 7, sq"
        " producer: 8, sq consumer: 7, cq consumer: 7)",
        "drain",
    ),
    (
        "The device sent a completion but the driver didn't receive any MSI-X interrupt for"
        " admin cmd REG_MR(7) status 1 (id: 7, sq producer: 8, sq consumer: 7, cq consumer: 7)",
        "drain",
    ),
    ("Wait for completion (polling) timeout", "drain"),
    ("Admin queue is closed", "drain"),
    ("comp_ctx is NULL. Changing the admin queue running state", "drain"),
    ("Device isn't ready, can't reset device", "drain"),
    ("Reset indication didn't turn off", "drain"),
    ("Unregister ib device", "tell"),
    ("Unknown event was received or event with unimplemented handler", "tell"),
    # A program that asks for too much, as in aws/aws-ofi-nccl issue 22.
    ("Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12", "ignore"),
    ("IB device registered", "ignore"),
]


@pytest.mark.parametrize(
    "prefix", [RDMA, f"[  9.1] ip-10-0-0-7 kernel: {RDMA}", "infiniband efa_0: "]
)
def test_an_efa_device_that_takes_no_command_drains_its_node(prefix: str, tmp_path: Path) -> None:
    found = judged(tmp_path, *(prefix + line for line, _ in EFA))

    for (line, asked), (verdict, source, finding) in zip(EFA, found, strict=True):
        assert verdict == asked, line
        assert finding.endswith(" (degraded; remedy: reboot)") == (verdict == "drain")
        assert verdict == "ignore" or (source == "efa" and line[:60] in finding)
