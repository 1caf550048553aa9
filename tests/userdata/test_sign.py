"""Calls of AWS's APIs from a machine's shell: signed as AWS's own library signs them."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.boot.values import AT, NODE
from tests.userdata.test_render import shellcheck
from userdata.render import node_user_data

SIGNER = Path(__file__).parents[2] / "userdata" / "sign.py"
# As the metadata service tells them.
ROLE = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "se/cr+et=", "Token": "to/ken+=="}
OBJECT = "https://s3.us-east-1.amazonaws.com/assets-123/0a1b.tgz"
CALLS = {
    "an object": ("s3", ["-o", "boot.tgz", OBJECT]),
    "an object of unsigned content": (
        "s3",
        ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-o", "boot.tgz", OBJECT],
    ),
    "a list of objects": (
        "s3",
        [
            *("-m", "300"),
            "https://s3.us-east-1.amazonaws.com/packages?continuation-token=1%2Fa%3D"
            "&encoding-type=url&list-type=2&prefix=slurm%2Fnoble%2F",
        ],
    ),
    "a JSON API": (
        "ssm",
        [
            *("-m", "20", "-H", "X-Amz-Target: AmazonSSM.GetParameter"),
            *("-H", "Content-Type: application/x-amz-json-1.1", "-d", '{"Name": "/a b"}'),
            "https://ssm.us-east-1.amazonaws.com/",
        ],
    ),
    "a port": ("s3", ["http://127.0.0.1:4566/assets/0a1b.tgz"]),
}
UBUNTU_22 = node_user_data(replace(NODE, os="ubuntu22.04"), AT)


def signed(service: str, words: list[str]) -> dict[str, str]:
    """The headers that the signer adds."""
    done = subprocess.run(
        [sys.executable, SIGNER, "us-east-1", service, *words],
        input=json.dumps(ROLE),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [shlex.split(line)[2] for line in done.stdout.splitlines()]
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("call", CALLS)
def test_a_signature_is_that_of_aws_s_library(call):
    service, words = CALLS[call]

    added = signed(service, words)

    told = [word for option, word in pairwise(words) if option == "-H"]
    body = dict(pairwise(words)).get("-d")
    request = AWSRequest("POST" if body else "GET", words[-1], data=body)
    for name, value in [line.split(": ") for line in told]:
        request.headers[name] = value
    for name in ("x-amz-date", "x-amz-content-sha256", "x-amz-security-token"):
        if name not in request.headers:
            request.headers[name] = added[name]
    request.context["timestamp"] = added["x-amz-date"]
    signer = SigV4Auth(Credentials(*ROLE.values()), service, "us-east-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert added["authorization"].endswith(f"Signature={signer.signature(text, request)}")
    assert (
        f"SignedHeaders={signer.signed_headers(signer.headers_to_sign(request))},"
        in (added["authorization"])
    )
    assert added["authorization"].startswith(
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)},"
    )


def test_a_signature_is_of_this_moment():
    made = datetime.fromisoformat(signed(*CALLS["an object"])["x-amz-date"])

    assert abs((made - datetime.now(UTC)).total_seconds()) < 300


def test_a_header_that_curl_was_told_is_not_told_twice():
    assert "x-amz-content-sha256" not in signed(*CALLS["an object of unsigned content"])


def test_user_data_of_ubuntu_22_04_signs_apart():
    assert "--aws-sigv4" not in UBUNTU_22
    assert "--aws-sigv4" in node_user_data(NODE, AT)
    assert "'" not in UBUNTU_22.split("python3 -c '")[1].split('\' "$region"')[0]
    assert shellcheck("--exclude=SC1090", "-", text=UBUNTU_22) == ""
    assert len(UBUNTU_22) - len(node_user_data(NODE, AT)) < 1536
