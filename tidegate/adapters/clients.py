"""How our AWS clients are set up.

By botocore alone: boto3 loads managers for multipart uploads, a third of a cold start, and its
clients are botocore's.
"""

from functools import cache
from typing import Any

from botocore.config import Config
from botocore.session import Session

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
    make: Any = _session().create_client
    config = client_config(read_timeout_s=LONG_POLL_READ_TIMEOUT_S)
    return make(service, region_name=region, config=config)


@cache
def _session() -> Session:
    """One for all clients of the process: it holds the credentials and renews them."""
    return Session()
