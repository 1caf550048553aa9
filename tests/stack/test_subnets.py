"""A cluster with a public subnet for head and login nodes, and two private ones for its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.cloud import LocalCloud
from local.deploy import deploy
from local.router.router import Router
from local.stack_world import StackWorld
from tests import make
from tests.assemblies import assembled
from tests.stack.world import CLUSTER_FILE, STACK
from tidegate.core.model.ec2 import LOGIN_ROLE, ROLE_TAG
from tidegate.wire.config import load_cluster

ZONE = "us-east-1a"


@dataclass(frozen=True)
class Site:
    """A network that was there before: all in one zone."""

    vpc: str
    public: str
    private: str
    more: str

    def file(self, folder: Path) -> Path:
        described = yaml.load(CLUSTER_FILE.read_text(), Loader=yaml.BaseLoader)
        for pool in described["pools"].values():
            pool["zones"] = [ZONE]
        described["pools"]["t4"]["subnets"] = {ZONE: [self.private, self.more]}
        public = {"zone": ZONE, "subnet": self.public}
        network = {"vpc": self.vpc, "subnets": {ZONE: self.private}}
        file = folder / "site.yaml"
        changes = {"network": network, "head": public, "login": public, "schedules": None}
        file.write_text(
            yaml.safe_dump({k: v for k, v in (described | changes).items() if v is not None})
        )
        return file


def site(ec2: Any) -> Site:
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{number}.0/24", AvailabilityZone=ZONE)
        for number in range(3)
    ]
    return Site(vpc, *(each["Subnet"]["SubnetId"] for each in made))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, StackWorld]]:
    folder = tmp_path_factory.mktemp("site")
    with LocalCloud() as cloud:
        there = site(cloud.client("ec2"))
        file = there.file(folder)
        deployment = deploy(cloud, assembled(file, folder / "cdk.out"), STACK)
        with Router(cloud) as router:
            yield there, StackWorld(cloud, deployment, router, load_cluster(file))


def instances(world: StackWorld) -> list[dict[str, Any]]:
    described = world.cloud.observer("ec2").describe_instances()
    return [one for each in described["Reservations"] for one in each["Instances"]]


def role_of(one: dict[str, Any]) -> str:
    return next((t["Value"] for t in one["Tags"] if t["Key"] == ROLE_TAG), "")


def test_each_machine_is_in_its_subnet_and_nodes_in_the_next_when_one_is_full(
    deployed: tuple[Site, StackWorld],
):
    """Under the deployed policies, which name each subnet."""
    there, world = deployed
    own = {role_of(each): each["SubnetId"] for each in instances(world)}
    assert own == {"head": there.public, LOGIN_ROLE: there.public}

    found = []
    for number in (1, 2):
        jobs = [make.job(each) for each in range(1, number + 1)]
        world.report(jobs)
        nodes = [one["SubnetId"] for one in instances(world) if not role_of(one)]
        found.append(sorted(nodes))
        world.cloud.capacity.full_subnets.add(there.private)

    assert found == [[there.private], sorted([there.private, there.more])]
    assert world.trouble() == []
