"""A local cloud with roles made by hand, and clients that act as them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.clients import client_at
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_resources
from local.iam.authorizer import Authorizer

NUMBERS = count(1)
ACCOUNT = "123456789012"
LAMBDA_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}

type Statement = Mapping[str, Any]


@dataclass(slots=True)
class As:
    """A role in the cloud; its clients are signed with credentials from STS."""

    cloud: LocalCloud
    name: str
    role_arn: str
    _keys: tuple[str, ...] = ()
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            config = Config(retries={"total_max_attempts": 1})
            made = client_at(self.cloud.endpoint_url, service, *self._assumed(), config=config)
            self._clients[service] = made
        return self._clients[service]

    def may(self, *statements: Statement) -> None:
        """From now on the role has this inline policy."""
        self.cloud.client("iam").put_role_policy(
            RoleName=self.name,
            PolicyName="inline",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}),
        )

    def _assumed(self) -> tuple[str, ...]:
        if not self._keys:
            sts = self.cloud.client("sts")
            got = sts.assume_role(RoleArn=self.role_arn, RoleSessionName="test")["Credentials"]
            self._keys = (got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"])
        return self._keys


def allow(action: str | Sequence[str], resource: str | Sequence[str], **more: Any) -> Statement:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: str | Sequence[str], resource: str | Sequence[str], **more: Any) -> Statement:
    return {"Effect": "Deny", "Action": action, "Resource": resource, **more}


def refused(call: Any, /, **arguments: Any) -> tuple[str, int, str]:
    """Code, HTTP status and message of the error that a call ends in."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response: Any = caught.value.response
    error, metadata = response["Error"], response["ResponseMetadata"]
    return error["Code"], metadata["HTTPStatusCode"], error["Message"]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


@pytest.fixture
def names(cloud: LocalCloud) -> CloudNames:
    return create_resources(cloud, f"iam{next(NUMBERS)}")


@pytest.fixture
def role(cloud: LocalCloud) -> As:
    """A new role that Lambda may assume, without any right."""
    name = f"role{next(NUMBERS)}"
    made = cloud.client("iam").create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps(LAMBDA_TRUST)
    )
    return As(cloud, name, made["Role"]["Arn"])


@pytest.fixture
def authorizer(cloud: LocalCloud) -> Authorizer:
    """The one that the cloud asks, with an empty log."""
    cloud.authorizer.log.clear()
    return cloud.authorizer
