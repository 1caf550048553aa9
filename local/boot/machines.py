"""Head and nodes in namespaces that boot the product's own user data."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from local.boot.cloud import Cloud, publish, tags, template
from local.boot.overrides import assert_bounded_head
from local.boot.values import HEAD, NODE, SLURM
from local.hypervisor import Hypervisor
from local.machine import Machine
from local.waiting import wait_for
from local.world import World
from userdata.render import (
    HeadValues,
    NodeValues,
    head_bundle,
    head_parameter,
    head_user_data,
    node_bundle,
    node_user_data,
)

READY = "ready after"
HEAD_PARAMETER = "/tidegate/dev/head"
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
LOCAL_NODE = replace(NODE, register_wait_s=60)

# The same for every node of a world: it is packed once.
_node_bundle = cache(node_bundle)


def data_of_node(cloud: Cloud, values: NodeValues) -> str:
    """User data of nodes, whose bundle is there."""
    return node_user_data(values, publish(cloud, _node_bundle()))


def data_of_head(cloud: Cloud, values: HeadValues, parameter: str = HEAD_PARAMETER) -> str:
    """User data of the head, whose parameter and bundle are there."""
    assert_bounded_head(values)
    told = head_parameter(values, publish(cloud, head_bundle(values)))
    cloud.client("ssm").put_parameter(Name=parameter, Value=told, Type="String", Overwrite=True)
    return head_user_data(values, parameter)


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


def are_ready(hypervisor: Hypervisor, instance_ids: Iterable[str]) -> bool:
    machines = [hypervisor.machine(instance_id) for instance_id in instance_ids]
    return all(machine and READY in machine.console.read_text() for machine in machines)


def show_nodes(head: Machine) -> dict[str, dict[str, str]]:
    shown = head.run(["scontrol", "-o", "show", "nodes"]).stdout.splitlines()
    rows = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown]
    named = {row["NodeName"]: row for row in rows if "NodeName" in row}
    return {name: row for name, row in named.items() if not name.startswith("ph-")}
