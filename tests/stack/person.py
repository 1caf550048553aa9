"""Somebody at the terminal, with the rights that docs/commands.md asks for and no other."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from local.clients import REGION, client_at
from local.stack_world import StackWorld
from tidegate.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
ROLE = "somebody"


def needed() -> frozenset[str]:
    """The actions that the page asks for."""
    (part,) = re.findall(r"Who asks needs (.*?)\n\n", PAGE.read_text(), re.DOTALL)
    return frozenset(re.findall(r"`(\w+:\w+)`", part))


def terminal(world: StackWorld, cluster_file: Path) -> Callable[..., Result]:
    """Runs `tidegate WORDS --cluster FILE` under a role of its own."""
    clients = _clients(world)

    def ask(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--cluster", str(cluster_file)], obj=clients)

    return ask


def _clients(world: StackWorld) -> Callable[[str], Any]:
    iam, sts = world.cloud.observer("iam"), world.cloud.observer("sts")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    made = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=_policy(trust))
    bucket = f"arn:aws:s3:::{world.physical('AWS::S3::Bucket')}"
    resources = {
        "s3": [bucket, f"{bucket}/*"],
        "lambda": [f"arn:aws:lambda:{REGION}:*:function:*-planner"],
        "dynamodb": [f"arn:aws:dynamodb:{REGION}:*:table/*"],
    }
    statements = [
        {"Effect": "Allow", "Action": each, "Resource": resources.get(each.split(":")[0], ["*"])}
        for each in sorted(needed())
    ]
    iam.put_role_policy(RoleName=ROLE, PolicyName="asks", PolicyDocument=_policy(*statements))
    given = sts.assume_role(RoleArn=made["Role"]["Arn"], RoleSessionName="ada")["Credentials"]
    keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    kept: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in kept:
            kept[service] = client_at(world.cloud.endpoint_url, service, *keys)
        return kept[service]

    return client


def _policy(*statements: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
