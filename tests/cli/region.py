"""An account in the local cloud, and what that lacks: quotas, images, the key of volumes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_resources
from local.deploy import AMI_PARAMETERS, publish_image_parameters
from tests.wire.cluster_files import good
from tidegate.adapters.account import EBS_AWS_KEY, NOT_BLOCKED
from tidegate.cli.main import app
from tidegate.core.model.ec2 import SPOT_ROLE
from tidegate.core.model.errors import NotAuthorized
from tidegate.wire.image_names import parent_image

ENOUGH = {
    "EC2-VPC Elastic IPs": 5.0,
    "All G and VT Spot Instance Requests": 1000.0,
    "Running On-Demand G and VT instances": 1000.0,
}
ARM_IMAGE = "ami-0a1b2c3d4e5f60718"
NEWEST_ARM = parent_image("arm64")
LARGE_IMAGE = "ami-0b2c3d4e5f6071829"  # its root volume is of 120 GiB, another disk of 500
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


@dataclass
class Shared:
    """VPCs as a participant of a shared one sees them."""

    asked: Any
    owner: str

    def paginate(self) -> Iterator[dict[str, Any]]:
        for page in self.asked.paginate():
            yield {"Vpcs": [{**each, "OwnerId": self.owner} for each in page["Vpcs"]]}


@dataclass
class Region:
    """The local cloud's region, and what it does not know: quotas and the key of volumes.

    It is the client of EC2 and of Service Quotas.
    """

    cloud: LocalCloud
    names: CloudNames
    file: Path
    quotas: dict[str, float] = field(default_factory=lambda: dict(ENOUGH))
    vpcs: float = 1000.0
    may_ask_quotas: bool = True
    root_gib: int = 8
    root_device: str = "/dev/sda1"  # of the large image
    ebs_key: str = EBS_AWS_KEY
    image_key: str = ""  # of the large image's snapshots
    internet_block: str = NOT_BLOCKED
    let_out: list[str] = field(default_factory=list)  # ids that the block leaves out
    vpc_owner: str = ""  # who shares the VPCs; the account itself where it is empty

    def client(self, service: str) -> Any:
        return self if service in ("service-quotas", "ec2") else self.cloud.client(service)

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.cloud.client("ec2"), operation)

    def get_paginator(self, operation: str) -> Any:
        if operation.endswith("service_quotas"):
            return self
        if operation == "describe_vpcs" and self.vpc_owner:
            return Shared(self.cloud.client("ec2").get_paginator(operation), self.vpc_owner)
        return self.cloud.client("ec2").get_paginator(operation)

    def paginate(self, *, ServiceCode: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        if not self.may_ask_quotas:
            raise NotAuthorized("AccessDeniedException: no servicequotas:ListServiceQuotas")
        quotas = {"ec2": self.quotas, "vpc": {"VPCs per Region": self.vpcs}}[ServiceCode]
        yield {"Quotas": [{"QuotaName": k, "Value": v} for k, v in quotas.items()]}

    def get_ebs_default_kms_key_id(self) -> dict[str, str]:
        return {"KmsKeyId": self.ebs_key}

    def describe_vpc_block_public_access_options(self) -> Any:
        return {"VpcBlockPublicAccessOptions": {"InternetGatewayBlockMode": self.internet_block}}

    def describe_vpc_block_public_access_exclusions(self) -> Any:
        arn = "arn:aws:ec2:us-east-1:123456789012"
        found = [
            {"ResourceArn": f"{arn}:{each.partition('-')[0]}/{each}", "State": "create-complete"}
            for each in self.let_out
        ]
        return {"VpcBlockPublicAccessExclusions": found}

    def describe_images(self, *, ImageIds: list[str]) -> Any:  # noqa: N803
        """An image of ours or AWS's newest; `root_gib` is of the latter."""
        (image_id,) = ImageIds
        if image_id == ARM_IMAGE:
            return {"Images": [{"Architecture": "arm64", "State": "pending"}]}
        if image_id == LARGE_IMAGE:
            return {"Images": [_image(120, self.root_device, self.image_key)]}
        if image_id in AMI_PARAMETERS.values():
            newest = _image(self.root_gib)
            is_arm = image_id == AMI_PARAMETERS[NEWEST_ARM]
            return {"Images": [{**newest, "Architecture": "arm64"} if is_arm else newest]}
        return self.cloud.client("ec2").describe_images(ImageIds=ImageIds)

    def describe_snapshots(self, *, SnapshotIds: list[str]) -> Any:  # noqa: N803
        """Those of the large image are called by their key."""
        if self.image_key in SnapshotIds:
            return {"Snapshots": [{"KmsKeyId": self.image_key}]}
        return self.cloud.client("ec2").describe_snapshots(SnapshotIds=SnapshotIds)

    def ask(self, changes: dict[str, Any] | None = None) -> Result:
        self.file.write_text(yaml.safe_dump(good(changes or {})))
        return CliRunner().invoke(app, ["validate", "--live", str(self.file)], obj=self.client)

    def told(self, changes: dict[str, Any] | None = None) -> list[str]:
        """The problems, without headlines and what is told of every Slurm and image of this kind.

        Other tests leave networks that a note is about.
        """
        lines = [line for line in self.ask(changes).output.splitlines() if line.startswith("  ")]
        left_out = ("network.cidr: ", " R21: ", " image: each boot ")
        return [
            " ".join(line.split()) for line in lines if not any(each in line for each in left_out)
        ]


def _image(gib: int, root: str = "/dev/sda1", key: str = "") -> Mapping[str, Any]:
    """With a root volume of this size, beside a larger one that is none."""
    encrypted = {"SnapshotId": key} if key else {}
    sizes = {"/dev/sdb": 500, root: gib}
    return {
        "Architecture": "x86_64",
        "State": "available",
        "RootDeviceName": root,
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sdc", "VirtualName": "ephemeral0"},
            *(
                {"DeviceName": each, "Ebs": {"VolumeSize": size, **encrypted}}
                for each, size in sizes.items()
            ),
        ],
    }


@pytest.fixture(scope="module")
def names(cloud: LocalCloud) -> CloudNames:
    """Its VPC is a default one, with public subnets; moto's has no way out."""
    cloud.client("iam").create_role(RoleName=SPOT_ROLE, AssumeRolePolicyDocument=TRUST)
    publish_image_parameters()
    made = create_resources(cloud, "live")
    lead(cloud, main_table(cloud, made.vpc_id), gateway(cloud, made.vpc_id))
    return made


def main_table(cloud: LocalCloud, vpc_id: str) -> str:
    of = [
        {"Name": "vpc-id", "Values": [vpc_id]},
        {"Name": "association.main", "Values": ["true"]},
    ]
    (table,) = cloud.client("ec2").describe_route_tables(Filters=of)["RouteTables"]
    return str(table["RouteTableId"])


def gateway(cloud: LocalCloud, vpc_id: str) -> str:
    made = cloud.client("ec2").create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    cloud.client("ec2").attach_internet_gateway(InternetGatewayId=made, VpcId=vpc_id)
    return str(made)


def lead(cloud: LocalCloud, table: str, gateway_id: str) -> None:
    cloud.client("ec2").create_route(
        RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway_id
    )


@pytest.fixture
def region(cloud: LocalCloud, names: CloudNames, tmp_path: Path) -> Region:
    return Region(cloud, names, tmp_path / "cluster.yaml")
