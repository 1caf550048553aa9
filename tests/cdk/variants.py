"""Every kind of cluster that a file can describe, for rules that hold for all of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cdk.made import CLUSTERS, ROOT, File, Stack, dev_file, synthesized
from tidegate.wire.deployment import NEEDED_ENDPOINTS

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"
JOB_ROLE = "arn:aws:iam::123456789012:role/research-jobs"
WORKSPACE = (
    "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-0a1b2c3d-4e5f/api/v1/remote_write"
)
METRICS_ROLE = "arn:aws:iam::210987654321:role/metrics"
OWN_NETWORK = {
    "vpc": "vpc-0a1b2c3d",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d", "us-east-1b": "subnet-0a1b2c3e"},
}
PUBLIC = "subnet-0a1b2c3f"
BLOCK = {
    "id": "cr-0a1b2c3d",
    "kind": "capacity-block",
    "instance_type": "g4dn.xlarge",
    "zone": "us-east-1a",
    "count": "2",
    "starts_at": "2027-01-01T00:00:00Z",
    "ends_at": "2027-01-02T00:00:00Z",
}
LENT = {
    "id": "cr-0a1b2c3e",
    "kind": "interruptible-capacity-reservation",
    "starts_at": "2027-01-01T00:00:00Z",
    "instance_type": "g4dn.xlarge",
    "zone": "us-east-1a",
    "count": "2",
}
KINDS = {"kinds": {"login": {}, "gpu": {"count": "2", "ssh_from": ["203.0.113.0/24"]}}}
IN_S3 = {"url": "s3://packages/slurm", "key": "s3://packages/keys/slurm.asc"}
LUSTRE = {
    "directory": "/fsx",
    "lustre": "fs-0a1b2c3d",
    "mount_name": "3a4bcdef",
    "security_group": "sg-0a1b2c3d",
}


def _read(path: Path) -> File:
    read: File = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
    return read


def _with_t4(**more: Any) -> Mapping[str, Any]:
    pools = dev_file()["pools"]
    return {**pools, "t4": {**pools["t4"], **more}}


def _elsewhere(region: str) -> File:
    pool = {
        "instance_types": ["g4dn.xlarge"],
        "zones": [f"{region}a"],
        "capacity_types": ["spot"],
    }
    return dev_file(
        region=region,
        partitions={"gpu": {"pools": ["t4"]}},
        pools={"t4": pool},
        prices_usd_per_hour={"g4dn.xlarge": {"spot": "0.2"}},
        network={"endpoints": list(NEEDED_ENDPOINTS)},
    )


def _metrics(remote_write: Mapping[str, Any]) -> File:
    return dev_file(monitoring={"prometheus": "true", "remote_write": remote_write})


def _many_pools() -> File:
    pool = dev_file()["pools"]["t4"]
    pools = {f"pool{number:02d}": pool for number in range(35)}
    return dev_file(pools=pools, partitions={"gpu": {"pools": list(pools)}})


def _efa() -> File:
    efa = _with_t4(instance_types=["p4d.24xlarge"], efa="true", limits={"gpus": "64"})
    return dev_file(pools=efa, network={"nat": "one"}, prices_usd_per_hour=None, limits=None)


def _images() -> File:
    """Two architectures, in a network that is there, of packages in S3."""
    arm = {
        **dev_file()["pools"]["t4"],
        "instance_types": ["g5g.xlarge"],
        "capacity_types": ["spot"],
    }
    pools = {**dev_file()["pools"], "arm": arm}
    partitions = {**dev_file()["partitions"], "arm": {"pools": ["arm"]}}
    return dev_file(
        alarm_email="ops@example.org",
        images={
            "components": ["arn:aws:imagebuilder:us-east-1:123456789012:component/lustre/1.x.x"],
            "instance_types": {"arm64": "g5g.xlarge"},
            "keep": "5",
        },
        pools=pools,
        partitions=partitions,
        network=OWN_NETWORK,
        image="install",
        slurm={"version": "23.11", "repositories": {"ubuntu24.04": IN_S3}},
        tags={"team": "vision"},
        prices_usd_per_hour=None,
    )


SLACK = {"workspace_id": "T0123ABCDEF", "channel_id": "C0123ABCDEF"}
TEAM = "0a1b2c3d-1111-2222-3333-444455556666"
OWNERS = {"sender": "tidegate@example.org", "address": "{user}@example.org"}
TEAMS = {"tenant_id": TEAM, "team_id": TEAM, "channel_id": "19%3Aab6e%40thread.tacv2"}

VARIANTS: Mapping[str, File] = {
    "dev": dev_file(),
    "research": _read(CLUSTERS / "research.yaml"),
    "existing head": _read(ROOT / "docs" / "example-app" / "old-cluster.yaml"),
    "own network": dev_file(
        network=OWN_NETWORK,
        head={"zone": "us-east-1a", "subnet": PUBLIC},
        login={
            "zone": "us-east-1a",
            "subnet": PUBLIC,
            "security_groups": ["sg-0a1b2c3e"],
            "ssh_from": ["203.0.113.0/24"],
        },
        pools=_with_t4(subnets={"us-east-1a": ["subnet-0a1b2c3d", "subnet-0a1b2c40"]}),
        file_systems=[
            {"directory": "/more", "efs": "fs-0a1b2c3d"},
            {"directory": "/lake", "s3": "lake/raw"},
        ],
    ),
    "instance connect": dev_file(network={"instance_connect": "true"}, login={}),
    "no way out": dev_file(
        network={"endpoints": list(NEEDED_ENDPOINTS), "instance_connect": "true"}, login=KINDS
    ),
    "nat and flow logs": dev_file(network={"nat": "one", "flow_logs": "all"}),
    "key": dev_file(kms_key=KEY, logs={"nodes": "true"}, pools=_with_t4(stopped_nodes="2")),
    "alarms of roll-outs": dev_file(rollout={"alarms": ["loss-too-high", "errors"]}),
    "lustre": dev_file(lustre={"storage_gib": "2400"}, login=KINDS),
    "lustre with a key": dev_file(
        lustre={"storage_gib": "2400", "kind": "persistent"}, kms_key=KEY
    ),
    "lustre with data": dev_file(
        lustre={
            "storage_gib": "1200",
            "data_repositories": [
                {"path": "/sets", "s3": "data-sets/imagenet", "auto_import": ["NEW", "CHANGED"]},
                {"path": "/results", "s3": "our-results", "auto_export": ["NEW", "DELETED"]},
            ],
        }
    ),
    "existing lustre": dev_file(network=OWN_NETWORK, file_systems=[LUSTRE]),
    "efa": _efa(),
    "capacity block and group": dev_file(
        pools=_with_t4(
            capacity_types=["capacity-block", "reserved", LENT["kind"], "spot"],
            placement_group="true",
            zones=["us-east-1a"],
        ),
        reservations=[BLOCK, LENT],
        reservation_groups=["arn:aws:resource-groups:us-east-1:123456789012:group/gpus"],
    ),
    "packages in s3": dev_file(slurm={"version": "23.11", "repositories": {"ubuntu24.04": IN_S3}}),
    "everything told": dev_file(
        metrics="full",
        alarm_email="ops@example.org",
        bill_alert={"usd_per_month": "100"},
        notifications={"slack": SLACK, "teams": TEAMS, "owners": OWNERS},
        report={"every": "week"},
        slurm={"version": "23.11", "accounting": "true"},
    ),
    "live prices": dev_file(prices_usd_per_hour=None),
    "images": _images(),
    "job roles": dev_file(
        job_role=JOB_ROLE,
        job_role_by_account={"vision": f"{JOB_ROLE}-vision"},
        slurm={"accounting": True, "settings": {"AccountingStorageEnforce": "associations"}},
        pools=_with_t4(job_role=f"{JOB_ROLE}-t4"),
    ),
    "metrics elsewhere": _metrics({"url": WORKSPACE}),
    "metrics of another account": _metrics({"url": WORKSPACE, "role": METRICS_ROLE}),
    "topology": dev_file(
        slurm={"version": "26.05", "topology": "tree", "repositories": {"ubuntu24.04": IN_S3}},
        pools=_with_t4(instance_types=["g6e.12xlarge", "g4dn.12xlarge"]),
        prices_usd_per_hour=None,
        limits=None,
    ),
    "arm head": dev_file(
        head={"instance_type": "m7g.large"},
        login={"instance_type": "t4g.medium"},
        pools=_with_t4(instance_types=["g5g.xlarge"]),
        partitions={"arm": {"pools": ["t4"]}, "gpu": {"pools": ["a10g"], "default": "true"}},
        images={},
    ),
    "35 pools": _many_pools(),
    "china": _elsewhere("cn-north-1"),
    "govcloud": _elsewhere("us-gov-west-1"),
}


def stacks_of(factory: pytest.TempPathFactory, variant: str) -> dict[str, Stack]:
    """The stacks of a variant, by name."""
    return synthesized(factory.getbasetemp() / "variant", VARIANTS[variant])


def cluster_stack(stacks: Mapping[str, Stack]) -> Stack:
    """The one with what can be made again."""
    (name,) = [each for each in stacks if not each.endswith(("-data", "-images"))]
    return stacks[name]
