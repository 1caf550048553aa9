"""Machines whose process 1 is systemd and whose user data cloud-init runs: a head, and nodes.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, start_cloud
from local.boot.machines import LOCAL_NODE, LOCAL_SLURM, data_of_head, show_nodes
from local.boot.values import HEAD
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.head_world import AGAIN
from tests.boot.node_faults import FAULTS, MIG_NODE, MOUNT_EFS_AFTER, Fault, stub
from tests.boot.node_world import Stage, ended
from userdata.bundle import read

LAYER = Path(os.environ.get("TIDEGATE_CLOUD_INIT", "/var/tmp/tidegate-cloud-init"))
# EFS never answers, and the pool's bound on a boot is short.
HANGS = Fault(
    files={"/usr/sbin/mount.efs": "#!/bin/sh\nexec sleep 1000\n"},
    values=replace(LOCAL_NODE, boot_bound_s=8),
)
# EFS hangs once, for which no case without systemd has the time.
HUNG = Fault(files={**MOUNT_EFS_AFTER, "/usr/sbin/mount.efs": stub("mount.efs-hung")})
# As a baked image has it; a drop-in instead of a link, which these files cannot be.
EARLY = Fault(
    files={
        "/opt/tidegate/early.sh": read("early.sh"),
        "/etc/systemd/system/tidegate-early.service": read("tidegate-early.service"),
        "/etc/systemd/system/multi-user.target.d/early.conf": (
            "[Unit]\nWants=tidegate-early.service\n"
        ),
    }
)
# GPUs whose mode waits for a reset that fails, until the machine was started again.
MODE_PENDING = Fault(
    files={
        "/etc/local-gpu": "mig.mode.current=Disabled\n",
        "/usr/bin/nvidia-mig-parted": stub("nvidia-mig-parted").replace(
            "#!/bin/bash\n",
            "#!/bin/bash\n[[ $1 != apply || -e /var/tried ]] || { touch /var/tried; exit 1; }\n",
        ),
    },
    values=MIG_NODE,
)
LOOKS = {
    "cloud_init": "cloud-init status --wait",
    "failed": "systemctl --failed --no-legend --plain",
    "timers": "systemctl list-units --no-legend --plain 'tidegate-dead-man*'",
    "running": "systemctl is-active slurmd munge tidegate-boot tidegate-owner-rule",
    "limits": "systemctl show slurmd | grep -E '^Limit(MEMLOCK|NOFILE|NPROC)=|^TasksMax' | sort",
    "closed": "setpriv --reuid=nobody --regid=nogroup --clear-groups"
    " curl -s -m 1 -o /dev/null http://169.254.169.254/ || echo closed",
}


# An ordinary user asks all the while, also after the last restart.
RESTARTS = (
    "setpriv --reuid=nobody --regid=nogroup --clear-groups bash -c '"
    "while :; do ! curl -s -m 1 -o /dev/null http://169.254.169.254/ || echo open; done' & "
    "for i in 1 2 3; do sleep .4; systemctl restart nftables || echo failed; done; sleep .4;"
    " kill $!; wait; echo closed"
)


def restart_firewall(machine: Machine) -> dict[str, str]:
    """What an ordinary user hears of the metadata service meanwhile."""
    return {"firewall": machine.run(["bash", "-c", RESTARTS]).stdout.strip()}


def look(machine: Machine) -> dict[str, str]:
    return {name: machine.run(["bash", "-c", line]).stdout.strip() for name, line in LOOKS.items()}


def head_of(stage: Stage) -> Machine:
    values = replace(HEAD, slurm=LOCAL_SLURM, munge=stage.cloud.munge, agent=None)
    data = data_of_head(stage.cloud, values)
    head = MachineSpec("i-0ead0000000000001", "m7i.large", data, is_head=True, systemd=LAYER)
    machine = stage.world.boot(head)
    wait_for(lambda: ended(machine))
    return machine


def killed(machine: Machine) -> None:
    """Systemd starts the stages again half a minute after somebody killed them."""
    wait_for(lambda: "stage identity" in machine.console.read_text())
    machine.run(["systemctl", "kill", "-s", "KILL", "tidegate-boot"])


def start_again(machine: Machine) -> None:
    """A machine that has ordered its own reboot."""
    wait_for(lambda: not machine.is_alive)
    machine.power_off()
    machine.boot()


def restarted(machine: Machine) -> list[str]:
    """The proxy of the shared folder before and after the boot's unit was restarted."""
    asked = ["pgrep", "-f", "efs-prox[y]"]
    before = machine.run(asked).stdout.strip()
    machine.run(["systemctl", "restart", "tidegate-boot"])
    return [before, machine.run(asked).stdout.strip()]


def looked_again(machine: Machine) -> int:
    """How often systemd reads all units anew while the head looks for a deployment."""
    count = "journalctl -b -o cat _PID=1 | grep -c '^Reloading'"
    line = f"before=$({count}); /{AGAIN}; sleep 1; echo $(($({count}) - before))"
    return int(machine.run(["bash", "-c", line]).stdout.strip() or -1)


def order(machine: Machine) -> str:
    """What of a baked image's start came when: microseconds since the boot, or 0."""
    asked = ["tidegate-early", "cloud-final"]
    property = "-pExecMainStartTimestampMonotonic"
    found = [machine.run(["systemctl", "show", "--value", property, each]) for each in asked]
    return " ".join(each.stdout.strip() for each in found)


# What somebody left on a machine, as crontab's @reboot does it: asks for the role again and again.
THIEF = """[Unit]
Wants=network-online.target
After=network-online.target
[Service]
User=nobody
ExecStart=bash -c 'for i in {1..20}; do \
    curl -s -m 1 -o /dev/null http://169.254.169.254/ && echo open || echo closed; done'
[Install]
WantedBy=multi-user.target
"""


# The time since this computer's start is no machine's own: slurmd tells of a start of the machine.
JUST_STARTED = """#!/bin/bash
case $1 in -V | -C) exec "$0.real" "$@" ;; esac
exec -a "$0" "$0.real" -b "$@"
"""


def rebooted(head: Machine, machines: dict[str, Machine]) -> dict[str, Any]:
    """What machines are like that were started again with what people had left on them: a node by
    Slurm, the others by themselves, the head as the last.
    """
    for name, machine in machines.items():
        machine.run(["tee", "/etc/systemd/system/thief.service"], input=THIEF)
        machine.run(["systemctl", "enable", "thief"])
        if name != "healthy":
            machine.run(["systemctl", "reboot"])
            continue
        machine.run(["mv", "/usr/sbin/slurmd", "/usr/sbin/slurmd.real"])
        machine.run(["tee", "/usr/sbin/slurmd"], input=JUST_STARTED)
        machine.run(["chmod", "755", "/usr/sbin/slurmd"])
        asked = ["scontrol", "reboot", "ASAP", "nextstate=RESUME", machine.spec.instance_id]
        head.run(asked)
        wait_for(lambda machine=machine: not machine.is_alive)  # type: ignore[misc]
    for machine in machines.values():
        start_again(machine)
    return {f"{name}_again": come_back(machine) for name, machine in machines.items()}


def come_back(machine: Machine) -> dict[str, Any]:
    wait_for(lambda: machine.console.read_text().count("ready after") > 1)
    told = machine.run(["journalctl", "-b", "-u", "thief", "-o", "cat"]).stdout
    return {
        "boots": machine.console.read_text().count("ready after"),
        "thief": sorted({"open", "closed"}.intersection(told.split())),
        **look(machine),
    }


def hung(machine: Machine) -> dict[str, Any]:
    """A node one of whose units never stops, which is given 3 s in the place of the product's."""
    unit = "/etc/systemd/system/tidegate-power-off.service"
    machine.run(["sed", "-i", "s/sleep(100)/sleep(3)/", unit])
    stuck = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n"
    stuck += "ExecStop=sleep 1000\nTimeoutStopSec=1000\n"
    machine.run(["tee", "/etc/systemd/system/stuck.service"], input=stuck)
    machine.run(["bash", "-c", "systemctl daemon-reload; systemctl start stuck"])
    began_s = time.time()
    machine.run(["systemctl", "poweroff"])
    wait_for(lambda: not machine.is_alive, 60)
    return {"alive": machine.is_alive, "took_s": time.time() - began_s}


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        stage = Stage(cloud, world)
        head = head_of(stage)
        seen: dict[str, Any] = {"head": {"console": head.console.read_text(), **look(head)}}
        seen["head"] |= restart_firewall(head)
        faults = {
            "healthy": FAULTS["healthy"],
            "killed": FAULTS["healthy"],
            "gpu_missing": FAULTS["gpu_missing"],
            "hangs": HANGS,
            "efs_hung": HUNG,
            "early": EARLY,
            "mode_pending": MODE_PENDING,
        }
        began_s = time.time()
        machines = {
            name: world.boot(replace(stage.spec(fault), systemd=LAYER))
            for name, fault in faults.items()
        }
        killed(machines["killed"])
        start_again(machines["mode_pending"])
        for name, machine in machines.items():
            wait_for(lambda machine=machine: ended(machine))  # type: ignore[misc]
            seen[name] = {
                "console": machine.console.read_text(),
                "alive": machine.is_alive,
                "took_s": time.time() - began_s,
                "slurm": show_nodes(head).get(machine.spec.instance_id, {}).get("State", ""),
            }
        seen["healthy"] |= look(machines["healthy"]) | restart_firewall(machines["healthy"])
        seen["early"] |= look(machines["early"]) | {"order": order(machines["early"])}
        seen["proxy"] = restarted(head)
        seen["reloads"] = looked_again(head)
        seen["upgrades"] = head.run(["systemctl", "is-enabled", "apt-daily-upgrade.timer"]).stdout
        nodes = {name: machines[name] for name in ("healthy", "early")}
        seen |= rebooted(head, nodes | {"head": head})
        for name, machine in nodes.items():
            state = show_nodes(head)[machine.spec.instance_id]["State"]
            seen[f"{name}_again"] |= {"slurm": state}
        seen["asked"] = "Slurm asks for a reboot" in machines["healthy"].console.read_text()
        seen["stuck"] = hung(machines["early"])
    return seen


if __name__ == "__main__":
    os.umask(0o022)
    namespaces.enter()
    print(json.dumps(scenario()))
