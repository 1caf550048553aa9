"""Boots a cluster in namespaces, breaks some nodes, and prints what happened as JSON.

A program of its own, since pytest stays outside the namespaces:

    python -m tests.e2e.boot_world scenario     everything test_boot.py looks at
    python -m tests.e2e.boot_world hold         a world with one machine, until it is killed
"""

import base64
import hashlib
import json
import logging
import math
import os
import shlex
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from local import namespaces
from local.hypervisor import Hypervisor
from local.machine import Machine, MachineSpec
from local.world import BRIDGE_ADDRESS, World, WorldSettings
from tests.e2e.people import add_user, home_at_login
from tests.e2e.secrecy import firewall_restarted, leaks, reaches_files, reaches_imds, what_leaked
from tests.overrides import assert_bounded_head
from tests.userdata.values import A10GX4, HEAD, NODE, SLURM, T4X1, T4X4
from tests.worlds import PATIENCE_S, wait_for
from userdata.render import (
    Bundle,
    BundleAt,
    HeadValues,
    MungeSecret,
    NodeShape,
    NodeValues,
    head_bundle,
    head_parameter,
    head_user_data,
    node_bundle,
    node_user_data,
)

AWS_PORT = 5000
THROTTLED_PORT = 5001
BUNDLES = "bundles"
HEAD_PARAMETER = "/tidegate/dev/head"
READY = "ready after"
# A machine in namespaces shares this computer's cgroups and claims GPUs and memory that this
# computer lacks, so slurmd must believe what it is told.
LOCAL_SLURM = replace(
    SLURM,
    settings=(
        ("ProctrackType", "proctrack/linuxproc"),
        ("TaskPlugin", "task/none"),
        ("SlurmdParameters", "config_overrides"),
        ("JobAcctGatherType", "jobacct_gather/none"),
        ("MpiDefault", "none"),
    ),
    cgroup=(("CgroupPlugin", "cgroup/v1"),),
    has_task_prolog=True,
)
LOCAL_NODE = replace(NODE, spot_poll_s=0.5, register_wait_s=60)

# What an ordinary user finds in a job: the batch step, then a step of srun.
JOB = """#!/bin/bash
looks() {
    id -un; id -u; echo "$HOME"; echo "$CUDA_VISIBLE_DEVICES"
    getent hosts NODES | wc -l
    curl -sS -m 1 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \\
        http://169.254.169.254/latest/api/token >/dev/null 2>&1 && echo open || echo closed
    (exec 3<>/dev/tcp/127.0.0.1/20049) 2>/dev/null && echo open || echo closed
    prlimit --noheadings --raw -o SOFT --memlock --nofile
}
looks >~/batch
export -f looks
srun bash -c looks >~/step
scontrol show job "$SLURM_JOB_ID" | grep -o ' TRES=.*' >~/tres
"""


@dataclass
class Cloud:
    """moto, the secrets in it, and clients to it."""

    client: Callable[[str], Any]
    ec2: Any
    munge: MungeSecret
    other: MungeSecret


def start_cloud() -> Cloud:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ThreadedMotoServer(ip_address="0.0.0.0", port=AWS_PORT, verbose=False).start()
    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    url = f"http://127.0.0.1:{AWS_PORT}"
    make: Any = boto3.client

    @cache
    def client(service: str) -> Any:
        return make(service, region_name="us-east-1", endpoint_url=url)

    def secret(name: str) -> MungeSecret:
        made = client("secretsmanager").create_secret(Name=name, SecretBinary=os.urandom(1024))
        return MungeSecret(made["ARN"])

    client("s3").create_bucket(Bucket=BUNDLES)
    return Cloud(client, client("ec2"), secret("munge"), secret("other"))


def publish(cloud: Cloud, bundle: Bundle) -> BundleAt:
    """What the CDK's assets do."""
    key = f"{bundle.sha256}.tgz"
    cloud.client("s3").put_object(Bucket=BUNDLES, Key=key, Body=bundle.archive)
    return BundleAt(BUNDLES, key, bundle.sha256)


def publish_agent(cloud: Cloud, archive: Path) -> BundleAt:
    """What the CDK's asset does."""
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    key = f"{sha256}.tgz"
    cloud.client("s3").put_object(Bucket=BUNDLES, Key=key, Body=archive.read_bytes())
    return BundleAt(BUNDLES, key, sha256)


def data_of_node(cloud: Cloud, values: NodeValues) -> str:
    """User data of nodes, whose bundle is there."""
    return node_user_data(values, publish(cloud, node_bundle()))


def data_of_head(cloud: Cloud, values: HeadValues, parameter: str = HEAD_PARAMETER) -> str:
    """User data of the head, whose parameter and bundle are there."""
    assert_bounded_head(values)
    told = head_parameter(values, publish(cloud, head_bundle(values)))
    cloud.client("ssm").put_parameter(Name=parameter, Value=told, Type="String", Overwrite=True)
    return head_user_data(values, parameter)


def start_throttled_service(
    port: int = THROTTLED_PORT, times: float = math.inf
) -> ThreadingHTTPServer:
    """A Secrets Manager that has no time so many times, and then answers."""
    left = times

    class Throttled(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            nonlocal left
            left -= 1
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            code, body = 400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'
            if left < 0:
                real = urllib.request.Request(
                    f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/", asked, dict(self.headers)
                )
                with urllib.request.urlopen(real) as answer:
                    code, body = 200, answer.read()
            self.send_response(code)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer((BRIDGE_ADDRESS, port), Throttled)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def template(cloud: Cloud, name: str, user_data: str, *, profile: str = "") -> str:
    data: dict[str, Any] = {
        "ImageId": "ami-12345678",
        "UserData": base64.b64encode(user_data.encode()).decode(),
    }
    if profile:
        data["IamInstanceProfile"] = {"Name": profile}
    made = cloud.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def tags(**found: str) -> list[dict[str, Any]]:
    listed = [{"Key": f"tidegate:{key}", "Value": value} for key, value in found.items()]
    return [{"ResourceType": "instance", "Tags": listed}]


def buy(cloud: Cloud, template_id: str, shape: NodeShape, market: str, **found: str) -> str:
    """One instance by CreateFleet; its id."""
    made = cloud.ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template_id, "Version": "1"},
                "Overrides": [
                    {"InstanceType": shape.instance_type, "AvailabilityZone": "us-east-1b"}
                ],
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": market,
        },
        TagSpecifications=tags(**found),
    )
    return str(made["Instances"][0]["InstanceIds"][0])


def boot_head(cloud: Cloud, world: World) -> Machine:
    values = replace(HEAD, slurm=LOCAL_SLURM, munge=cloud.munge, agent=None)
    template_id = template(cloud, "head", data_of_head(cloud, values))
    cloud.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        InstanceType="m7i.large",
        LaunchTemplate={"LaunchTemplateId": template_id, "Version": "1"},
        TagSpecifications=tags(role="head"),
    )
    wait_for(lambda: world.head and READY in world.head.console.read_text())
    assert world.head
    return world.head


def broken_specs(cloud: Cloud) -> dict[str, MachineSpec]:
    """Nodes that must never be in Slurm."""
    good = replace(LOCAL_NODE, munge=cloud.munge)

    def spec(number: int, values: NodeValues, gpus: int = 4) -> MachineSpec:
        return MachineSpec(
            f"i-bad000000000{number:04d}",
            A10GX4.instance_type,
            data_of_node(cloud, values),
            gpus=gpus,
            tags={"tidegate:pool": "gpu"},
        )

    throttled = {"AWS_ENDPOINT_URL_SECRETSMANAGER": f"http://{BRIDGE_ADDRESS}:{THROTTLED_PORT}"}
    impatient = replace(good, munge=replace(cloud.munge, wait_s=1))
    no_files = replace(good, shared=replace(good.shared, file_system_id="nothing", wait_s=1))
    patient = replace(no_files.shared, wait_s=300)
    return {
        "wrong_key": spec(1, replace(good, munge=cloud.other)),
        "gpu_missing": spec(2, good, gpus=3),
        "throttled_secret": replace(spec(3, impatient), env=throttled),
        "no_shared_folder": spec(4, no_files),
        "hanging": spec(5, replace(no_files, shared=patient, boot_bound_s=2)),
    }


def run_job(head: Machine, world: World, names: list[str]) -> dict[str, list[str]]:
    script = JOB.replace("NODES", " ".join([*names, "head"]))
    asked = ["sbatch", "--wait", "--gres=gpu:a10g:2"]
    line = f"ulimit -n 512 -l 64; {shlex.join(asked)}"
    done = head.run(["bash", "-c", line], user="alice", input=script)
    home = world.shared_dir / "home" / "alice"
    files = ("batch", "step", "tres")
    found = {name: (home / name).read_text().split() for name in files if (home / name).exists()}
    node = world.machine(names[2])
    assert node
    slurmd = "prlimit -p $(pgrep -ox slurmd) --noheadings --raw -o SOFT --memlock --nofile"
    found["limits"] = node.run(["bash", "-c", slurmd]).stdout.split()
    found["out"] = [each.name for each in home.glob("slurm-*.out")]
    return {"sbatch": [done.stderr], **found, "owner": [str((home / "batch").stat().st_uid)]}


def show_nodes(head: Machine) -> dict[str, dict[str, str]]:
    shown = head.run(["scontrol", "-o", "show", "nodes"]).stdout.splitlines()
    rows = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown]
    named = {row["NodeName"]: row for row in rows if "NodeName" in row}
    return {name: row for name, row in named.items() if not name.startswith("ph-")}


def instance_state(cloud: Cloud, instance_id: str) -> str:
    answer = cloud.ec2.describe_instances(InstanceIds=[instance_id])
    return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])


def buy_nodes(cloud: Cloud) -> dict[str, str]:
    template_id = template(
        cloud, "node", data_of_node(cloud, replace(LOCAL_NODE, munge=cloud.munge))
    )
    return {
        "t4x1": buy(cloud, template_id, T4X1, "spot", pool="cheap"),
        "t4x4": buy(cloud, template_id, T4X4, "on-demand", pool="gpu"),
        "a10gx4": buy(cloud, template_id, A10GX4, "spot", pool="gpu"),
        "gated": buy(cloud, template_id, A10GX4, "spot", pool="gpu", gate="drain"),
    }


def are_ready(hypervisor: Hypervisor, instance_ids: Iterable[str]) -> bool:
    machines = [hypervisor.machine(instance_id) for instance_id in instance_ids]
    return all(machine and READY in machine.console.read_text() for machine in machines)


def break_nodes(cloud: Cloud, world: World) -> dict[str, dict[str, Any]]:
    """Boot what must fail, all at once; whether each ended, and its last words."""
    start_throttled_service()
    machines = {name: world.boot(spec) for name, spec in broken_specs(cloud).items()}
    ended = {name: machine.wait_for_end(PATIENCE_S) for name, machine in machines.items()}
    return {
        name: {"ended": ended[name], "console": machine.console.read_text()}
        for name, machine in machines.items()
    }


def refuse_node(cloud: Cloud, hypervisor: Hypervisor) -> str:
    """An instance whose pool this launch template does not know; its last state in EC2."""
    template_id = template(
        cloud, "other", data_of_node(cloud, replace(LOCAL_NODE, munge=cloud.munge))
    )
    instance_id = buy(cloud, template_id, T4X1, "spot", pool="unheard-of")
    wait_for(lambda: instance_state(cloud, instance_id) == "terminated")
    wait_for(lambda: hypervisor.machine(instance_id) is None)
    return instance_state(cloud, instance_id)


def reclaim(cloud: Cloud, hypervisor: Hypervisor, head: Machine, lost: str) -> dict[str, Any]:
    """EC2 takes a spot node after a notice of two seconds."""
    hypervisor.reclaim_after(lost, 2)
    drained = wait_for(lambda: "DRAIN" in show_nodes(head)[lost]["State"], 1.9)
    reason = head.run(["sinfo", "-h", "-n", lost, "-o", "%E"]).stdout.strip()
    gone = wait_for(lambda: hypervisor.machine(lost) is None)
    terminated = wait_for(lambda: instance_state(cloud, lost) == "terminated")
    return {"drained": drained, "reason": reason, "gone": gone, "terminated": terminated}


def munge_key(cloud: Cloud) -> bytes:
    secrets = cloud.client("secretsmanager")
    key: bytes = secrets.get_secret_value(SecretId=cloud.munge.secret_id)["SecretBinary"]
    return key


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        hypervisor = Hypervisor(cloud.ec2, world, poll_s=0.2)
        hypervisor.start()
        head_s = -time.monotonic()
        head = boot_head(cloud, world)
        head_s += time.monotonic()
        started_s = time.monotonic()
        ids = buy_nodes(cloud)
        ready = wait_for(lambda: are_ready(hypervisor, ids.values()))
        nodes_s = time.monotonic() - started_s
        add_user(head)  # later than the nodes: the Prolog must make her known there
        seen = {
            "ids": ids,
            "head_s": head_s,
            "nodes_s": nodes_s,
            "ready": ready,
            "nodes": show_nodes(head),
            "job": run_job(head, world, list(ids.values())),
            "names_on_head": [head.run(["getent", "hosts", i]).returncode for i in ids.values()],
            "imds": {user: reaches_imds(head, user) for user in ("root", "slurm", "alice")},
            "files": {user: reaches_files(head, user) for user in ("root", "slurm", "alice")},
            "home_at_login": home_at_login(head),
            "shared": head.run(["findmnt", "-no", "OPTIONS", "/shared"]).stdout.strip(),
            "leaked": what_leaked(head),
            "key_in": leaks(munge_key(cloud), world),
            "firewall": {
                name: firewall_restarted(machine)
                for name, machine in (("head", head), ("node", hypervisor.machine(ids["a10gx4"])))
                if machine
            },
            "broken": break_nodes(cloud, world),
            "refused": refuse_node(cloud, hypervisor),
            "spot": reclaim(cloud, hypervisor, head, ids["t4x1"]),
            "names_at_end": sorted(show_nodes(head)),
        }
        hypervisor.stop()
    return seen


def hold(path: str) -> None:
    """A world with one busy machine, until someone ends it; `path`: where its programs are."""
    env = {"PATH": path} if path else {}
    user_data = "#!/bin/bash\nsleep 1000"
    with World(WorldSettings(AWS_PORT)) as world:
        world.boot(MachineSpec("i-00000000000000001", "m7i.large", user_data, env=env))
        print("up", flush=True)
        time.sleep(1000)


if __name__ == "__main__":
    namespaces.enter()
    if sys.argv[1] == "hold":
        hold("".join(sys.argv[2:]))
    print(json.dumps(scenario()))
