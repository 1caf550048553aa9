"""What a node makes of lines of its kernel's log, as NVIDIA's driver writes them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.userdata.findings import NODE_FINDINGS
from tidegate.core.model.drain_reason import SENTENCE_MAX_CHARS
from userdata.node_bundle import FINDINGS

FOLDER = Path("userdata/node")
ACTIONS = ("ignore", "tell", "reset", "reboot", "replace")
SOURCES = ("xid", "sxid", "neuron", "store", "root", "efa", "any", "gpu", "node")


ROWS = [
    line.split(maxsplit=6) for line in FINDINGS.read_text().splitlines() if not line.startswith("#")
]
NEURON = (
    "NEURON_HW_ERR={} instance-id=i-0592464924bd45322 hostname=ip-172-31-61-252 nd-id=5 nc-id=0"
    " serial-num=19fcda00f5ff6eb9 action={}"
)
NVLINK = "NVRM: Xid (PCI:0000:04:00): {}, {} {} XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)"


def of(*sources: str) -> dict[str, list[str]]:
    """By finding, what follows: action, severity, retest, asked, words. The last of equal names."""
    return {name: rest for source, name, *rest in ROWS if source in sources}


def judged(line: str, own: str = "") -> tuple[str, str]:
    """The verdict on a line, and the sentence about it. `own`: the cluster file's actions."""
    script = 'source "$0"; read_findings; judge "$1"; printf "%s|%s" "$verdict" "$finding"'
    done = subprocess.run(
        ["bash", "-euc", script, str(FOLDER / "findings.sh"), line],
        env={**os.environ, "FINDINGS": NODE_FINDINGS, "HEALTH_ACTIONS": own},
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, _, finding = done.stdout.partition("|")
    return verdict, finding


def test_each_row_says_what_follows_how_grave_it_is_and_what_shows_that_it_is_mended() -> None:
    for source, name, action, severity, retest, asked, words in ROWS:
        row = f"{source} {name}"
        drains = action not in ("ignore", "tell")
        assert drains == (severity in ("degraded", "fatal")), row
        assert drains or severity in ("none", "job", "warning"), row
        assert drains or retest == "none", row
        is_replaced = action == "replace" or source in ("neuron", "node kernel")
        assert not is_replaced or retest == "none", f"{row}: another machine is new"
        assert action.removeprefix("says/") in (*ACTIONS, "says"), row
        assert retest in ("gate", "diag", "none"), row
        assert asked == "log" or source in ("gpu", "node"), row
        assert source in SOURCES, row
        assert words, row


def test_what_the_gate_is_said_to_test_again_is_what_it_asks() -> None:
    """Of the kernel's log it asks all."""
    checks = of("gpu", "node")

    untested = [n for n, row in checks.items() if row[2] == "gate" and "boot" not in row[3]]

    assert untested == []
    assert "boot" in checks["kernel"][3]


def test_each_check_of_the_table_is_there_and_each_check_is_in_the_table() -> None:
    there = set(re.findall(r"^check_(\w+)\(\)", (FOLDER / "checks.sh").read_text(), re.MULTILINE))

    assert set(of("gpu", "node")) == there


@pytest.mark.parametrize(
    ("when", "gpus", "asked"),
    [
        ("end", 4, "ecc"),
        ("end", 0, ""),
        ("run", 0, "efa shared scratch disk owner_rule files_rule"),
        (
            "boot",
            4,
            "pci gpus facts driver ecc rows throttle fabric fabric_state mig diag kernel neurons"
            " efa shared disk owner_rule files_rule clock",
        ),
    ],
)
def test_when_a_check_is_asked_the_table_says(when: str, gpus: int, asked: str) -> None:
    assert asked_of(when, gpus=gpus) == asked.split()


def asked_of(when: str, *, gpus: int = 4, own: str = "") -> list[str]:
    script = 'source "$0"; read_findings; checks_of "$1"'
    done = subprocess.run(
        ["bash", "-euc", script, str(FOLDER / "findings.sh"), when],
        env={**os.environ, "FINDINGS": NODE_FINDINGS, "GPUS": str(gpus), "HEALTH_ACTIONS": own},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_each_xid_has_one_row() -> None:
    codes = [int(name) for source, name, *_ in ROWS if source == "xid" and name != "other"]

    assert codes == sorted(set(codes))
    assert {action for action, *_ in of("xid").values()} == {*ACTIONS, "says/reset"}
    assert {asked for *_, asked, _ in of("xid").values()} == {"log"}
    for *_, words in of("xid").values():
        assert re.fullmatch(r"[A-Z][\w ()/.-]+|unknown to us", words)


@pytest.mark.parametrize(
    ("line", "verdict", "says"),
    [
        (
            "NVRM: Xid (PCI:0000:00:1e): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
            "drain",
            "Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)",
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
        (NVLINK.format(145, "RLW_REMAP", "Fatal"), "drain", "Xid 145: NVLink RLW error (fatal; NV"),
        (NVLINK.format(149, "NETIR_LINK_EVT", "Fatal"), "drain", "Xid 149"),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x4 (Drain and Reset)",
            "drain",
            "Xid 154: the driver asks for: Drain and Reset (fatal; NVIDIA's remedy: reset)",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x1 (GPU Reset Required)",
            "drain",
            "Xid 154: the driver asks for: GPU Reset Required (fatal; NVIDIA's remedy: reset)",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x1 (PF FLR)",
            "drain",
            "Xid 154: the driver asks for: PF FLR (fatal; NVIDIA's remedy: reset)",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x2 (Node Reboot Required)",
            "drain",
            "Xid 154: the driver asks for: Node Reboot Required (fatal; NVIDIA's remedy: reboot)",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None)"
            " to 0x3 (Drain P2P)",
            "drain",
            "Xid 154: the driver asks for: Drain P2P (fatal; NVIDIA's remedy: drain p2p)",
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
            "SXid 22003 of an NVSwitch: Micro-controller of a switch has halted (fatal; NVIDIA's",
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
    codes = {int(code) for code in of("sxid") if code != "other"}

    assert codes == {10003, 12020, 22003, 22011, *range(23001, 23018)}
    assert {severity for code, (_, severity, *_) in of("sxid").items() if code != "other"} == {
        "fatal"
    }


def test_what_a_program_does_wrong_ends_no_node() -> None:
    """Xids that a job can bring about at will, by NVIDIA's catalog."""
    assert {of("xid")[code][0] for code in ("13", "31", "43", "45", "94")} == {"ignore"}


def test_each_neuron_error_has_one_row() -> None:
    names = [name for source, name, *_ in ROWS if source == "neuron"]

    assert len(names) == len(set(names))
    for name, (action, *_, words) in of("neuron").items():
        assert re.fullmatch(r"[A-Z_]+|other", name)
        assert action in ("replace", "reboot", "tell", "says")
        assert re.fullmatch(r"[A-Z][\w ,/.-]+|unknown to us", words)


@pytest.mark.parametrize(
    ("line", "verdict", "says"),
    [
        (
            NEURON.format("SRAM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE"),
            "drain",
            "Neuron SRAM_UNCORRECTABLE_ERROR: Uncorrectable error in SRAM, device 5 (fatal; AWS's "
            "remedy: replace)",
        ),
        (
            "[   12.3] ip-10-0-0-7 kernel: 2026-11-23T08:15:00.123Z "
            + NEURON.format("HBM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE"),
            "drain",
            "Neuron HBM_UNCORRECTABLE_ERROR: Uncorrectable error in HBM, device 5 (fatal; AWS's ",
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
            "Neuron NEW_ERROR: unknown to us, device 5 (fatal; AWS's remedy: replace)",
        ),
        (
            NEURON.format("NEW_ERROR", "REBOOT_INSTANCE"),
            "drain",
            "Neuron NEW_ERROR: unknown to us, device 5 (fatal; AWS's remedy: reboot)",
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


OWN = "xid 63 reboot\nxid 48 tell\nxid 777 replace\necc ignore\nthrottle tell\nefa silent tell"
OWN += "\nsxid other reset\nneuron other tell"


@pytest.mark.parametrize(
    ("line", "verdict", "says"),
    [
        (
            "NVRM: Xid (PCI:0000:00:1e): 63, pid=7, name=x, Row",
            "drain",
            "Xid 63: GPU memory remapping event (degraded; the cluster file's remedy: reboot)",
        ),
        ("NVRM: Xid (PCI:0000:00:1e): 48, DBE", "tell", "Xid 48: Double bit ECC error"),
        (
            "NVRM: Xid (PCI:0000:00:1e): 777, new",
            "drain",
            "Xid 777: see its catalog (degraded; the cluster file's remedy: replace)",
        ),
        (
            "NVRM: Xid (PCI:0000:00:1e): 79, bus",
            "drain",
            "Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)",
        ),
        ("efa 0000:00:1d.0 rdmap0s29: Admin queue is closed", "tell", "rdmap0s29: Admin queue"),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30",
            "drain",
            "SXid 20034 of an NVSwitch: Fatal, Link 30 (degraded; the cluster file's remedy: "
            "reset)",
        ),
        (NEURON.format("NEW_ERROR", "TERMINATE_INSTANCE"), "tell", "Neuron NEW_ERROR: unknown"),
    ],
)
def test_a_site_s_own_action_takes_the_place_of_the_table_s(
    line: str, verdict: str, says: str
) -> None:
    found, finding = judged(line, OWN)

    assert found == verdict
    assert finding.startswith(says)


def test_a_check_that_a_site_ignores_is_not_even_asked() -> None:
    assert "ecc" not in asked_of("boot", own=OWN)
    assert asked_of("end", own=OWN) == []
    assert "throttle" in asked_of("run", own=OWN)
