"""What befalls a device of a node that has joined well, and what the node says of it."""

from collections.abc import Callable

from local.machine import Machine
from local.waiting import wait_for
from tests.boot.node_faults import KERNEL_LOG, NEURON_ERROR

# By case of node_faults.py.
LATER = {
    "neuron": f"printf '%s' '{NEURON_ERROR}' >>{KERNEL_LOG}",
    "fabric_equal": "systemctl stop nvidia-fabricmanager; /etc/tidegate/health-check",
}


def drained(machine: Machine, name: str, reason: Callable[[Machine], str]) -> str:
    machine.run(["sh", "-c", LATER[name]])
    wait_for(lambda: "tidegate-health" in reason(machine))
    return reason(machine)
