"""A head that is stopped and started, under a role and a name, and a node that comes back.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.
"""

import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdk.agent_package import own_agent_package
from local import namespaces
from local.boot.agents_way import agent_started_s, make_agents_way
from local.boot.cloud import (
    AWS_PORT,
    Cloud,
    buy,
    instance_state,
    publish_agent,
    start_cloud,
    tags,
    template,
)
from local.boot.machines import (
    LOCAL_NODE,
    LOCAL_SLURM,
    READY,
    data_of_head,
    data_of_node,
    show_nodes,
)
from local.boot.values import HEAD, T4X1
from local.hypervisor import Hypervisor
from local.instance_roles import install_instance_profiles
from local.machine import Machine
from local.waiting import wait_for
from local.world import World, WorldSettings

ROOT = Path(__file__).parents[2]
ZONE = "tidegate-dev.internal"
HEAD_HOST = f"head.{ZONE}"

# Stands before a daemon and notes at each start whether the owner rule was there; to be asked for
# its version is no start. Under its own name: one that is called otherwise knows no GRES.
NOTING = """#!/bin/bash
[ "$*" != -V ] || exec "$0.real" -V
if nft list table inet tidegate >/dev/null 2>&1; then echo behind; else echo ahead; fi >>/starts
exec -a "$0" "$0.real" "$@"
"""
# What boots in place of the user data, if anything does.
USER_DATA_AGAIN = "#!/bin/sh\necho user data ran again >>/dev/console\n"


@dataclass
class Cluster:
    cloud: Cloud
    world: World
    hypervisor: Hypervisor
    head: Machine | None = None

    def booted_head(self, times: int) -> Machine:
        """The head's machine, ready for the `times`-th time."""

        def is_ready() -> bool:
            head = self.world.head
            return head is not None and head.console.read_text().count(READY) >= times

        assert wait_for(is_ready), self.world.head and self.world.head.console.read_text()
        assert self.world.head
        return self.world.head


def make_roles(cloud: Cloud) -> None:
    iam = cloud.client("iam")
    for name in ("head", "node"):
        iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=f"{name}-profile")
        iam.add_role_to_instance_profile(
            InstanceProfileName=f"{name}-profile", RoleName=f"{name}-role"
        )


def name_head(cloud: Cloud, address: str) -> None:
    """What the stack says of the head in Route 53."""
    route53 = cloud.client("route53")
    zone = route53.create_hosted_zone(
        Name=ZONE, CallerReference="1", VPC={"VPCRegion": "us-east-1", "VPCId": "vpc-12345678"}
    )
    record = {"Name": HEAD_HOST, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": address}]}
    route53.change_resource_record_sets(
        HostedZoneId=zone["HostedZone"]["Id"],
        ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]},
    )


def launch_head(cluster: Cluster) -> str:
    cloud = cluster.cloud
    values = replace(
        HEAD,
        slurm=replace(LOCAL_SLURM, head_host=HEAD_HOST),
        munge=cloud.munge,
        agent=publish_agent(cloud, own_agent_package(ROOT)),
        agent_env=make_agents_way(cloud),
    )
    template_id = template(cloud, "head", data_of_head(cloud, values), profile="head-profile")
    made = cloud.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        InstanceType="m7i.large",
        LaunchTemplate={"LaunchTemplateId": template_id, "Version": "1"},
        TagSpecifications=tags(role="head"),
    )["Instances"][0]
    name_head(cloud, made["PrivateIpAddress"])
    return str(made["InstanceId"])


def run(machine: Machine, line: str) -> str:
    done = machine.run(["bash", "-c", line])
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout.strip()


def watch_daemon(machine: Machine, daemon: str) -> None:
    run(machine, f"mv /usr/sbin/{daemon} /usr/sbin/{daemon}.real")
    path = machine.root / "usr/sbin" / daemon
    path.write_text(NOTING)
    path.chmod(0o755)


def starts(machine: Machine) -> list[str]:
    noted = machine.root / "starts"
    return noted.read_text().split() if noted.exists() else []


def role_of(machine: Machine) -> str:
    """As whom the AWS CLI acts in the machine."""
    caller = run(machine, "aws sts get-caller-identity --output json")
    return str(json.loads(caller)["Arn"])


def look_at(cluster: Cluster, head: Machine) -> dict[str, Any]:
    wait_for(lambda: agent_started_s(cluster.cloud))
    return {
        "ip": head.ip,
        "job": run(head, "squeue -h -o '%i %j %T'"),
        "digest_start_s": agent_started_s(cluster.cloud),
        "key": run(head, "sha256sum /etc/munge/munge.key"),
        "owner_rule": run(head, "nft list table inet tidegate"),
    }


def stop_and_start(cluster: Cluster, instance_id: str) -> dict[str, Any]:
    """A night without a head, with a job in the queue."""
    head = cluster.booted_head(1)
    run(head, "sbatch --job-name=waits --gres=gpu:a10g:1 --wrap=true")
    run(head, "echo '# by the administrator' >>/etc/slurm/slurm.conf")
    watch_daemon(head, "slurmctld")
    (head.root / "var/lib/cloud/user-data").write_text(USER_DATA_AGAIN)
    before = look_at(cluster, head)
    cluster.cloud.ec2.stop_instances(InstanceIds=[instance_id])
    stopped = wait_for(lambda: not head.is_alive)
    time.sleep(1)  # the hypervisor looks several times meanwhile
    evening_s = time.time()
    state = instance_state(cluster.cloud, instance_id)
    log = (head.root / "var/log/slurm/slurmctld.log").read_text()
    cluster.cloud.ec2.start_instances(InstanceIds=[instance_id])
    again = cluster.booted_head(2)
    wait_for(lambda: agent_started_s(cluster.cloud) > evening_s)
    return {
        "before": before,
        "stopped": stopped,
        "state": state,
        "clean_end": "Terminate signal" in log,
        "same_machine": again is head,
        "starts": starts(again),
        "slurm_conf": run(again, "tail -n 1 /etc/slurm/slurm.conf"),
        "console": again.console.read_text(),
        "evening_s": evening_s,
        "after": look_at(cluster, again),
    }


def join_node(cluster: Cluster, head: Machine) -> Machine:
    values = replace(LOCAL_NODE, munge=cluster.cloud.munge, head_host=HEAD_HOST)
    template_id = template(
        cluster.cloud, "node", data_of_node(cluster.cloud, values), profile="node-profile"
    )
    instance_id = buy(cluster.cloud, template_id, T4X1, "on-demand", pool="cheap")
    assert wait_for(lambda: instance_id in show_nodes(head))
    found = cluster.hypervisor.machine(instance_id)
    assert found
    assert wait_for(lambda: READY in found.console.read_text())
    return found


def again(cluster: Cluster, head: Machine, node: Machine) -> dict[str, Any]:
    """A node that is down and up again."""
    watch_daemon(node, "slurmd")
    boots = node.console.read_text().count(READY)
    cluster.cloud.ec2.stop_instances(InstanceIds=[node.spec.instance_id])
    wait_for(lambda: not node.is_alive)
    cluster.cloud.ec2.start_instances(InstanceIds=[node.spec.instance_id])
    is_ready = wait_for(lambda: node.console.read_text().count(READY) > boots)
    # The console tells before the timer is stopped.
    timer = "systemctl is-active tidegate-dead-man.timer || true"
    wait_for(lambda: run(node, timer) == "inactive")
    asked = ["srun", "-D/", f"--nodelist={node.spec.instance_id}", "--gres=gpu:1", "id", "-un"]
    return {
        "is_ready": is_ready,
        "console": node.console.read_text(),
        "starts": starts(node),
        "timer": run(node, timer),
        "state": show_nodes(head)[node.spec.instance_id]["State"],
        "job": head.run(["runuser", "-u", "games", "--", *asked]).stdout.strip(),
    }


def scenario() -> dict[str, Any]:
    install_instance_profiles()
    cloud = start_cloud()
    make_roles(cloud)
    with World(WorldSettings(AWS_PORT)) as world:
        hypervisor = Hypervisor(cloud.ec2, world, clients=cloud.client)
        hypervisor.start()
        cluster = Cluster(cloud, world, hypervisor)
        instance_id = launch_head(cluster)
        night = stop_and_start(cluster, instance_id)
        head = cluster.booted_head(2)
        node = join_node(cluster, head)
        seen = {
            "night": night,
            "head_id": instance_id,
            "node_id": node.spec.instance_id,
            "head_role": role_of(head),
            "node_role": role_of(node),
            "head_name": run(node, f"getent hosts {HEAD_HOST}").split()[0],
            "node_joined": re.sub(r"\+.*", "", show_nodes(head)[node.spec.instance_id]["State"]),
        }
        seen["again"] = again(cluster, head, node)
        head.run(["systemctl", "poweroff"])
        wait_for(lambda: instance_state(cloud, instance_id) == "stopped")
        seen["state_after_poweroff"] = instance_state(cloud, instance_id)
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario()))
