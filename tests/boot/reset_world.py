"""Nodes that are drained for what a reset of the GPUs mends, and what becomes of them.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, start_cloud
from local.boot.machines import boot_head, show_nodes
from local.hypervisor import Hypervisor
from local.machine import Machine
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.node_exporters import DCGM
from tests.boot.node_faults import FAULTS, KERNEL_LOG, STATE, XID, Fault, manager, shaped, wanting
from tests.boot.node_world import Stage, ended, kernel_says, listen, reason, told

# With all that has its GPUs open: persistence mode, an exporter, the look at their use, slurmd's
# checks, the fabric manager.
POOL = replace(
    wanting(power_limit_w=250), shapes=shaped(has_nvswitch=True).shapes, has_exporters=True
)
IMEX = {"/etc/systemd/system/nvidia-imex.service": "[Service]\nExecStart=/bin/sleep 1000\n"}
WORKS: Mapping[str, str | bytes] = {**manager("580.65.06"), **DCGM, **IMEX}
FAILS_TEST = "#!/bin/sh\n[ ! -e /etc/local-bad-memory ] || exit 205\n"
CASES: dict[str, tuple[Fault, str]] = {
    "works": (Fault("", WORKS, POOL), ""),
    "unknown_error": (Fault("", WORKS, POOL), "reset=Unknown Error"),
    "hangs": (Fault("", WORKS, POOL), "reset=hangs"),
    "useless": (Fault("", WORKS, POOL), "reset=useless"),
    "memory_is_bad": (Fault("", {**WORKS, "/usr/bin/dcgmi": FAILS_TEST}, POOL), ""),
    "cut": (FAULTS["mig"], ""),
    "a_reboot_is_asked": (FAULTS["healthy"], ""),
}
# With what the driver says after each Xid for which it wants that.
NEEDS_RESET = (
    "NVRM: Xid (PCI:0000:00:1e): 154, GPU recovery action changed from 0x0 (None)"
    " to 0x1 (GPU Reset Required)\n"
)
# Others say what a reset mends, or a reboot.
SAYS = {"a_reboot_is_asked": XID.format(79)}
SOONER = "s/RESET_LIMIT_S:-120/RESET_LIMIT_S:-2/; s/sleep 5/sleep 0.2/"


def mended(name: str, machine: Machine, head: Machine) -> dict[str, Any]:
    """What Slurm's order to reboot does to a node whose log has an Xid."""
    node = machine.spec.instance_id
    script = "/opt/tidegate/boot/files/gpu-reset.sh"
    machine.run(["ln", "-sf", KERNEL_LOG, "/dev/kmsg"])
    machine.run(["sed", "-i", SOONER, script])
    lines = "ecc.errors.uncorrected.volatile.total=1", CASES[name][1]
    machine.run(["sh", "-c", f"printf '%s\\n' '{"' '".join(filter(None, lines))}' >>{STATE}"])
    machine.run(["touch", "/etc/local-bad-memory"])
    machine.run(["systemctl", "start", "nvidia-imex"])
    kernel_says(machine, SAYS.get(name, XID.format(48) + NEEDS_RESET))
    wait_for(lambda: "tidegate-health" in reason(machine))
    machine.run(["truncate", "-s0", "/run/local-nvidia-smi-calls"])
    seen = {"drained": reason(machine)}
    head.run(["scontrol", "reboot", "ASAP", "nextstate=RESUME", node])
    wait_for(lambda: not machine.is_alive or "takes jobs again" in machine.console.read_text())
    if machine.is_alive:
        wait_for(lambda: show_nodes(head)[node]["State"] == "IDLE+DYNAMIC_NORM", 30)
        job = ["srun", "-D/", "-t1", f"--nodelist={node}", "true"]
        seen["job"] = str(machine.run(job).returncode)
        units = "nvidia-fabricmanager nvidia-imex tidegate-gpu-metrics tidegate-gpu-use slurmd"
        seen["active"] = machine.run(["systemctl", "is-active", *units.split()]).stdout
        seen["smi"] = machine.run(["cat", "/run/local-nvidia-smi-calls"]).stdout
        seen["gpus"] = machine.run(["cat", STATE]).stdout
        # The boot's own gate would find the same as after a boot.
        gate = "cd /opt/tidegate/boot && ./boot.sh try health"
        seen["gate"] = str(machine.run(["sh", "-c", gate]).returncode)
        seen["state"] = show_nodes(head)[node]["State"]
        # It is sick after all, within the minute in which the watch has drained it.
        kernel_says(machine, XID.format(48))
        wait_for(lambda: "tidegate-health" in reason(machine))
        seen["again"] = reason(machine)
    seen.setdefault("state", show_nodes(head)[node]["State"])
    return seen | {"alive": machine.is_alive, "console": machine.console.read_text()}


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    listen(cloud)
    with World(WorldSettings(AWS_PORT)) as world:
        (hypervisor := Hypervisor(cloud.ec2, world)).start()
        head = boot_head(cloud, world)
        hypervisor.stop()
        stage = Stage(cloud, world)
        seen: dict[str, Any] = {}
        for name, (fault, _) in CASES.items():
            machine = stage.world.boot(stage.spec(fault))
            wait_for(lambda machine=machine: ended(machine))  # type: ignore[misc]
            wait_for(lambda m=machine: m.run(["pgrep", "-f", "boot/boot.sh"]).returncode)  # type: ignore[misc]
            seen[name] = {"id": machine.spec.instance_id, **mended(name, machine, head)}
            stage.world.power_off(machine.spec.instance_id)
    events = told(cloud)
    for node in seen.values():
        ours = (each for each in events if each["detail"]["instance-id"] == node["id"])
        node["told"] = [each for each in ours if each["detail-type"] != "NodeReady"]
    return seen


if __name__ == "__main__":
    os.umask(0o022)
    namespaces.enter()
    print(json.dumps(scenario()))
