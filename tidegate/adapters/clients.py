"""How our AWS clients are set up: by boto3, all of them here."""

from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import DeferredRefreshableCredentials, create_assume_role_refresher
from botocore.exceptions import NoCredentialsError

from tidegate.core.model.frozen import frozen
from tidegate.ports import FLEETS_AT_ONCE

CONNECT_S = 2.0

# Standard retries wait up to 1 s before the second attempt, 2 s before the third.
BACKOFF_S = (0.0, 1.0, 2.0)


@frozen
class Patience:
    """How long a client waits for an answer, and how often it asks."""

    read_s: float
    attempts: int
    connections: int = 10

    @property
    def longest_s(self) -> float:
        """How long a call may take that hangs in each attempt."""
        waits_s = sum(BACKOFF_S[: self.attempts])
        return self.attempts * (CONNECT_S + self.read_s) + waits_s


# For people who wait before a screen.
USUAL = Patience(10.0, 3)

# For what is paid for at once and has no idempotency token: a repeat by itself may buy it twice.
BUYING = Patience(60.0, 1)

# A long poll of SQS lasts up to 20 s; the client must outwait it.
LONG_POLL = Patience(25.0, 3)

# A function lives 45 s (`cdk/queues.py`). The last fleet is asked for 10 s after a look began
# (`service.control`), and its answer has to be written down.
OF_FUNCTIONS = {
    "ec2": Patience(10.0, 2, connections=FLEETS_AT_ONCE),
    "dynamodb": Patience(2.0, 2),
}
OTHERS_OF_FUNCTIONS = Patience(4.0, 2)

# Served in few regions, whatever region is asked about.
# Source: AWS General Reference, "AWS Billing and Cost Management endpoints and quotas".
HOMES = {"pricing": "us-east-1"}


def client_config(patience: Patience) -> Config:
    """`total_max_attempts`, because botocore's `max_attempts` counts the retries only."""
    return Config(
        connect_timeout=CONNECT_S,
        read_timeout=patience.read_s,
        retries={"total_max_attempts": patience.attempts, "mode": "standard"},
        max_pool_connections=patience.connections,
    )


def client(service: str, region: str | None = None, patience: Patience = USUAL) -> Any:
    """A client with the role of the place it runs in; `region` None: and with its region."""
    make: Any = _session().client
    return make(service, region_name=region, config=client_config(patience))


def client_of_function(service: str) -> Any:
    """One whose calls end before the function does."""
    return client(service, HOMES.get(service), OF_FUNCTIONS.get(service, OTHERS_OF_FUNCTIONS))


def credentials(role: str | None) -> Any:
    """Of the place it runs in, or of a role that this assumes; they renew themselves.

    Errors: NoCredentialsError. A role that refuses is first heard of where they are used.
    """
    if role is not None:
        asked = {"RoleArn": role, "RoleSessionName": "tidegate"}
        renew: Any = create_assume_role_refresher(client("sts"), asked)
        return DeferredRefreshableCredentials(renew, "sts-assume-role")
    found = _session().get_credentials()
    if found is None:
        raise NoCredentialsError
    return found


class Session(boto3.Session):
    """boto3's, whose clients can what the service can and no more.

    boto3 adds uploads in many parts to S3's clients, and loads managers of them for it. Nothing
    of ours is so large, and each cold start would pay for them.
    """

    def _register_default_handlers(self) -> None:
        """None: all of boto3's own add such methods to clients and resources."""


def profiles() -> list[str]:
    """The profiles that the AWS CLI's files of this machine name."""
    return list(Session().available_profiles)


def use_profile(name: str) -> None:
    """From now on clients ask as this profile, whatever the environment says."""
    _session.cache_clear()
    _chosen["profile"] = name


_chosen: dict[str, str] = {}


@cache
def _session() -> Session:
    """One for all clients of the process: it holds the credentials and renews them."""
    return Session(profile_name=_chosen.get("profile") or None)
