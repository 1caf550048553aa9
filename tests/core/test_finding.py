"""What the reason of a drain says of how grave a finding is, and what mends it."""

import pytest

from tidegate.core.model.finding import (
    Severity,
    is_replaced,
    needs_test,
    network_node_of,
    severity_of,
)

OURS = "tidegate-health: xid: Xid 79: GPU has fallen off the bus"


@pytest.mark.parametrize(
    ("reason", "severity", "replaced"),
    [
        (f"{OURS} (fatal; NVIDIA's remedy: reset)", Severity.FATAL, False),
        (f"{OURS} (degraded; the cluster file's remedy: replace)", Severity.DEGRADED, True),
        ("tidegate-health: ecc: 2 errors (degraded; remedy: reset)", Severity.DEGRADED, False),
        ("tidegate-health: rows: 1 (degraded; remedy: replace)", Severity.DEGRADED, True),
        (f"{OURS} (fatal; NVIDIA's remedy: replace; below nn-0a1)", Severity.FATAL, True),
        # What Slurm adds, and what the finding itself has in brackets.
        (f"{OURS} (fatal; remedy: replace) : reboot issued", Severity.FATAL, True),
        (f"{OURS} (fatal; remedy: replace) (degraded; remedy: reset)", Severity.DEGRADED, False),
        ("tidegate-health: idle-check: job 7 ended with exit code 3", Severity.DEGRADED, False),
        # Of nodes that booted before the version that tells how grave it is.
        (f"{OURS} (NVIDIA's remedy: reboot)", Severity.FATAL, False),
        ("tidegate-health: neuron: DMA (AWS's remedy: replace)", Severity.FATAL, True),
        ("tidegate-health: efa: it is closed (remedy: reboot)", Severity.DEGRADED, False),
        ("tidegate-health: rows: broken (per GPU: 1)", Severity.DEGRADED, True),
        ("tidegate-health: disk: 0 GiB free on the root disk", Severity.DEGRADED, True),
        ("tidegate-health: scratch: /scratch cannot be written", Severity.DEGRADED, True),
        ("tidegate-health: ecc: 2 uncorrected ECC errors", Severity.DEGRADED, False),
        # Where the table of the node says otherwise, that counts.
        ("tidegate-health: disk: 0 GiB free (degraded; remedy: reboot)", Severity.DEGRADED, False),
        # A site's own check: its nodes are released, its jobs go on.
        ("NHC: check_fs: gone (fatal; remedy: replace)", Severity.DEGRADED, True),
        ("NHC: check_fs: gone", Severity.DEGRADED, False),
        ("Kill task failed (JobId=7)", Severity.DEGRADED, False),
        ("", Severity.DEGRADED, False),
    ],
)
def test_the_last_brackets_of_a_reason_count(
    reason: str, severity: Severity, replaced: bool
) -> None:
    assert severity_of(reason) is severity
    assert is_replaced(reason) is replaced


@pytest.mark.parametrize(
    ("reason", "network_node"),
    [
        (f"{OURS} (fatal; NVIDIA's remedy: reboot; below nn-0a1b)", "nn-0a1b"),
        (f"{OURS} (fatal; remedy: reboot; below nn-0a1b) : reboot issued", "nn-0a1b"),
        (f"{OURS} (fatal; NVIDIA's remedy: reboot)", ""),
        ("NHC: check: gone (remedy: replace; below nn-0a1b)", ""),
        ("Kill task failed", ""),
    ],
)
def test_where_the_node_is_in_ec2_s_network_its_reason_says(reason: str, network_node: str) -> None:
    assert network_node_of(reason) == network_node


@pytest.mark.parametrize(
    ("reason", "is_needed"),
    [
        (f"{OURS} (fatal; NVIDIA's remedy: reset, then a test)", True),
        (f"{OURS} (fatal; NVIDIA's remedy: reset, then a test; below nn-1) : reboot issued", True),
        (f"{OURS} (fatal; NVIDIA's remedy: reset)", False),
        ("NHC: check: gone (remedy: reset, then a test)", False),
    ],
)
def test_whether_only_a_test_shows_that_it_is_mended_its_reason_says(
    reason: str, is_needed: bool
) -> None:
    assert needs_test(reason) == is_needed
