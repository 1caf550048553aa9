"""Interface endpoints of a cluster file, held against what AWS has in a region."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tests.wire.cluster_files import good
from tidegate.adapters.account import Account
from tidegate.cli.deployable import Answer, _endpoints, answer
from tidegate.wire.config import parse_cluster
from tidegate.wire.deployment import NEEDED_ENDPOINTS

EVERYWHERE: tuple[str, ...] = ("us-east-1a", "us-east-1b", "us-east-1e")


@contextmanager
def account(zones_of: Mapping[str, tuple[str, ...]]) -> Iterator[Account]:
    """One where AWS has these services, by their whole names."""
    make: Any = boto3.client
    client = make("ec2", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    details = [
        {"ServiceName": name, "AvailabilityZones": list(zones)} for name, zones in zones_of.items()
    ]
    asked = {"Filters": [{"Name": "service-type", "Values": ["Interface"]}]}
    with Stubber(client) as stub:
        stub.add_response("describe_vpc_endpoint_services", {"ServiceDetails": details}, asked)
        yield Account(lambda _: client)


def said(zones_of: Mapping[str, tuple[str, ...]], **changes: Any) -> Answer:
    file = parse_cluster(repr(good(changes)), "test.yaml")
    with account(zones_of) as asked:
        return answer(_endpoints, file, asked)


def test_services_that_are_not_in_the_heads_zone_or_region_are_named_before_a_deployment():
    zones_of = {f"com.amazonaws.us-east-1.{each}": EVERYWHERE for each in NEEDED_ENDPOINTS}
    zones_of["com.amazonaws.us-east-1.sqs"] = ("us-east-1b", "us-east-1c")
    endpoints = [*NEEDED_ENDPOINTS, "ec2messages"]

    found = said(zones_of, network={"endpoints": endpoints})

    assert [str(each) for each in found.problems] == [
        "network.endpoints[2]: AWS has no endpoint to sqs in us-east-1a; it is in us-east-1b,"
        " us-east-1c: take such a head.zone",
        "network.endpoints[5]: AWS has no endpoint to ec2messages in us-east-1a; nor elsewhere in"
        " us-east-1",
    ]


def test_china_s_own_names_are_the_same_services():
    zones_of = {
        **{f"com.amazonaws.cn-north-1.{each}": ("cn-north-1a",) for each in NEEDED_ENDPOINTS},
        "cn.com.amazonaws.cn-north-1.sqs": ("cn-north-1a",),
    }
    del zones_of["com.amazonaws.cn-north-1.sqs"]
    zone = {"region": "cn-north-1", "pools.t4.zones": ["cn-north-1a"]}

    found = said(zones_of, **zone, network={"endpoints": list(NEEDED_ENDPOINTS)})

    assert found.problems == ()


@pytest.mark.parametrize("network", [{}, {"nat": "one"}])
def test_a_file_without_endpoints_asks_nothing(network: dict[str, Any]):
    found = said({}, network=network)

    assert (found.problems, found.unasked, found.needless) == ((), (), "the file names none")
