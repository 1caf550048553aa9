"""Machines of a deployed cluster that only listen, and who of them reaches whom.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.stack.firewall_world ASSEMBLY
"""

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT
from local.cloud import IMAGE_ID, LocalCloud
from local.deploy import Deployment, deploy
from local.hypervisor import Hypervisor
from local.imds import ADDRESS as METADATA_ADDRESS
from local.machine import Machine
from local.waiting import wait_for
from local.world import BRIDGE_ADDRESS, FILES_ADDRESS, World, WorldSettings
from tests.stack.world import STACK

SSH, SLURMCTLD, SLURMD, ANY, NFS = 22, 6817, 6818, 45123, 2049
LISTENER = f"""#!/usr/bin/env python3
import selectors, socket
chosen = selectors.DefaultSelector()
for port in {SSH}, {SLURMCTLD}, {SLURMD}, {ANY}:
    chosen.register(socket.create_server(("", port)), selectors.EVENT_READ)
open("/run/listens", "w")
while True:
    for key, _ in chosen.select():
        key.fileobj.accept()
"""
WAIT_S = 3  # a start of bash, where 64 of them start at once on a busy machine
DNS = 53


@dataclass
class Stage:
    cloud: LocalCloud
    deployment: Deployment
    machines: Mapping[str, Machine]

    def reached(self) -> list[list[str]]:
        """[from, to, port] of each connection that comes about."""
        places = {name: machine.ip for name, machine in self.machines.items()}
        asked = [
            (who, whom, address, port)
            for who in self.machines
            for whom, address in places.items()
            for port in (SSH, SLURMCTLD, SLURMD, ANY)
            if who != whom
        ]
        for who in self.machines:
            asked += [
                (who, "files", FILES_ADDRESS, NFS),
                (who, "aws", BRIDGE_ADDRESS, AWS_PORT),
                (who, "metadata", METADATA_ADDRESS, 80),
                (who, "names", BRIDGE_ADDRESS, DNS),
            ]
        with ThreadPoolExecutor(64) as pool:
            answers = pool.map(lambda each: self._connects(each[0], *each[2:]), asked)
            return [
                [who, whom, str(port)]
                for (who, whom, _, port), is_there in zip(asked, answers, strict=True)
                if is_there
            ]

    def mounts(self, who: str) -> dict[str, Any]:
        """What the mount helper of EFS says there."""
        line = ["mount.efs", "fs-0123456789abcdef0:/", "/mnt", "-o", "tls"]
        done = self.machines[who].run(line)
        return {"code": done.returncode, "said": done.stderr.strip()}

    def close_files(self) -> None:
        """Nobody may come to the mount targets any more."""
        ec2, group = self.cloud.observer("ec2"), self.group("NetworkFileGroup")
        (found,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=found["IpPermissions"])
        assert wait_for(lambda: not self._connects("head", FILES_ADDRESS, NFS))

    def close_nodes_way_out(self) -> None:
        """What is left is what leads to other nodes."""
        ec2, group = self.cloud.observer("ec2"), self.group("NetworkNodeGroup")
        out = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=[out])
        assert wait_for(lambda: not self._connects("node", BRIDGE_ADDRESS, AWS_PORT))

    def group(self, logical_id: str) -> str:
        return physical_id(self.deployment, logical_id)

    def _connects(self, who: str, address: str, port: int) -> bool:
        line = ["timeout", str(WAIT_S), "bash", "-c", f": </dev/tcp/{address}/{port}"]
        return self.machines[who].run(line).returncode == 0


def physical_id(deployment: Deployment, logical_id: str) -> str:
    """Of the one resource whose logical id begins so."""
    (found,) = (
        physical
        for name, (_, physical) in deployment.resources.items()
        if name.startswith(logical_id)
    )
    return found


def pool_template(deployment: Deployment) -> str:
    return next(
        physical
        for name, (kind, physical) in deployment.resources.items()
        if kind == "AWS::EC2::LaunchTemplate" and name.startswith("NodesPool")
    )


def bought(ec2: Any, template: str, subnet: str, market: str) -> str:
    specification = {"LaunchTemplateId": template, "Version": "$Latest"}
    override = {"InstanceType": "g4dn.xlarge", "SubnetId": subnet}
    configs = [{"LaunchTemplateSpecification": specification, "Overrides": [override]}]
    wanted = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": market}
    answer = ec2.create_fleet(
        Type="instant", LaunchTemplateConfigs=configs, TargetCapacitySpecification=wanted
    )
    return str(answer["Instances"][0]["InstanceIds"][0])


def booted(cloud: LocalCloud, world: World, deployment: Deployment) -> dict[str, Machine]:
    """Head and login node, two nodes as a fleet has them, and an instance of somebody else's."""
    ec2 = cloud.observer("ec2")
    subnet = deployment.physical_ids("AWS::EC2::Subnet")[0]
    named = {"head": "HeadInstance", "login node": "LoginInstance"}
    ids = {name: physical_id(deployment, prefix) for name, prefix in named.items()}
    for name, market in (("node", "spot"), ("other node", "on-demand")):
        ids[name] = bought(ec2, pool_template(deployment), subnet, market)
    stranger = {"ImageId": IMAGE_ID, "InstanceType": "m5.large", "SubnetId": subnet}
    made = ec2.run_instances(MinCount=1, MaxCount=1, **stranger)["Instances"]
    ids["stranger"] = made[0]["InstanceId"]
    assert wait_for(lambda: all(map(world.machine, ids.values())))
    machines = {name: world.machine(each) for name, each in ids.items()}
    found = {name: each for name, each in machines.items() if each}
    listens = ["test", "-e", "/run/listens"]
    assert wait_for(lambda: not any(each.run(listens).returncode for each in found.values()))
    return found


def scenario(assembly: Path) -> dict[str, Any]:
    with World(WorldSettings(AWS_PORT)) as world, LocalCloud(BRIDGE_ADDRESS, AWS_PORT) as cloud:
        deployment = deploy(cloud, assembly, STACK)
        hypervisor = Hypervisor(
            cloud.observer("ec2"), world, adjust=lambda spec: replace(spec, user_data=LISTENER)
        )
        hypervisor.start()
        stage = Stage(cloud, deployment, booted(cloud, world, deployment))
        seen = {"as_deployed": stage.reached(), "mounted": stage.mounts("node")}
        stage.close_files()
        seen["not_mounted"] = stage.mounts("head")
        stage.close_nodes_way_out()
        seen["without_a_way_out"] = stage.reached()
        hypervisor.stop()
        return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario(Path(sys.argv[1]))))
