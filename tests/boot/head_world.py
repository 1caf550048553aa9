"""Heads with data volumes, a head that is replaced, and one that takes up new deployments.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.boot.head_world       volumes, a head that is replaced, deployments
    python -m tests.boot.head_world N     the plug is pulled N times
"""

import hashlib
import json
import random
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, Cloud, buy, start_cloud, tags, template
from local.boot.machines import (
    LOCAL_NODE,
    LOCAL_SLURM,
    READY,
    data_of_head,
    data_of_node,
    show_nodes,
)
from local.boot.values import HEAD, T4X1
from local.disks import Disk, ebs_link
from local.hypervisor import Hypervisor
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.node_faults import inline
from tests.boot.node_world import digests
from tests.e2e.people import add_user, people
from userdata.containers import Containers
from userdata.render import HeadValues, SlurmPartition

MIB = 1 << 20
DATA = "/srv/tidegate"
AGAIN = "var/lib/cloud/scripts/per-boot/tidegate"
DAEMONS = ("munged", "slurmctld")
STORE_LINK = "nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0123"
# A partition table with one partition, as DOS wrote it.
DOS_TABLE = bytes(446) + bytes.fromhex("80010100 83030303 00080000 00080000") + bytes(48)


@dataclass
class Stage:
    cloud: Cloud
    world: World
    hypervisor: Hypervisor

    def values(self, volume_id: str, **changes: Any) -> HeadValues:
        settings = (*LOCAL_SLURM.settings, ("MinJobAge", "2"))
        slurm = replace(LOCAL_SLURM, state_dir=f"{DATA}/slurmctld", settings=settings)
        plain = replace(HEAD, slurm=slurm, munge=self.cloud.munge, agent=None)
        return replace(plain, data_volume=volume_id, update_poll_s=1, **changes)

    def alone(self, number: int, volume_id: str, *disks: Disk) -> Machine:
        """A machine that runs the head's stages and is nobody's head."""
        spec = MachineSpec(
            f"i-0ead00000000{number:04d}",
            "m7i.large",
            data_of_head(self.cloud, self.values(volume_id), f"/tidegate/alone/{number}"),
            disks=disks,
        )
        return self.world.boot(spec)

    def disk(self, link: str, content: bytes = b"", at: int = 0) -> Disk:
        disk = self.world.disks.disk(link)
        with self.world.disks.file(link).open("r+b") as file:
            file.seek(at)
            file.write(content)
        return disk


def said(machine: Machine, words: str) -> bool:
    return wait_for(lambda: words in machine.console.read_text())


def run(machine: Machine, line: str) -> str:
    done = machine.run(["bash", "-c", line])
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout.strip()


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def refused(stage: Stage) -> dict[str, dict[str, Any]]:
    """Volumes that must not be touched."""
    end = 256 * MIB
    contents = {
        "data_in_front": ("vol-0000000000000001", b"precious" * 100, 4096),
        "data_at_the_end": ("vol-0000000000000002", b"precious" * 100, end - 8192),
        "partitioned": ("vol-0000000000000003", DOS_TABLE + b"\x55\xaa", 0),
        "swap": ("vol-0000000000000004", b"SWAPSPACE2", 4086),
    }
    machines = {}
    for number, (name, (volume_id, content, at)) in enumerate(contents.items()):
        disk = stage.disk(ebs_link(volume_id), content, at)
        machines[name] = (stage.alone(number, volume_id, disk), ebs_link(volume_id))
    before = {name: digest_of(stage.world.disks.file(link)) for name, (_, link) in machines.items()}
    found = {}
    for name, (machine, link) in machines.items():
        said(machine, "data_volume failed")
        same = digest_of(stage.world.disks.file(link)) == before[name]
        found[name] = {"console": machine.console.read_text(), "is_same": same}
        stage.world.power_off(machine.spec.instance_id)
    return found


def cut_off(stage: Stage) -> dict[str, Any]:
    """A volume whose formatting a power cut ended: data that blkid does not know, and our mark."""
    volume_id = "vol-0000000000000006"
    disk = stage.disk(ebs_link(volume_id), b"group descriptors" * 100, 4096)
    mark = b"tidegate formats this volume\n"
    stage.disk(ebs_link(volume_id), mark.ljust(512, b"\0"), 256 * MIB - 512)
    machine = stage.alone(12, volume_id, disk)
    is_mounted = wait_for(
        lambda: machine.run(["test", "-e", f"{DATA}/.tidegate-volume"]).returncode == 0
    )
    stage.world.power_off(machine.spec.instance_id)
    with stage.world.disks.file(ebs_link(volume_id)).open("rb") as file:
        file.seek(-512, 2)
        return {"is_mounted": is_mounted, "has_mark": any(file.read())}


def wrong_cluster(stage: Stage) -> str:
    """A volume that was another cluster's."""
    volume_id = "vol-0000000000000005"
    disk = stage.disk(ebs_link(volume_id))
    first = stage.alone(10, volume_id, disk)
    assert wait_for(lambda: first.run(["mountpoint", "-q", DATA]).returncode == 0)
    assert wait_for(lambda: "cluster" in first.run(["cat", f"{DATA}/.tidegate-volume"]).stdout)
    run(first, f"sed -i s/cluster=.*/cluster=other/ {DATA}/.tidegate-volume; sync")
    stage.world.power_off(first.spec.instance_id)
    second = stage.alone(11, volume_id, disk)
    said(second, "data_volume failed")
    stage.world.power_off(second.spec.instance_id)
    return second.console.read_text()


def launch(stage: Stage, values: HeadValues) -> str:
    template_id = template(stage.cloud, f"head-{time.time()}", data_of_head(stage.cloud, values))
    made = stage.cloud.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        InstanceType="m7i.large",
        LaunchTemplate={"LaunchTemplateId": template_id, "Version": "1"},
        TagSpecifications=tags(role="head"),
    )["Instances"][0]
    return str(made["InstanceId"])


def booted(stage: Stage, instance_id: str) -> Machine:
    def is_ready() -> bool:
        machine = stage.hypervisor.machine(instance_id)
        return machine is not None and READY in machine.console.read_text()

    machine_is_ready = wait_for(is_ready)
    machine = stage.hypervisor.machine(instance_id)
    assert machine
    assert machine_is_ready, machine.run(["bash", "-c", "tail -n 5 /var/log/tidegate/*"]).stdout
    return machine


def attach(stage: Stage, instance_id: str, volume_id: str) -> None:
    stage.cloud.ec2.attach_volume(InstanceId=instance_id, VolumeId=volume_id, Device="/dev/sdf")


def wait_for_job(head: Machine, job_id: str, state: str) -> str:
    def shown() -> str:
        return head.run(["squeue", "-h", "-t", "all", "-j", job_id, "-o", "%T"]).stdout.strip()

    wait_for(lambda: shown() == state)
    return shown()


def wait_until_saved(head: Machine, job_id: str) -> None:
    """Slurmctld saves a change within five seconds; a plug that is pulled before loses it."""
    run(head, f"scontrol update jobid={job_id} comment=is-saved")
    grep = ["grep", "-q", "is-saved", f"{DATA}/slurmctld/job_state"]
    assert wait_for(lambda: head.run(grep).returncode == 0)


def replaced(stage: Stage, volume_id: str) -> dict[str, Any]:
    """A head, whose volume comes late and after an instance store, and its successor."""
    values = stage.values(volume_id)
    values = replace(values, slurm=replace(values.slurm, accounting=True))
    store = stage.disk(STORE_LINK)
    first_id = launch(stage, values)
    wait_for(lambda: stage.hypervisor.machine(first_id))
    machine = stage.hypervisor.machine(first_id)
    assert machine
    wait_for(lambda: not machine.run(["test", "-e", "/run/machine"]).returncode)
    machine.plug_disk(store)
    attach(stage, first_id, volume_id)
    head = booted(stage, first_id)
    node_data = data_of_node(stage.cloud, replace(LOCAL_NODE, munge=stage.cloud.munge))
    node_id = buy(stage.cloud, template(stage.cloud, "node", node_data), T4X1, "spot", pool="cheap")
    assert wait_for(lambda: node_id in show_nodes(head))
    script = "--wrap='echo $SLURM_RESTART_COUNT; sleep 600'"
    running = run(head, f"sbatch --parsable -p cheap --gres=gpu:t4:1 -o /dev/null {script}")
    waiting = run(head, "sbatch --parsable --gres=gpu:a10g:4 --job-name=waits --wrap=true")
    seen = {
        "store_is_blank": not any(stage.world.disks.file(STORE_LINK).read_bytes()),
        "mount": run(head, f"findmnt -no FSTYPE,OPTIONS {DATA}"),
        "state_dir": run(head, "scontrol show config | grep ^StateSaveLocation"),
        "was_running": wait_for_job(head, running, "RUNNING"),
    }
    seen["accounted_before"] = accounted(head, running)
    seen["people"] = people(head)
    add_user(head)
    run(head, "groupadd -g 3000 vision; gpasswd -a alice vision")
    run(head, "getent group alice vision >/shared/.tidegate/users/group")
    wait_until_saved(head, running)
    # The next head's packages give mysql another number.
    run(head, f"chown -R 4242:4242 {DATA}/mysql")
    stage.cloud.ec2.terminate_instances(InstanceIds=[first_id])
    wait_for(lambda: stage.hypervisor.machine(first_id) is None)
    second_id = launch(stage, values)
    attach(stage, second_id, volume_id)
    head = booted(stage, second_id)
    assert wait_for(lambda: "MIXED+" in show_nodes(head).get(node_id, {}).get("State", ""))
    return {
        **seen,
        "is_another": second_id != first_id,
        "job_after": wait_for_job(head, running, "RUNNING"),
        "waiting_after": run(head, f"squeue -h -j {waiting} -o '%j %T'"),
        "accounted": accounted(head, running),
        "rotated": rotated(head),
        "alice": run(head, "getent passwd alice; id -nG alice; getent shadow alice | cut -d: -f2"),
        "submits": head.run(["sbatch", "-H", "--wrap=true"], user="alice").returncode,
        "nodes_after": list(show_nodes(head)),
        "node_id": node_id,
        "updates": updated(stage, head, values, running, node_id),
    }


HOOKED, CACHED = "/etc/local-hooks", Containers("pyxis", 14, 200)


def rotated(head: Machine) -> dict[str, bool]:
    """What logrotate does: the log gets another name, then its file's postrotate runs."""
    log = "/var/log/slurm/slurmctld.log"
    pid = pid_of_slurmctld(head)
    after = "sed -n '/postrotate/,/endscript/{//!p}' /etc/logrotate.d/slurmctld | sh"
    run(head, f"mv {log} {log}.1; {after}")
    job_id = run(head, "sbatch --parsable -H --wrap=true")
    is_told = wait_for(lambda: f"JobId={job_id} " in run(head, f"cat {log} 2>/dev/null || true"))
    return {"is_told": is_told, "is_same": pid_of_slurmctld(head) == pid}


def accounted(head: Machine, job_id: str) -> str:
    """What accounting knows of a job that runs; slurmctld tells it a little later."""
    line = f"sacct -nPX -j {job_id} -o JobID,State,User"
    wait_for(lambda: "|RUNNING|" in run(head, line))
    return run(head, line)


def partitions(head: Machine) -> list[str]:
    return sorted(head.run(["sinfo", "-h", "-o", "%R %a"]).stdout.splitlines())


def pid_of_slurmctld(head: Machine) -> str:
    return head.run(["pgrep", "-o", "slurmctld"]).stdout.strip()


def updated(
    stage: Stage, head: Machine, values: HeadValues, job_id: str, node_id: str
) -> dict[str, Any]:
    """Deployments under a running job: a partition more, its own one less, one that is broken."""
    seen: dict[str, Any] = {}
    gpu, _cheap = values.slurm.partitions
    bearing = SlurmPartition("more", ("gpu",), settings=(("QOS", "team"),))
    more = replace(values.slurm, partitions=(*values.slurm.partitions, bearing), qos=("team",))
    data_of_head(stage.cloud, replace(values, slurm=more))
    wait_for(lambda: "more up" in partitions(head))
    seen["more"] = partitions(head)
    seen["qos"] = run(head, "scontrol show partition more | grep -o 'QoS=[a-z]*'")
    seen["job"] = wait_for_job(head, job_id, "RUNNING")
    less = replace(values, slurm=replace(values.slurm, partitions=(gpu,)))
    data_of_head(stage.cloud, less)
    wait_for(lambda: "cheap drain" in partitions(head))
    seen["less"] = partitions(head)
    seen["job_in_leaving"] = wait_for_job(head, job_id, "RUNNING")
    pid = pid_of_slurmctld(head)
    time.sleep(3)
    seen["restarts_again"] = pid_of_slurmctld(head) != pid
    run(head, f"scancel {job_id}")
    seen["refused"] = head.run(["sbatch", "-p", "cheap", "--wrap=true"]).returncode
    # MinJobAge is two seconds here, and slurmctld purges when it next looks.
    wait_for(lambda: not any(line.startswith("cheap") for line in partitions(head)))
    seen["at_end"] = partitions(head)
    seen["node"] = node_id in show_nodes(head)
    run(head, "mkdir -p /usr/lib/slurm && echo pyxis: importer >/usr/lib/slurm/spank_pyxis.so")
    hook = inline(f"#!/bin/sh\necho $* >>{HOOKED}\n", args=("one",))
    less = replace(less, on_head_configured=(hook,))
    data_of_head(stage.cloud, less)
    wait_for((head.root / HOOKED[1:]).exists)
    less = replace(
        less, containers=CACHED, slurm=replace(less.slurm, has_estimate=True, advice=("a line",))
    )
    data_of_head(stage.cloud, less)
    plugins = "grep -s pyxis /etc/slurm/plugstack.conf"
    wait_for(lambda: head.run(["sh", "-c", plugins]).stdout)
    less = replace(less, on_head_configured=(hook, replace(hook, args=("two",))))
    data_of_head(stage.cloud, less)
    wait_for(lambda: "two" in run(head, f"cat {HOOKED}"))
    seen["hooks"] = run(head, f"cat {HOOKED}").split()
    seen["plugins"] = head.run(["sh", "-c", plugins]).stdout.strip()
    seen["submit"] = run(head, "scontrol show config | grep JobSubmitPlugins").split()[-1]
    seen["advice"] = run(head, "cat /etc/slurm/advice").strip()
    broken = replace(less.slurm, settings=(*less.slurm.settings, ("SchedulerType", "nonsense")))
    data_of_head(stage.cloud, replace(less, slurm=broken))
    seen["said"] = said(head, "does not start with the new slurm.conf")
    seen["after_broken"] = wait_for(lambda: partitions(head) == seen["at_end"])
    return seen


def killed(times: int) -> dict[str, Any]:
    """A head whose plug is pulled at random moments, from the start of its first boot on."""
    chance = random.Random(9)
    volume_id = "vol-0000000000000009"
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        stage = Stage(cloud, world, Hypervisor(cloud.ec2, world))
        values = replace(stage.values(volume_id), update_poll_s=60)
        data = data_of_head(cloud, values)
        disks = (stage.disk(ebs_link(volume_id)),)
        head = world.boot(
            # Nobody's head: no name service knows it by the head's name, at no boot.
            MachineSpec("i-0ead0000000000099", "m7i.large", data, disks=disks)
        )
        # A head that is cut short before this never comes back: there is nothing to go on from.
        assert wait_for((head.root / AGAIN).exists)
        for number in range(times):
            time.sleep(chance.uniform(0, 1.2) if number else 0)
            if number == times // 2:
                assert said(head, READY), head.console.read_text()[-3000:]
                asked = "sbatch --parsable --job-name=waits --gres=gpu:a10g:4 --wrap=true"
                wait_until_saved(head, run(head, asked))
            head.power_off()
            head.boot()
        num_ready = head.console.read_text().count(READY)
        is_ready = wait_for(lambda: head.console.read_text().count(READY) > num_ready)
        before = digests(head)
        again = head.run(["/opt/tidegate/boot/boot.sh"])
        found = {
            "is_ready": is_ready,
            "console": head.console.read_text()[-2000:],
            "queue": head.run(["squeue", "-h", "-o", "%j %T"]).stdout.strip(),
            "running": [head.run(["pgrep", "-cx", each]).stdout.strip() for each in DAEMONS],
            "again": again.returncode,
            "changed": sorted({*before.splitlines()} ^ {*digests(head).splitlines()}),
            "stages": head.run(["cat", "/var/log/tidegate/stages.jsonl"]).stdout,
        }
        return {**found, "accounting_later": accounting_later(stage, head, values)}


def accounting_later(stage: Stage, head: Machine, values: HeadValues) -> dict[str, Any]:
    """A living head without accounting gets it by a deployment."""
    data_of_head(stage.cloud, replace(values, slurm=replace(values.slurm, accounting=True)))
    started = head.run([f"/{AGAIN}"])
    listed = ["sacctmgr", "-nP", "list", "cluster", "format=cluster,controlhost"]
    # It has a controller once slurmctld has told the database of itself.
    is_told = wait_for(lambda: re.search(r"\|\S", head.run(listed).stdout))
    return {
        "started": started.returncode,
        "is_told": bool(is_told),
        "queue": head.run(["squeue", "-h", "-o", "%j %T"]).stdout.strip(),
        "console": head.console.read_text()[-1500:],
    }


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        hypervisor = Hypervisor(cloud.ec2, world)
        stage = Stage(cloud, world, hypervisor)
        seen: dict[str, Any] = {"refused": refused(stage), "wrong": wrong_cluster(stage)}
        seen["cut_off"] = cut_off(stage)
        hypervisor.start()
        volume = cloud.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)
        seen |= replaced(stage, str(volume["VolumeId"]))
        hypervisor.stop()
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(killed(int(sys.argv[1])) if sys.argv[1:] else scenario()))
