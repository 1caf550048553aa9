"""`tidegate import pcluster`: rights, homes and Lustre's client, which are elsewhere here."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import PLACES, changed, codes, good, written
from tidegate.cli.main import app

RIGHTS = """
  Iam:
    AdditionalIamPolicies:
      - Policy: arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore
      - Policy: arn:aws:iam::123456789012:policy/head
"""


def test_policies_of_the_head_come_along(tmp_path: Path):
    """Session Manager it has anyway; what no policy says is lost."""
    file = changed(tmp_path, "HeadNode:\n", f"HeadNode:{RIGHTS}")
    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    assert (done.exit_code, done.stderr) == (0, "")
    assert good(done).head.policies == ("arn:aws:iam::123456789012:policy/head",)

    own = "HeadNode:\n  Iam: {S3Access: [{BucketName: ours}]}\n"
    file = changed(tmp_path, "HeadNode:\n", own)
    assert codes(CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])) == {"rights"}


def test_a_policy_that_is_none_is_told(tmp_path: Path):
    own = "HeadNode:\n  Iam: {AdditionalIamPolicies: [{Policy: AmazonS3FullAccess}]}\n"
    file = changed(tmp_path, "HeadNode:\n", own)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(ran) == {"rights"}
    assert "are left out: must be an IAM policy's ARN" in ran.stderr


HOME = "SharedStorage: [{{Name: home, MountDir: /home, StorageType: {}}}]\nScheduling:"


def test_homes_on_an_efs_come_along_beside_the_new_ones(tmp_path: Path):
    """A cluster's homes are below its shared folder: whose files were in /home must find them."""
    settings = "Efs, EfsSettings: {FileSystemId: fs-0a1b2c3d}"
    file = changed(tmp_path, "Scheduling:", HOME.format(settings))
    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    assert codes(ran) == {"storage"}
    assert "SharedStorage[home]: Efs at /home is at /old-home: homes are in SHARED_DIR/home" in (
        ran.stderr
    )

    done = CliRunner().invoke(
        app, ["import", "pcluster", str(file), *PLACES, "--accept", "storage"]
    )

    assert written(done)["file_systems"] == [{"directory": "/old-home", "efs": "fs-0a1b2c3d"}]


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("FsxOpenZfs, FsxOpenZfsSettings: {VolumeId: fsvol-0123456789abcdef0}", "SHARED_DIR/home"),
        ("Ebs, EbsSettings: {Size: 100}", "no EBS volume is shared from the head"),
    ],
)
def test_other_homes_are_told_once_with_where_they_are_now(tmp_path: Path, storage: str, said: str):
    file = changed(tmp_path, "Scheduling:", HOME.format(storage))

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (line,) = [each for each in ran.stderr.splitlines() if "SharedStorage[home]" in each]
    assert said in line


def test_lustre_asks_for_an_image_that_has_its_client(tmp_path: Path):
    """ParallelCluster's images have it, AWS's do not: no node would join."""
    file = changed(tmp_path, "Scheduling:", HOME.format("FsxLustre").replace("/home", "/fsx"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert written(done)["image"] is None
    assert "to fill in: image: one of yours with FSx for Lustre's client" in done.stderr
