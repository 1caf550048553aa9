"""The AWS of machines in namespaces: moto with what a stack would have put there.

The machines reach it at AWS_PORT of the bridge; `start_cloud` comes after `namespaces.enter`.
"""

import base64
import hashlib
import logging
import math
import os
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from local.world import BRIDGE_ADDRESS
from userdata.render import Bundle, BundleAt, MungeSecret, NodeShape

AWS_PORT = 5000
THROTTLED_PORT = 5001
BUNDLES = "bundles"


@dataclass
class Cloud:
    """moto, the secrets in it, and clients to it."""

    client: Callable[[str], Any]
    ec2: Any
    munge: MungeSecret
    other: MungeSecret


def start_cloud() -> Cloud:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ThreadedMotoServer(ip_address="0.0.0.0", port=AWS_PORT, verbose=False).start()
    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    url = f"http://127.0.0.1:{AWS_PORT}"
    make: Any = boto3.client

    @cache
    def client(service: str) -> Any:
        return make(service, region_name="us-east-1", endpoint_url=url)

    def secret(name: str) -> MungeSecret:
        made = client("secretsmanager").create_secret(Name=name, SecretBinary=os.urandom(1024))
        return MungeSecret(made["ARN"])

    client("s3").create_bucket(Bucket=BUNDLES)
    return Cloud(client, client("ec2"), secret("munge"), secret("other"))


def publish(cloud: Cloud, bundle: Bundle) -> BundleAt:
    """What the CDK's assets do."""
    key = f"{bundle.sha256}.tgz"
    cloud.client("s3").put_object(Bucket=BUNDLES, Key=key, Body=bundle.archive)
    return BundleAt(BUNDLES, key, bundle.sha256)


def publish_agent(cloud: Cloud, archive: Path) -> BundleAt:
    """What the CDK's asset does."""
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    key = f"{sha256}.tgz"
    cloud.client("s3").put_object(Bucket=BUNDLES, Key=key, Body=archive.read_bytes())
    return BundleAt(BUNDLES, key, sha256)


def start_throttled_service(
    port: int = THROTTLED_PORT, times: float = math.inf
) -> ThreadingHTTPServer:
    """A Secrets Manager that has no time so many times, and then answers."""
    left = times

    class Throttled(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            nonlocal left
            left -= 1
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            code, body = 400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'
            if left < 0:
                real = urllib.request.Request(
                    f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/", asked, dict(self.headers)
                )
                with urllib.request.urlopen(real) as answer:
                    code, body = 200, answer.read()
            self.send_response(code)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer((BRIDGE_ADDRESS, port), Throttled)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def template(cloud: Cloud, name: str, user_data: str, *, profile: str = "") -> str:
    data: dict[str, Any] = {
        "ImageId": "ami-12345678",
        "UserData": base64.b64encode(user_data.encode()).decode(),
    }
    if profile:
        data["IamInstanceProfile"] = {"Name": profile}
    made = cloud.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def tags(**found: str) -> list[dict[str, Any]]:
    listed = [{"Key": f"tidegate:{key}", "Value": value} for key, value in found.items()]
    return [{"ResourceType": "instance", "Tags": listed}]


def buy(cloud: Cloud, template_id: str, shape: NodeShape, market: str, **found: str) -> str:
    """One instance by CreateFleet; its id."""
    made = cloud.ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template_id, "Version": "1"},
                "Overrides": [
                    {"InstanceType": shape.instance_type, "AvailabilityZone": "us-east-1b"}
                ],
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": market,
        },
        TagSpecifications=tags(**found),
    )
    return str(made["Instances"][0]["InstanceIds"][0])


def instance_state(cloud: Cloud, instance_id: str) -> str:
    answer = cloud.ec2.describe_instances(InstanceIds=[instance_id])
    return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])
