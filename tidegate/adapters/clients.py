"""How our AWS clients are set up."""

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
    make: Any = boto3.client
    config = client_config(read_timeout_s=LONG_POLL_READ_TIMEOUT_S)
    return make(service, region_name=region, config=config)
