"""Nodes with faults, each a case with its end; then kills at random moments and second runs.

A program of its own, since pytest stays outside the namespaces:

    python -m tests.boot.node_world faults      every case of FAULTS
    python -m tests.boot.node_world kills N     N kills at random moments, then a run to the end
"""

import json
import os
import random
import shlex
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, BUNDLES, Cloud, publish, start_cloud, start_throttled_service
from local.boot.machines import READY, boot_head, show_nodes
from local.boot.values import A10GX4
from local.disks import Disk
from local.hypervisor import Hypervisor
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.node_again import AGAIN, again
from tests.boot.node_data import publish_data_set
from tests.boot.node_exporters import TOLD, exporting, telling
from tests.boot.node_faults import (
    BAKED,
    DRIVERLESS,
    ENROOT,
    FAULTS,
    HEALING_PORT,
    HOOK,
    HOOKS_BUCKET,
    KERNEL_LOG,
    SLURM_BUCKET,
    STATE,
    SXID,
    TAMPERED_KEY,
    XID,
    Fault,
)
from tests.boot.node_later import LATER, drained
from userdata.bundle import Bundle, gzipped
from userdata.image import image_component
from userdata.render import node_bundle, node_user_data

AT_ONCE = 3
# What follows from a check's finding, as its reason ends.
REMEDIES = ("reset, then a test", "reboot", "replace")
RESET, REBOOT, REPLACE = (f" (degraded; remedy: {each})" for each in REMEDIES)
BUS, PLAN_ID = "tidegate-local", "1f0c9a3e-412"


@dataclass
class Stage:
    cloud: Cloud
    world: World
    number: int = 0
    bundle: Bundle = field(default_factory=node_bundle)  # one for all

    def spec(self, fault: Fault) -> MachineSpec:
        self.number += 1
        values = replace(fault.values, munge=self.cloud.munge, bus=BUS)
        at = publish(self.cloud, self.bundle)
        data = node_user_data(values, replace(at, key=fault.key or at.key))
        disks: list[Disk] = []
        for number in range(fault.stores):
            link = f"nvme-Amazon_EC2_NVMe_Instance_Storage_AWS{self.number}{number}"
            disks.append(self.world.disks.disk(link))
        return MachineSpec(
            f"i-0fa0000000000{self.number:03d}",
            A10GX4.instance_type,
            data,
            gpus=fault.gpus,
            tags={"tidegate:pool": "gpu", "tidegate:launch": f"{PLAN_ID}-3", **fault.tags},
            files=fault.files,
            env=fault.env,
            disks=tuple(disks),
            free_kib=fault.free_kib,
        )


def ended(machine: Machine) -> bool:
    return not machine.is_alive or READY in machine.console.read_text()


# What a job asks for, by case.
JOBS = {"mig": "--gres=gpu:a10g_1g.3gb:9", "mps": "--gres=gpu:2", "efa_there": "-n1"}
JOBS |= {"mig_layout": "--gres=gpu:a10g_3g.12gb:2"}
TELLS = (
    'env | grep -E "^(CUDA|FI_|NCCL|SLURM_JOB_GPUS|SLURM_STEP_GPUS)" | sort;'
    " grep -H . /run/tidegate/gpu-jobs/* 2>/dev/null;"
    ' cat "$CUDA_MPS_PIPE_DIRECTORY/control" 2>/dev/null; true'
)


def told_by_job(machine: Machine, asked_for: str) -> list[str]:
    """What a task of an ordinary user finds; then what is left when its job has ended."""
    asked = [f"--nodelist={machine.spec.instance_id}", *asked_for.split()]
    job = ["runuser", "-u", "games", "--", "srun", "-D/", "-t1", *asked, "bash", "-c", TELLS]
    done = machine.run(job)
    wait_for(lambda: not machine.run(["sh", "-c", "ls /run/tidegate/mps"]).stdout.strip())
    left = machine.run(["sh", "-c", "ls /run/tidegate/mps; pgrep -fc mps-daemo[n]"])
    return [
        *done.stdout.splitlines(),
        *done.stderr.splitlines()[-2:],
        f"left:{left.stdout.strip()}",
    ]


ASKS = (
    'curl -s -H "Authorization: $(cat "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")"'
    ' "$AWS_CONTAINER_CREDENTIALS_FULL_URI"'
)
LISTS = "token=$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE; wc -l <$token; ls -l $token"
# As another user, with the job's own words: the token that root reads for them.
STOLEN = (
    "setpriv --reuid=nobody --regid=nogroup --clear-groups"
    ' curl -s -H "Authorization: $(cat /run/tidegate/jobs/*/token)" http://127.0.0.1:1017/'
)


def acting_as(machine: Machine) -> dict[str, str]:
    """What a job gets of its role, what others get, and what is left of it."""
    node = machine.spec.instance_id
    tells = f"{ASKS}; echo; echo $AWS_REGION; {LISTS}; sleep 5"
    job = ["srun", "-D/", "-t1", "-Avision", f"--nodelist={node}", "bash", "-c", tells]
    line = f"setsid runuser -u games -- {shlex.join(job)} >/run/said 2>&1 &"
    machine.run(["bash", "-c", line])

    def said() -> str:
        return machine.run(["cat", "/run/said"]).stdout

    wait_for(lambda: "token" in said())
    seen = {"job": said(), "stolen": machine.run(["bash", "-c", STOLEN]).stdout}
    wait_for(lambda: not machine.run(["ls", "/run/tidegate/jobs"]).stdout.strip())
    left = "ls /run/tidegate/jobs; curl -s -H 'Authorization: 1.x' http://127.0.0.1:1017/"
    return seen | {"left": machine.run(["bash", "-c", left]).stdout}


def look_at(name: str, machine: Machine) -> dict[str, Any]:
    wait_for(lambda: ended(machine))
    found: dict[str, Any] = {"console": machine.console.read_text(), "alive": machine.is_alive}
    if machine.is_alive:
        # The console tells before the bus does.
        wait_for(lambda: machine.run(["pgrep", "-f", "boot/boot.sh"]).returncode)
        line = (
            f"cat {STATE} /etc/local-held {ENROOT} 2>/dev/null; "
            "findmnt -no FSTYPE /scratch; stat -Lc %n:%a /scratch; readlink -f /usr/sbin/mount.efs;"
            " ls /etc/enroot/environ.d/*; /usr/local/bin/tidegate-data s3://sets/imagenet 60"
        )
        found["shown"] = machine.run(["bash", "-c", line]).stdout.split()
        found["smi"] = machine.run(["cat", "/run/local-nvidia-smi-calls"]).stdout.splitlines()
        found["hooks"] = machine.run(["cat", "/etc/local-hooks"]).stdout.splitlines()
        targets = "/data /nas /lake /sets /lustre"
        mounted = f"for at in {targets}; do findmnt -no TARGET $at; done; cat /etc/local-nfs"
        found["mounted"] = machine.run(["bash", "-c", mounted]).stdout.split()
        found["of_s3"] = machine.run(["cat", "/etc/local-s3"]).stdout.splitlines()
        found["log"] = machine.run(["cat", "/var/log/tidegate/packages.log"]).stdout
        found["job"] = told_by_job(machine, JOBS[name]) if name in JOBS else ""
        found["exports"] = exporting(machine) if name == "mps" else {}
        found["tells"] = telling(machine, TOLD[name][0]) if name in TOLD else {}
        found["acts"] = acting_as(machine) if name == "job_role" else {}
        found["sick"] = sickened(machine) if name == "healthy" else {}
        found["drained"] = drained(machine, name, reason) if name in LATER else ""
        found["worse"] = worsened(machine) if name == "gets_worse" else {}
        found["again"] = again(machine) if name in AGAIN else {}
    return found


def worsened(machine: Machine) -> dict[str, Any]:
    """A node with a job: a GPU goes without a word of the kernel's, then the disk fills."""
    node = machine.spec.instance_id
    waits = "until [ -e /run/over ]; do sleep 0.2; done; echo through"
    job = f"srun -D/ -t9 --nodelist={node} sh -c '{waits}' >/run/said 2>&1"
    machine.run(["sh", "-c", f"setsid runuser -u games -- {job} &"])
    asked = ["squeue", "-h", "-w", node, "-t", "R", "-o", "%A"]
    wait_for(lambda: bool(machine.run(asked).stdout))
    main_slurmd = ["pgrep", "-o", "-x", "slurmd"]
    slurmd = machine.run(main_slurmd).stdout
    machine.run(["rm", "/dev/nvidia3"])
    machine.run(["/etc/tidegate/health-check", "periodic"])
    wait_for(lambda: "gpus" in reason(machine))
    seen: dict[str, Any] = {"gpu": reason(machine)}
    machine.run(["mknod", "-m", "666", "/dev/nvidia3", "c", "195", "3"])
    update(machine, "state=resume", "reason=mended")

    machine.leave_free(0)
    machine.run(["/etc/tidegate/health-check", "periodic"])
    wait_for(lambda: "health: disk" in machine.console.read_text())
    machine.run(["touch", "/run/over"])
    wait_for(lambda: "through" in machine.run(["cat", "/run/said"]).stdout)
    wait_for(lambda: "DRAIN" in show_nodes(machine)[node]["State"])
    said = machine.run(["cat", "/run/said"]).stdout.splitlines()
    is_same = slurmd == machine.run(main_slurmd).stdout != ""
    return seen | {"disk": reason(machine), "slurmd": is_same, "job": said}


def sickened(machine: Machine) -> dict[str, Any]:
    """A node that runs a job, what its kernel and its checks then say, and what becomes of it."""
    node = machine.spec.instance_id
    job = f"setsid runuser -u games -- srun -D/ -t9 --nodelist={node} sleep 99 >/dev/null 2>&1 &"
    machine.run(["sh", "-c", job])
    asked = ["squeue", "-h", "-w", node, "-t", "R", "-o", "%A"]
    wait_for(lambda: bool(machine.run(asked).stdout))
    seen: dict[str, Any] = {}

    kernel_says(machine, XID.format(31), XID.format(63), SXID)
    time.sleep(2)
    seen["harmless"] = reason(machine)
    kernel_says(machine, XID.format(79))
    began_s = time.monotonic()
    wait_for(lambda: "Xid 79" in reason(machine))
    seen |= {"drained_s": time.monotonic() - began_s, "fatal": reason(machine)}
    seen["runs"] = machine.run(asked).stdout.strip() != ""

    update(machine, "state=resume", "reason=mended")
    machine.run(["pkill", "-f", "health-watch.sh"])
    wait_for(lambda: not machine.run(["pgrep", "-f", "health-watch.sh"]).returncode)
    time.sleep(2)
    seen["mended"] = show_nodes(machine)[node]["State"]

    machine.run(["sh", "-c", f"echo ecc.errors.uncorrected.volatile.total=2 >>{STATE}"])
    update(machine, "state=drain", "reason=ada looks into it")
    machine.run(["/etc/tidegate/health-check"])
    seen["person"] = reason(machine)
    update(machine, "state=resume", "reason=ada is done")
    machine.run(["scancel", "-u", "games"])
    wait_for(lambda: "ecc" in reason(machine))
    return seen | {"epilog": reason(machine), "console": machine.console.read_text()}


def kernel_says(machine: Machine, *lines: str) -> None:
    machine.run(["sh", "-c", f"printf '%s' '{''.join(lines)}' >>{KERNEL_LOG}"])


def update(machine: Machine, *words: str) -> None:
    """As a person does it."""
    machine.run(["scontrol", "update", f"nodename={machine.spec.instance_id}", *words])


def reason(machine: Machine) -> str:
    asked = ["sinfo", "-h", "-n", machine.spec.instance_id, "-o", "%E"]
    return machine.run(asked).stdout.strip()


def bake(stage: Stage) -> dict[str, Any]:
    """The steps of an image's component, run where a driver and the mount helper are missing."""
    files = {**DRIVERLESS, "/etc/munge/munge.key": "x" * 32}
    spec = replace(stage.spec(Fault(files=files)), user_data="#!/bin/sh\ntouch /is-up\n", gpus=0)
    machine = stage.world.boot(spec)
    wait_for(lambda: not machine.run(["test", "-e", "/is-up"]).returncode)
    seen: dict[str, Any] = {}
    phases: Any = image_component(BAKED)["phases"]
    for step in (step for phase in phases for step in phase["steps"]):
        script = "\n".join(step["inputs"]["commands"])
        done = machine.run(["bash", "-c", script])
        seen[step["name"]] = (done.returncode, (done.stdout + done.stderr)[-300:])
    left = "ls /etc/munge; ls -d /opt/tidegate/boot* /etc/tidegate"
    seen["left"] = machine.run(["bash", "-c", left]).stdout.split()
    stage.world.power_off(machine.spec.instance_id)
    return seen


def faults(stage: Stage, head: Machine) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for names in batched(FAULTS, AT_ONCE, strict=False):
        machines = {n: stage.world.boot(stage.spec(FAULTS[n])) for n in names}
        for name, machine in machines.items():
            seen[name] = look_at(name, machine)
            seen[name]["in_slurm"] = machine.spec.instance_id in show_nodes(head)
            seen[name]["id"] = machine.spec.instance_id
            stage.world.power_off(machine.spec.instance_id)
    events = told(stage.cloud)
    for node in seen.values():
        node["told"] = [each for each in events if each["detail"]["instance-id"] == node["id"]]
    return seen | {"bake": bake(stage)}


def listen(cloud: Cloud) -> None:
    """The cluster's bus, all of whose events go to a queue."""
    sqs, events = cloud.client("sqs"), cloud.client("events")
    url = sqs.create_queue(QueueName=BUS)["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    events.create_event_bus(Name=BUS)
    pattern = json.dumps({"source": ["tidegate.node"]})
    events.put_rule(Name="all", EventBusName=BUS, EventPattern=pattern)
    target = {"Id": "queue", "Arn": asked["Attributes"]["QueueArn"]}
    events.put_targets(Rule="all", EventBusName=BUS, Targets=[target])


def told(cloud: Cloud) -> list[dict[str, Any]]:
    """The events that nodes have put."""
    sqs = cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=BUS)["QueueUrl"]
    events: list[dict[str, Any]] = []
    while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        events += [json.loads(each["Body"]) for each in found]
    return events


def digests(machine: Machine) -> str:
    """Every file that a boot writes."""
    folders = "/etc/munge /etc/tidegate /etc/systemd/system /etc/slurm /etc/default /etc/profile.d"
    return machine.run(
        ["bash", "-c", f"find {folders} -type f -printf '%m %u ' -exec sha256sum {{}} + | sort -k2"]
    ).stdout


def killed(stage: Stage, head: Machine, moments_s: list[float]) -> dict[str, Any]:
    """A node whose boot is killed at these moments and started again each time."""
    machine = stage.world.boot(stage.spec(FAULTS["healthy"]))
    node = machine.spec.instance_id
    wait_for(lambda: not machine.run(["test", "-e", "/opt/tidegate/boot/boot.sh"]).returncode)
    for moment_s in moments_s:
        time.sleep(moment_s)
        machine.run(["pkill", f"-{signal.SIGKILL.value}", "-f", "/opt/tidegate/boot/"])
        machine.run(["/opt/tidegate/boot/boot.sh", "start"])
    is_ready = wait_for(lambda: READY in machine.console.read_text())
    before = digests(machine)
    again = machine.run(["/opt/tidegate/boot/boot.sh"])
    stages = machine.run(["cat", "/var/log/tidegate/stages.jsonl"]).stdout
    is_changed = digests(machine) != before
    health = "/opt/tidegate/boot/stages/health.sh"
    machine.run(["sh", "-c", f"echo 'check() {{ exit 78; }}' >>{health}"])
    failed = machine.run(["/opt/tidegate/boot/boot.sh"]).returncode
    found = {
        "is_ready": is_ready,
        "state": show_nodes(head).get(node, {}).get("State", ""),
        "munged": machine.run(["pgrep", "-c", "-x", "munged"]).stdout.strip(),
        "slurmd": machine.run(["pgrep", "-c", "-x", "slurmd"]).stdout.strip(),
        "again": again.returncode,
        "changed": is_changed,
        "stages": stages,
        "failed": failed,
        "stays": show_nodes(head).get(node, {}).get("State", "") if machine.is_alive else "off",
        "console": machine.console.read_text(),
    }
    stage.world.power_off(node)
    return found


def kills(stage: Stage, head: Machine, times: int) -> list[dict[str, Any]]:
    """In five machines, at moments from a seed."""
    chance = random.Random(9)
    moments_s = [chance.uniform(0, 1.2) for _ in range(times)]
    return [
        killed(stage, head, list(some)) for some in batched(moments_s, times // 5, strict=False)
    ]


def publish_more(cloud: Cloud) -> None:
    """A bundle that was tampered with, the key of AWS's repository, Slurm's in a private bucket."""
    s3 = cloud.client("s3")
    s3.put_object(Bucket=BUNDLES, Key=TAMPERED_KEY, Body=gzipped(node_bundle().tar + b"x"))
    s3.create_bucket(Bucket="efs-packages", ACL="public-read")
    key = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    for name in (
        "efs-utils.gpg",
        "x86_64/cuda-amzn2023.repo",
        "neuron/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB",
    ):
        s3.put_object(Bucket="efs-packages", Key=name, Body=key, ACL="public-read")
    publish_data_set(cloud)
    s3.create_bucket(Bucket=HOOKS_BUCKET)
    s3.put_object(Bucket=HOOKS_BUCKET, Key="tools/set_up.sh", Body=HOOK)
    s3.put_object(Bucket=HOOKS_BUCKET, Key="open.sh", Body=HOOK, ACL="public-read")
    s3.create_bucket(Bucket=SLURM_BUCKET)
    for name in ("jammy/Packages", "jammy/pool/slurmd.deb", "al2023/repodata/repomd.xml"):
        s3.put_object(Bucket=SLURM_BUCKET, Key=name, Body=b"x")
    s3.put_object(Bucket=SLURM_BUCKET, Key="slurm.asc", Body=key)


def scenario(verb: str, times: int) -> Any:
    cloud = start_cloud()
    publish_more(cloud)
    listen(cloud)
    with World(WorldSettings(AWS_PORT)) as world:
        (hypervisor := Hypervisor(cloud.ec2, world)).start()
        head = boot_head(cloud, world)
        hypervisor.stop()
        start_throttled_service(HEALING_PORT, times=2)
        stage = Stage(cloud, world)
        return faults(stage, head) if verb == "faults" else kills(stage, head, times)


if __name__ == "__main__":
    os.umask(0o022)
    namespaces.enter()
    print(json.dumps(scenario(sys.argv[1], int((*sys.argv, "50")[2]))))
