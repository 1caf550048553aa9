"""`tidegate import pcluster`: a public subnet beside a private one in the same zone."""

from pathlib import Path

from typer.testing import CliRunner, Result

from tests.cli.pcluster.imported import good, written
from tidegate.cli.main import app

PUBLIC_HEAD = """
Region: us-east-1
HeadNode: {InstanceType: m5.large, Networking: {SubnetId: subnet-0a1b2c3d}}
LoginNodes:
  Pools:
    - Name: login
      Count: 1
      InstanceType: m5.large
      Ssh: {KeyName: team, AllowedIps: 192.0.2.0/24}
      Networking: {SubnetIds: [subnet-0a1b2c3d]}
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: cpu
      Networking: {SubnetIds: [subnet-0a1b2c3e]}
      ComputeResources: [{Name: a, InstanceType: c5.xlarge}]
"""


def of_public_head(tmp_path: Path, *options: str) -> Result:
    file = tmp_path / "old.yaml"
    file.write_text(PUBLIC_HEAD)
    return CliRunner().invoke(app, ["import", "pcluster", str(file), *options])


def test_head_and_login_nodes_keep_a_public_subnet_beside_the_nodes_private_one_in_their_zone(
    tmp_path: Path,
):
    zones = (f"--zone={each}=us-east-1a" for each in ("subnet-0a1b2c3d", "subnet-0a1b2c3e"))

    done = of_public_head(tmp_path, *zones, "--vpc=vpc-0a1b2c3d")

    file = good(done)
    assert dict(file.network.subnets) == {"us-east-1a": "subnet-0a1b2c3e"}
    assert (file.head_zone, file.head.subnet) == ("us-east-1a", "subnet-0a1b2c3d")
    (login,) = file.login_kinds
    assert (file.login_zone(login), login.model.subnet) == ("us-east-1a", "subnet-0a1b2c3d")
    assert file.pool_subnets == {}
    assert "SubnetId" not in done.stderr


def test_the_zone_of_login_nodes_is_a_gap_like_others(tmp_path: Path):
    done = of_public_head(tmp_path)

    assert written(done)["login"]["zone"] is None
    assert "to fill in: login.zone: the zone of subnet-0a1b2c3d" in done.stderr
    assert "Ssh.KeyName: no EC2 key pair" in done.stderr
