"""How our AWS clients are set up: by boto3, all of them here."""

from functools import cache
from typing import Any

import boto3
from botocore.config import Config

# A long poll of SQS lasts up to 20 s; the client must outwait it.
LONG_POLL_READ_TIMEOUT_S = 25.0


def client_config(*, read_timeout_s: float = 10.0) -> Config:
    """Three attempts in all, and an end in time for a Lambda that lives 45 s.

    `total_max_attempts`, because botocore's `max_attempts` counts the retries only.
    """
    return Config(
        connect_timeout=2.0,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": 3, "mode": "standard"},
    )


def client(service: str, region: str | None = None) -> Any:
    """A client with the role of the place it runs in; `region` None: and with its region."""
    make: Any = _session().client
    config = client_config(read_timeout_s=LONG_POLL_READ_TIMEOUT_S)
    return make(service, region_name=region, config=config)


class Session(boto3.Session):
    """boto3's, whose clients can what the service can and no more.

    boto3 adds uploads in many parts to S3's clients, and loads managers of them for it. Nothing
    of ours is so large, and each cold start would pay for them.
    """

    def _register_default_handlers(self) -> None:
        """None: all of boto3's own add such methods to clients and resources."""


@cache
def _session() -> Session:
    """One for all clients of the process: it holds the credentials and renews them."""
    return Session()
