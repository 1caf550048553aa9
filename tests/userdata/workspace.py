"""A workspace of Amazon Managed Service for Prometheus, as strict about a write as the real one.

A request that is not signed for `aps` in the workspace's region, with keys that it knows, is
refused (403); one that is, is unpacked down to its samples. Sources: Prometheus Remote-Write 1.0
(headers, snappy's block format, the protobuf message); AWS's user guide of the service,
"RemoteWrite" and its quotas; IAM user guide, "Create a signed AWS API request", by botocore's
own signer.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, override

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ID = "ws-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
PATH = f"/workspaces/{ID}/api/v1/remote_write"
# What the service takes by default (its quotas): labels of a series, and letters of their values.
LABELS_MAX, VALUE_MAX = 150, 2048
HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


@dataclass
class Workspace:
    """`keys`: those that are let in. `samples`: how many came, by metric; `series`: their labels.

    `answers`: the statuses that the next good requests get instead of 200.
    """

    region: str
    keys: list[Credentials]
    samples: dict[str, int] = field(default_factory=dict)
    series: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    requests: int = 0
    sent_bytes: int = 0

    def __enter__(self) -> Self:
        workspace = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = workspace.take(self.path, dict(self.headers.items()), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            @override
            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer."""
        self.requests += 1
        if why := self._not_allowed(path, headers, body):
            self.refused.append(why)
            return 403
        if wrong := [name for name, value in HEADERS.items() if headers.get(name) != value]:
            self.refused.append(f"headers {wrong}")
            return 400
        if self.answers and (status := self.answers.pop(0)) != 200:
            return status
        self.sent_bytes += len(body)
        for labels, count in written(unpacked(body)):
            too_long = [value for value in labels.values() if len(value) > VALUE_MAX]
            if len(labels) > LABELS_MAX or too_long:
                self.refused.append(f"labels {labels}")
                return 400
            self.series.add(tuple(sorted(labels.items())))
            name = labels["__name__"]
            self.samples[name] = self.samples.get(name, 0) + count
        return 200

    def _not_allowed(self, path: str, headers: Mapping[str, str], body: bytes) -> str:
        """Why the request is refused, "" when it is not."""
        if path != PATH:
            return f"there is no {path}"
        way, _, said = headers.get("Authorization", "").partition(" ")
        if way != "AWS4-HMAC-SHA256":
            return "not signed"
        parts = dict(part.strip().split("=", 1) for part in said.split(","))
        identity, day, *scope = parts["Credential"].split("/")
        if scope != [self.region, "aps", "aws4_request"]:
            return f"signed for {scope}"
        keys = next((each for each in self.keys if each.access_key == identity), None)
        if keys is None:
            return f"nobody has the key {identity}"
        if headers.get("X-Amz-Security-Token") != keys.token:
            return "the session's token is another"
        names = parts["SignedHeaders"].split(";")
        lower = {name.lower(): value for name, value in headers.items()}
        signed = {name: lower[name] for name in names}
        url = f"https://{lower['host']}{path}"
        request = AWSRequest("POST", url, data=body, headers=signed)
        request.context["timestamp"] = lower["x-amz-date"]
        signer = SigV4Auth(keys, "aps", self.region)
        asked = signer.string_to_sign(request, signer.canonical_request(request))
        if not lower["x-amz-date"].startswith(day):
            return "signed on another day"
        if not compare_digest(signer.signature(asked, request), parts["Signature"]):
            return "the signature does not match"
        return ""


def unpacked(data: bytes) -> bytes:
    """Snappy's block format. Source: google/snappy, format_description.txt."""
    size, at = number(data, 0)
    found = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length, at = int.from_bytes(data[at : at + more], "little"), at + more
            found += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, back, at = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at], at + 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, back = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little")
            at += width
        for _ in range(length):
            found.append(found[-back])
    assert len(found) == size, "the packed length is another"
    return bytes(found)


def written(message: bytes) -> Iterator[tuple[dict[str, str], int]]:
    """Of a WriteRequest the labels of each series, and how many samples it has."""
    for of_request, series in fields(message):
        if of_request != 1:
            continue
        labels: dict[str, str] = {}
        count = 0
        for of_series, part in fields(series):
            if of_series == 1:
                pair = dict(fields(part))
                labels[pair[1].decode()] = pair[2].decode()
            count += of_series == 2
        yield labels, count


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Protobuf's fields with their bytes; numbers are of no use here."""
    at = 0
    while at < len(message):
        tag, at = number(message, at)
        if tag & 7 == 2:
            length, at = number(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        elif tag & 7 == 1:
            at += 8
        else:
            _, at = number(message, at)


def number(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    found = shift = 0
    while True:
        byte, at = data[at], at + 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7
