"""The EC2 metadata service, version 2 (a token first; version 1 is switched off)."""

import urllib.error
import urllib.request

from tidegate.core.model.errors import Transient

ENDPOINT = "http://169.254.169.254"
TIMEOUT_S = 2.0


def instance_id(endpoint: str = ENDPOINT) -> str:
    """The id of the instance this runs on. Errors: Transient (no metadata service answers)."""
    token = _request(
        f"{endpoint}/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    )
    headers = {"X-aws-ec2-metadata-token": token}
    return _request(f"{endpoint}/latest/meta-data/instance-id", "GET", headers)


def _request(url: str, method: str, headers: dict[str, str]) -> str:
    # Without a proxy: the token must never leave the machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(url, method=method, headers=headers)
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return str(answer.read(1_024).decode("ascii", "replace")).strip()
    except (urllib.error.URLError, OSError) as error:
        raise Transient(f"The metadata service does not answer at {url}: {error}.") from error
