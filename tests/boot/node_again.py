"""What a node that was rebooted has, against what it had."""

from typing import Any

from local.boot.machines import READY
from local.machine import Machine
from local.waiting import wait_for
from tests.boot.node_faults import KERNEL_LOG

# Cases of node_faults.py with what a boot finds of an earlier one: parts of GPUs, a disk that was
# formatted, an installed driver, exporters.
AGAIN = ("mig", "scratch", "driver_installed", "mps")
_HAS = (
    "cat /etc/slurm/gres.node.conf; findmnt -no TARGET /scratch; ls /run/tidegate/driver; "
    "systemctl is-active tidegate-gpu-metrics"
)


def again(machine: Machine) -> dict[str, Any]:
    """Boots it again, from its disk. The kernel's log begins anew."""
    before = machine.run(["bash", "-c", _HAS]).stdout
    machine.run(["truncate", "-s0", KERNEL_LOG])
    machine.shut_down()
    machine.boot()
    is_ready = wait_for(lambda: machine.console.read_text().count(READY) == 2)
    return {
        "is_ready": is_ready,
        "console": machine.console.read_text(),
        "before": before,
        "after": machine.run(["bash", "-c", _HAS]).stdout,
    }
