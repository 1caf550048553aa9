"""The Terraform recipe, on assemblies that the CDK wrote: what Terraform itself makes of them.

Its AWS provider is not to be had offline: the stacks' arguments are held against the provider's
documentation of aws_cloudformation_stack by hand, everything else is run here.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import ROOT, dev_file, synthesized

RECIPE = ROOT / "docs" / "recipes" / "terraform"
ACCOUNT = "123456789012"
BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-us-east-1"

pytestmark = pytest.mark.skipif(
    shutil.which("terraform") is None, reason="Terraform is not installed on this machine"
)

# `aws s3 cp --only-show-errors FILE ADDRESS --region REGION`, told to a file.
AWS = """#!/bin/sh
test "$1 $2 $3 $6" = "s3 cp --only-show-errors --region" && test -s "$4" || exit 2
echo "$4 $5 $7" >> "$UPLOADS"
"""


@dataclass(frozen=True)
class Terraform:
    """The recipe's module of assets in a folder of its own, and an AWS CLI that only listens."""

    folder: Path

    def apply(self, assembly: Path, cluster: str = "dev") -> subprocess.CompletedProcess[str]:
        variables = {
            "assembly": str(assembly),
            "cluster": cluster,
            "account_id": ACCOUNT,
            "partition": "aws",
            "dns_suffix": "amazonaws.com",
        }
        (self.folder / "all.auto.tfvars.json").write_text(json.dumps(variables))
        return self.run("apply", "-auto-approve", "-input=false", "-no-color")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {
            "PATH": path,
            "UPLOADS": str(self.folder / "uploads"),
            "HOME": "/nonexistent",
        }
        return subprocess.run(
            ["terraform", *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def outputs(self) -> Mapping[str, Any]:
        told = json.loads(self.run("output", "-json").stdout)
        return {name: each["value"] for name, each in told.items()}

    @property
    def uploads(self) -> list[tuple[str, str, str]]:
        lines = (self.folder / "uploads").read_text().splitlines()
        return [(file, address, region) for file, address, region in map(str.split, lines)]


@pytest.fixture
def terraform(tmp_path: Path) -> Terraform:
    folder = tmp_path / "terraform"
    shutil.copytree(RECIPE / "assets", folder)
    (folder / "aws").write_text(AWS)
    (folder / "aws").chmod(0o755)
    made = Terraform(folder)
    began = made.run("init", "-input=false", "-no-color")
    assert began.returncode == 0, began.stderr
    return made


def test_all_that_the_stacks_need_is_uploaded_once_and_kept(
    tmp_path: Path, terraform: Terraform
) -> None:
    stacks = synthesized(tmp_path, dev_file(images={}))
    folder = stacks["tidegate-dev"].folder

    first = terraform.apply(folder)
    again = terraform.apply(folder)

    assert first.returncode == again.returncode == 0, first.stderr
    manifests = [json.loads((folder / f"{name}.assets.json").read_text()) for name in stacks]
    assert {address for _, address, _ in terraform.uploads} == {
        f"s3://{BUCKET}/{destination['objectKey']}"
        for manifest in manifests
        for asset in manifest["files"].values()
        for destination in asset["destinations"].values()
    }
    assert len(terraform.uploads) == len(set(terraform.uploads))
    assert {region for _, _, region in terraform.uploads} == {"us-east-1"}

    # The next version: its files come, and nobody asks for anything but a copy.
    before = set(terraform.uploads)
    other = synthesized(tmp_path, dev_file())["tidegate-dev"].folder
    later = terraform.apply(other)
    assert later.returncode == 0, later.stderr
    assert {Path(file).parent for file, _, _ in set(terraform.uploads) - before} == {other}


def test_each_stack_has_its_template_where_cloudformation_looks_and_its_role(
    tmp_path: Path, terraform: Terraform
) -> None:
    stacks = synthesized(tmp_path, dev_file(images={}))
    folder = stacks["tidegate-dev"].folder
    terraform.apply(folder)
    outputs, files = terraform.outputs, {address: file for file, address, _ in terraform.uploads}

    assert outputs["name"] == "tidegate-dev"
    assert outputs["region"] == "us-east-1"
    assert outputs["templates"].keys() == outputs["execution_roles"].keys() == stacks.keys()
    for name, address in outputs["templates"].items():
        key = address.removeprefix(f"https://{BUCKET}.s3.us-east-1.amazonaws.com/")
        assert Path(files[f"s3://{BUCKET}/{key}"]) == folder / f"{name}.template.json"
        role = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-us-east-1"
        assert outputs["execution_roles"][name] == role


def test_a_cluster_that_the_assembly_does_not_hold_is_an_error(
    tmp_path: Path, terraform: Terraform
) -> None:
    folder = synthesized(tmp_path, dev_file())["tidegate-dev"].folder

    ended = terraform.apply(folder, cluster="devv")

    assert ended.returncode != 0
    assert "no cluster devv" in ended.stderr
    assert not (terraform.folder / "uploads").exists()


def test_the_recipe_is_written_as_terraform_writes_it() -> None:
    ended = subprocess.run(
        ["terraform", "fmt", "-check", "-recursive", "-no-color", str(RECIPE)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, "")
