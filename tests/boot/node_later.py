"""What befalls a device of a node that has joined well, and what the node says of it."""

from collections.abc import Callable

from local.machine import Machine
from local.waiting import wait_for
from tests.boot.node_faults import KERNEL_LOG, NEURON_ERROR

# First a storm of what a volume of EBS recovers from.
STORE_FAILS = f"""
mount -o remount,rw /scratch
for number in $(seq 500); do
    echo "nvme nvme0: I/O $number QID 2 timeout, aborting"
done >>{KERNEL_LOG}
store=$(readlink -f /dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*)
echo "critical medium error, dev ${{store##*/}}, sector 8 op 0x0:(READ) flags 0x0" >>{KERNEL_LOG}
"""
# The driver has both devices of the machine, and a check finds nothing. Then it has one.
EFA_GOES = """
drivers=/sys/bus/pci/drivers
mount -t tmpfs tmpfs $drivers
mkdir -p $drivers/efa/0000:00:1d.0/infiniband/rdmap0s29
mkdir -p $drivers/efa/0000:00:1e.0/infiniband/rdmap0s30
/etc/tidegate/health-check
test ! -e /run/tidegate/sick || exit
rm -r $drivers/efa/0000:00:1e.0
/etc/tidegate/health-check
"""

READS_ONLY = "mount -o remount,ro /scratch; /etc/tidegate/health-check"

# By case of node_faults.py, one after the other; a person opens the node in between.
LATER = {
    "scratch": (READS_ONLY, STORE_FAILS),
    "efa_there": (EFA_GOES,),
    "neuron": (f"printf '%s' '{NEURON_ERROR}' >>{KERNEL_LOG}",),
    "fabric_equal": ("systemctl stop nvidia-fabricmanager; /etc/tidegate/health-check",),
}


def drained(machine: Machine, name: str, reason: Callable[[Machine], str]) -> str:
    """The reasons, a line each."""
    said: list[str] = []
    for script in LATER[name]:
        opened = f"nodename={machine.spec.instance_id}", "state=resume", "reason=mended"
        machine.run(["scontrol", "update", *opened])
        machine.run(["bash", "-c", script])
        wait_for(lambda: "tidegate-health" in reason(machine))
        said.append(reason(machine))
    return "\n".join(said)
