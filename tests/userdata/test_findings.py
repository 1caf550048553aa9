"""What a node makes of lines of its kernel's log, as NVIDIA's driver writes them."""

import re
import subprocess
from pathlib import Path

import pytest

from tidegate.core.model.drain_reason import SENTENCE_MAX_CHARS

FOLDER = Path("userdata/node")


def rows(name: str) -> list[list[str]]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line.split(maxsplit=3) for line in lines if not line.startswith("#")]


ROWS = rows("xids")
NEURON = (
    "NEURON_HW_ERR={} instance-id=i-0592464924bd45322 hostname=ip-172-31-61-252 nd-id=5 nc-id=0"
    " serial-num=19fcda00f5ff6eb9 action={}"
)
NVLINK = "NVRM: Xid (PCI:0000:04:00): {}, {} {} XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)"


def judged(line: str) -> tuple[str, str]:
    """The verdict on a line, and the sentence about it."""
    script = 'source "$0"; read_errors; judge "$1"; printf "%s|%s" "$verdict" "$finding"'
    done = subprocess.run(
        ["bash", "-euc", script, str(FOLDER / "findings.sh"), line],
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, _, finding = done.stdout.partition("|")
    return verdict, finding


def test_each_xid_has_one_row_with_a_verdict_and_a_remedy() -> None:
    codes = [int(code) for code, *_ in ROWS]

    assert codes == sorted(set(codes))
    assert {verdict for _, verdict, *_ in ROWS} == {"ignore", "tell", "drain", "says"}
    for _, verdict, remedy, words in ROWS:
        asked = {"reset", "reboot", "replace"} if verdict in ("drain", "says") else set()
        assert remedy in (asked or {"none", "restart-app"})
        assert re.fullmatch(r"[A-Z][\w ()/.-]+", words)


@pytest.mark.parametrize(
    ("line", "verdict", "says"),
    [
        (
            "NVRM: Xid (PCI:0000:00:1e): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
            "drain",
            "Xid 79: GPU has fallen off the bus (NVIDIA's remedy: reboot)",
        ),
        (
            "[   12.3] ip-10-0-0-7 kernel: NVRM: Xid (PCI:0000:00:1e): 63, pid=7, name=x, Row",
            "tell",
            "Xid 63: GPU memory remapping event",
        ),
        ("[   12.3] vm NVRM: Xid (PCI:0000:00:1e): 79, by /dev/kmsg", "drain", "Xid 79"),
        ("NVRM: Xid (PCI:0000:00:1e): 13, pid=7, Graphics SM Warp Exception", "ignore", "Xid 13"),
        ("NVRM: Xid (0000:03:00): 48, Channel 00000001", "drain", "Xid 48: Double bit ECC"),
        ("NVRM: Xid (PCI:0000:00:1e): 999, something new", "tell", "Xid 999: unknown to us"),
        (NVLINK.format(145, "RLW_REMAP", "Nonfatal"), "tell", "Xid 145: NVLink RLW error"),
        (NVLINK.format(145, "RLW_REMAP", "Fatal"), "drain", "Xid 145: NVLink RLW error (NV"),
        (NVLINK.format(149, "NETIR_LINK_EVT", "Fatal"), "drain", "Xid 149"),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x4 (Drain and Reset)",
            "drain",
            "Xid 154: the driver asks for: Drain and Reset (NVIDIA's remedy: drain and reset)",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset"
            " Required) to 0x0 (None)",
            "tell",
            "Xid 154: the driver asks for: None",
        ),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
            "tell",
            "SXid 20034 of an NVSwitch: Fatal, Link 30 LTSSM Fault Up",
        ),
        (
            "[   12.3] ip-10-0-0-7 kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22003, Fatal,"
            " Link 00 Minion Halt",
            "drain",
            "SXid 22003 of an NVSwitch: Micro-controller of a switch has halted (NVIDIA's remedy:",
        ),
        (
            "[   5.0] n kernel: process '/home/x/nvidia-nvswitch0: SXid (a): 22003, ' has an"
            " executable stack",
            "ignore",
            "",
        ),
        (
            "[   5.0] n kernel: process '/home/x/NVRM: Xid (a): 79, ' has an executable stack",
            "ignore",
            "",
        ),
        ("EXT4-fs (nvme0n1p1): mounted, Xid (none)", "ignore", ""),
        ("", "ignore", ""),
    ],
)
def test_a_line_is_judged(line: str, verdict: str, says: str) -> None:
    found, finding = judged(line)

    assert found == verdict
    assert finding.startswith(says)
    assert len(finding) < SENTENCE_MAX_CHARS


def test_what_is_fatal_to_all_gpus_drains_and_what_is_fatal_to_some_links_does_not() -> None:
    """By NVIDIA's Fabric Manager guide; above the Xids, which end below 200."""
    codes = {int(code) for code, *_ in ROWS if int(code) > 1000}

    assert codes == {10003, 12020, 22003, 22011, *range(23001, 23018)}
    assert {verdict for code, verdict, *_ in ROWS if int(code) in codes} == {"drain"}


def test_what_a_program_does_wrong_ends_no_node() -> None:
    """Xids that a job can bring about at will, by NVIDIA's catalog."""
    assert {v for code, v, *_ in ROWS if code in ("13", "31", "43", "45", "94")} == {"ignore"}


def test_each_neuron_error_has_one_row_with_a_verdict_and_a_remedy() -> None:
    names = [name for name, *_ in rows("neuron_errors")]

    assert len(names) == len(set(names))
    for name, verdict, remedy, words in rows("neuron_errors"):
        assert re.fullmatch(r"[A-Z_]+", name)
        assert (verdict, remedy) in (("drain", "replace"), ("drain", "reboot"), ("tell", "none"))
        assert re.fullmatch(r"[A-Z][\w ,/.-]+", words)


@pytest.mark.parametrize(
    ("line", "verdict", "says"),
    [
        (
            NEURON.format("SRAM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE"),
            "drain",
            "Neuron SRAM_UNCORRECTABLE_ERROR: Uncorrectable error in SRAM, device 5 (AWS's remedy: "
            "replace)",
        ),
        (
            "[   12.3] ip-10-0-0-7 kernel: 2026-11-23T08:15:00.123Z "
            + NEURON.format("HBM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE"),
            "drain",
            "Neuron HBM_UNCORRECTABLE_ERROR: Uncorrectable error in HBM, device 5 (AWS's remedy: ",
        ),
        ("kernel: NEURON_HW_ERR=NC_UNCORRECTABLE_ERROR", "drain", "Neuron NC_UNCORRECTABLE_ERROR"),
        (NEURON.format("DMA_ERROR", "TERMINATE_INSTANCE"), "drain", "Neuron DMA_ERROR: A DMA eng"),
        (
            NEURON.format("HANG_ON_COLLECTIVES", "NONE"),
            "tell",
            "Neuron HANG_ON_COLLECTIVES: A",
        ),
        (
            NEURON.format("NEW_ERROR", "TERMINATE_INSTANCE"),
            "drain",
            "Neuron NEW_ERROR: unknown to us, device 5 (AWS's remedy: replace)",
        ),
        (
            NEURON.format("NEW_ERROR", "REBOOT_INSTANCE"),
            "drain",
            "Neuron NEW_ERROR: unknown to us, device 5 (AWS's remedy: reboot)",
        ),
        (NEURON.format("NEW_ERROR", "NONE"), "tell", "Neuron NEW_ERROR: unknown to us, device 5"),
        (
            "[   5.0] n kernel: process '/home/a NEURON_HW_ERR=DMA_ERROR ' has an executable stack",
            "ignore",
            "",
        ),
    ],
)
def test_a_line_of_neuron_s_runtime_is_judged(line: str, verdict: str, says: str) -> None:
    found, finding = judged(line)

    assert found == verdict
    assert finding.startswith(says)
    assert len(finding) < SENTENCE_MAX_CHARS
