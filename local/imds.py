"""The metadata service of every machine of a world: one server that tells them apart by address.

IMDSv2 only, as our launch templates ask for: without a token there is nothing but 401.
Source of paths and shapes: the EC2 user guide, "Instance metadata categories".
"""

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "169.254.169.254"
# Whatever a path begins with: the newest, or one that cloud-init knows.
_VERSION = re.compile(r"^/(latest|\d{4}-\d\d-\d\d)/")
_ROLES = "meta-data/iam/security-credentials/"
_TOKEN_S = "X-aws-ec2-metadata-token-ttl-seconds"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a machine may learn about itself."""

    instance_id: str
    instance_type: str
    zone: str
    market: str
    ip: str
    tags: Mapping[str, str] = field(default_factory=dict)
    user_data: str = ""
    mac: str = "02:00:00:00:00:01"

    def document(self) -> str:
        return json.dumps(
            {
                "accountId": "123456789012",
                "availabilityZone": self.zone,
                "instanceId": self.instance_id,
                "instanceType": self.instance_type,
                "privateIp": self.ip,
                "region": self.zone[:-1],
            }
        )


@dataclass(frozen=True, slots=True)
class Credentials:
    """What an instance gets of its role; good until `expires_at_s` (epoch seconds)."""

    role: str
    access_key_id: str
    secret_access_key: str
    token: str
    expires_at_s: float

    def document(self) -> str:
        return json.dumps(
            {
                "Code": "Success",
                "Type": "AWS-HMAC",
                "AccessKeyId": self.access_key_id,
                "SecretAccessKey": self.secret_access_key,
                "Token": self.token,
                "LastUpdated": _iso(time.time()),
                "Expiration": _iso(self.expires_at_s),
            }
        )


def local_credentials(_instance_id: str) -> Credentials:
    """For instances without a role: the local cloud lets this key do anything."""
    return Credentials("local", "ASIALOCAL", "local", "local", time.time() + 6 * 3600)


class Imds:
    """Answers at 169.254.169.254:80 of the namespace it is started in.

    `credentials_of` an instance id is asked at each request for credentials.
    """

    def __init__(self) -> None:
        self.credentials_of: Callable[[str], Credentials] = local_credentials
        self._identities: dict[str, Identity] = {}
        self._reclaim_at_s: dict[str, float] = {}
        self._tokens: set[tuple[str, str]] = set()
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        imds = self

        class Handler(_Handler):
            service = imds

        self._server = _Server((ADDRESS, 80), Handler)
        threading.Thread(target=self._server.serve_forever, name="imds", daemon=True).start()

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def register(self, identity: Identity) -> None:
        self._identities[identity.ip] = identity

    def forget(self, ip: str) -> None:
        self._identities.pop(ip, None)

    def interrupt(self, instance_id: str, at_s: float) -> None:
        """Give the spot notice: EC2 will take the instance at `at_s` (epoch seconds)."""
        self._reclaim_at_s[instance_id] = at_s

    def new_token(self, ip: str) -> str:
        token = secrets.token_urlsafe(32)
        self._tokens.add((ip, token))
        return token

    def is_valid(self, ip: str, token: str) -> bool:
        """A token is good for the machine that asked for it, and for no other."""
        return (ip, token) in self._tokens

    def answer(self, ip: str, path: str) -> str | None:
        """What is at `path` (after /latest/), a folder's names too; None: 404."""
        identity = self._identities.get(ip)
        if identity is None:
            return None
        if path.startswith(_ROLES):
            credentials = self.credentials_of(identity.instance_id)
            return {"": credentials.role, credentials.role: credentials.document()}.get(
                path.removeprefix(_ROLES)
            )
        facts = {**_facts(identity), **self._notice(identity)}
        return facts.get(path) or _names_in(path, [*facts, _ROLES])

    def _notice(self, identity: Identity) -> dict[str, str]:
        at_s = self._reclaim_at_s.get(identity.instance_id)
        if at_s is None:
            return {}
        notice = json.dumps({"action": "terminate", "time": _iso(at_s)})
        return {"meta-data/spot/instance-action": notice}


def _names_in(folder: str, paths: Iterable[str]) -> str | None:
    """The names right below `folder`, those of folders with a slash; None where there are none."""
    prefix = folder.rstrip("/") + "/"
    below = (path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    names = {name + slash for name, slash, _ in (path.partition("/") for path in below)}
    return "\n".join(sorted(names)) or None


def _facts(identity: Identity) -> dict[str, str]:
    card = f"meta-data/network/interfaces/macs/{identity.mac}"
    return {
        **({"user-data": identity.user_data} if identity.user_data else {}),
        **{f"meta-data/tags/instance/{key}": value for key, value in identity.tags.items()},
        f"{card}/device-number": "0",
        f"{card}/local-ipv4s": identity.ip,
        f"{card}/mac": identity.mac,
        "dynamic/instance-identity/document": identity.document(),
        "meta-data/instance-id": identity.instance_id,
        "meta-data/instance-type": identity.instance_type,
        "meta-data/instance-life-cycle": identity.market,
        "meta-data/local-hostname": f"{identity.instance_id}.ec2.internal",
        "meta-data/local-ipv4": identity.ip,
        "meta-data/mac": identity.mac,
        "meta-data/placement/availability-zone": identity.zone,
        "meta-data/placement/region": identity.zone[:-1],
        "meta-data/services/domain": "amazonaws.com",
    }


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Server(ThreadingHTTPServer):
    # Five is the default; a dozen nodes that boot at once would lose connections.
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Imds

    def do_PUT(self) -> None:
        if self.path != "/latest/api/token" or not self.headers.get(_TOKEN_S):
            self._send(400, "")
        else:
            self._send(200, self.service.new_token(self.client_address[0]))

    def do_GET(self) -> None:
        ip = self.client_address[0]
        if not self.service.is_valid(ip, self.headers.get("X-aws-ec2-metadata-token", "")):
            self._send(401, "")
            return
        found = self.service.answer(ip, _VERSION.sub("", self.path))
        self._send(404 if found is None else 200, found or "")

    def _send(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header(_TOKEN_S, "21600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: nodes ask every few seconds."""
