"""Boots a cluster in namespaces, breaks some nodes, and prints what happened as JSON.

A program of its own, since pytest stays outside the namespaces:

    python -m tests.e2e.boot_world scenario     everything test_boot.py looks at
    python -m tests.e2e.boot_world hold         a world with one machine, until it is killed
"""

import json
import shlex
import sys
import time
from dataclasses import replace
from typing import Any

from local import namespaces
from local.boot.cloud import (
    AWS_PORT,
    THROTTLED_PORT,
    Cloud,
    buy,
    instance_state,
    start_cloud,
    start_throttled_service,
    template,
)
from local.boot.machines import (
    LOCAL_NODE,
    are_ready,
    boot_head,
    data_of_node,
    show_nodes,
)
from local.boot.values import A10GX4, T4X1, T4X4
from local.hypervisor import Hypervisor
from local.machine import Machine, MachineSpec
from local.waiting import PATIENCE_S, wait_for
from local.world import BRIDGE_ADDRESS, World, WorldSettings
from tests.e2e.people import add_user, home_at_login
from tests.e2e.secrecy import firewall_restarted, leaks, reaches_files, reaches_imds, what_leaked
from userdata.render import NodeValues

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


def buy_nodes(cloud: Cloud) -> dict[str, str]:
    """Nodes that look so often for a notice that two seconds of one are enough."""
    values = replace(LOCAL_NODE, munge=cloud.munge, spot_poll_s=0.5)
    template_id = template(cloud, "node", data_of_node(cloud, values))
    return {
        "t4x1": buy(cloud, template_id, T4X1, "spot", pool="cheap"),
        "t4x4": buy(cloud, template_id, T4X4, "on-demand", pool="gpu"),
        "a10gx4": buy(cloud, template_id, A10GX4, "spot", pool="gpu"),
        "gated": buy(cloud, template_id, A10GX4, "spot", pool="gpu", gate="drain"),
    }


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
