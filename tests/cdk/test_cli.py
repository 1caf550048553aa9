"""The CDK's own command line against a moto server: from an empty account back to one.

One test, since each step needs the one before it.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from tests.cdk.made import ROOT, dev_file

CDK = ROOT / "node_modules" / ".bin" / "cdk"
REGION = "us-east-1"
ENVIRONMENT = f"aws://123456789012/{REGION}"
SERVER_WAIT_S = 60.0
STACK = "tidegate-dev"

# The default of the cluster file: no other volume here is as large.
HEAD_VOLUME_GIB = 50

# What no deletion of a stack takes away.
KEPT = ("buckets", "files", "secrets", "tables", "volumes")


@pytest.fixture
def endpoint(tmp_path) -> Iterator[str]:
    """A moto server of its own. By the word localhost: moto finds a template's bucket by it."""
    with socket.create_server(("localhost", 0)) as probe:
        port = probe.getsockname()[1]
    with (tmp_path / "moto.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "local.moto_server", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
        )
        try:
            wait_for(port)
            yield f"http://localhost:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)


def wait_for(port: int) -> None:
    end_s = time.monotonic() + SERVER_WAIT_S
    while True:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end_s, "the moto server did not start"
            time.sleep(0.1)
        else:
            return


def test_bootstrap_deploy_change_diff_destroy_and_deploy_again(endpoint, tmp_path):
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(dev_file()))
    first = synthesize(endpoint, tmp_path, "first")

    # Where a command line starts the app, it synthesizes every example with all its packages.
    cdk(endpoint, tmp_path, "bootstrap", ENVIRONMENT, "--app", str(first))
    deploy(endpoint, tmp_path, first)
    before = planner_environment(endpoint)
    assert "no differences" in differences(endpoint, tmp_path, first).lower()

    file.write_text(yaml.safe_dump(dev_file(limits={"nodes": "3"})))
    second = synthesize(endpoint, tmp_path, "second")
    assert "TIDEGATE_CLUSTER_KEY" in differences(endpoint, tmp_path, second)
    deploy(endpoint, tmp_path, second)

    after = planner_environment(endpoint)
    assert after["TIDEGATE_CLUSTER_KEY"] != before["TIDEGATE_CLUSTER_KEY"]
    deployed = client(endpoint, "s3").get_object(
        Bucket=after["TIDEGATE_CLUSTER_BUCKET"], Key=after["TIDEGATE_CLUSTER_KEY"]
    )
    assert json.load(deployed["Body"]) == yaml.safe_load(file.read_text())

    kept = {name: what_is_there(endpoint)[name] for name in KEPT}
    cdk(endpoint, tmp_path, "destroy", "--force", STACK, "--app", str(second))
    assert what_is_there(endpoint) == {"stacks": [f"{STACK}-data"], **kept}

    deploy(endpoint, tmp_path, second)
    assert {name: what_is_there(endpoint)[name] for name in KEPT} == kept
    assert planner_environment(endpoint)["TIDEGATE_TABLE"] == kept["tables"][0]


def synthesize(endpoint: str, folder: Path, name: str) -> Path:
    """By the command line and cdk.json, once for each state of the file."""
    file = f"cluster={folder / 'dev.yaml'}"
    output = folder / name
    given = ("-c", file, "-c", "package=source", "--output", str(output))
    cdk(endpoint, folder, "synth", "--quiet", *given)
    return output


def deploy(endpoint: str, folder: Path, assembly: Path) -> None:
    cdk(endpoint, folder, "deploy", STACK, "--require-approval", "never", "--app", str(assembly))


def differences(endpoint: str, folder: Path, assembly: Path) -> str:
    return cdk(endpoint, folder, "diff", STACK, "--method", "template", "--app", str(assembly))


def cdk(endpoint: str, folder: Path, *arguments: str) -> str:
    """What the command line prints, stderr included. A failure shows all of it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [str(CDK), *arguments, "--no-color", "--no-notices"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **kept,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "HOME": str(folder),
            # The CDK's library, unpacked, as everybody's who shares a home.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
        },
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@cache
def client(endpoint: str, service: str) -> Any:
    """One for each service: to make one costs as much as thirty calls."""
    make: Any = boto3.Session("local", "local", region_name=REGION).client
    return make(service, endpoint_url=endpoint)


def planner_environment(endpoint: str) -> dict[str, str]:
    answer = client(endpoint, "lambda").get_function_configuration(
        FunctionName="tidegate-dev-planner"
    )
    return dict(answer["Environment"]["Variables"])


def what_is_there(endpoint: str) -> dict[str, list[Any]]:
    """What an account is charged for, or would trip over at the next deployment."""
    ask = {
        "stacks": lambda: [
            stack["StackName"]
            for stack in client(endpoint, "cloudformation").describe_stacks()["Stacks"]
            if stack["StackName"].startswith(STACK)
        ],
        "functions": lambda: client(endpoint, "lambda").list_functions()["Functions"],
        "tables": lambda: client(endpoint, "dynamodb").list_tables()["TableNames"],
        "queues": lambda: client(endpoint, "sqs").list_queues().get("QueueUrls", []),
        "buckets": lambda: [
            bucket["Name"]
            for bucket in client(endpoint, "s3").list_buckets()["Buckets"]
            if not bucket["Name"].startswith("cdk-")
        ],
        "secrets": lambda: [
            secret["ARN"]
            for secret in client(endpoint, "secretsmanager").list_secrets()["SecretList"]
        ],
        "volumes": lambda: [
            volume["VolumeId"]
            for volume in client(endpoint, "ec2").describe_volumes()["Volumes"]
            if volume["Size"] == HEAD_VOLUME_GIB
        ],
        "instances": lambda: [
            instance["InstanceId"]
            for group in client(endpoint, "ec2").describe_instances()["Reservations"]
            for instance in group["Instances"]
            if instance["State"]["Name"] != "terminated"
        ],
        "vpcs": lambda: [
            vpc["VpcId"]
            for vpc in client(endpoint, "ec2").describe_vpcs()["Vpcs"]
            if not vpc["IsDefault"]
        ],
        "files": lambda: [
            files["FileSystemId"]
            for files in client(endpoint, "efs").describe_file_systems()["FileSystems"]
        ],
        "buses": lambda: [
            bus["Name"]
            for bus in client(endpoint, "events").list_event_buses()["EventBuses"]
            if bus["Name"] != "default"
        ],
        "schedules": lambda: client(endpoint, "scheduler").list_schedules()["Schedules"],
    }
    found = {name: list(asked()) for name, asked in ask.items()}
    return {name: left for name, left in found.items() if left}


def test_command_line_is_the_pinned_one_and_its_lock_names_no_registry():
    """npm's `latest` is a version that was published by accident and is too old."""
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    lock = (ROOT / "package-lock.json").read_text()

    assert wanted == {"aws-cdk": "2.1148.1"}
    assert json.loads(lock)["packages"]["node_modules/aws-cdk"]["version"] == "2.1148.1"
    assert "resolved" not in lock
    assert "://" not in lock
    assert shutil.which(str(CDK)), "make setup installs it"
