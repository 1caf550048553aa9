"""Endpoints of a cluster file, held against what AWS has in a region, and a VPC already."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tests.wire.cluster_files import good
from tidegate.adapters.account import Account
from tidegate.cli.deployable import Answer, _endpoints, answer
from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.wire.config import parse_cluster
from tidegate.wire.deployment import NEEDED_ENDPOINTS

EVERYWHERE: tuple[str, ...] = ("us-east-1a", "us-east-1b", "us-east-1e")


VPC = "vpc-0a1b2c3d"
NETWORK = {"vpc": VPC, "subnets": {"us-east-1a": "subnet-0a1b2c3d"}}
OF_VPC = {"Name": "vpc-id", "Values": [VPC]}


@contextmanager
def account(
    zones_of: Mapping[str, tuple[str, ...]], *answers: tuple[str, Any, Any]
) -> Iterator[Account]:
    """One where AWS has these services, by their whole names. `answers`: to what is asked next."""
    make: Any = boto3.client
    client = make("ec2", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    details = [
        {"ServiceName": name, "AvailabilityZones": list(zones)} for name, zones in zones_of.items()
    ]
    asked = {"Filters": [{"Name": "service-type", "Values": ["Interface"]}]}
    with Stubber(client) as stub:
        if zones_of:
            stub.add_response("describe_vpc_endpoint_services", {"ServiceDetails": details}, asked)
        for each in answers:
            stub.add_response(*each)
        yield Account(lambda _: client)
        stub.assert_no_pending_responses()


def said(
    zones_of: Mapping[str, tuple[str, ...]], *answers: tuple[str, Any, Any], **changes: Any
) -> Answer:
    file = parse_cluster(repr(good(changes)), "test.yaml")
    with account(zones_of, *answers) as asked:
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


def endpoint(service: str, *, cluster: str = "", **more: Any) -> dict[str, Any]:
    return {
        "VpcEndpointId": f"vpce-{service}",
        "ServiceName": f"com.amazonaws.us-east-1.{service}",
        "State": "available",
        "PrivateDnsEnabled": True,
        "Tags": [{"Key": CLUSTER_TAG, "Value": cluster}] if cluster else [],
        **more,
    }


def test_a_service_that_an_existing_vpc_has_an_endpoint_to_is_named_before_a_deployment():
    """EC2 refuses the second one: private-dns-enabled cannot be set."""
    there = [
        endpoint("ssm"),
        endpoint("sqs", cluster="another"),
        endpoint("events", cluster="dev"),
        endpoint("logs", PrivateDnsEnabled=False),
        endpoint("sts", State="deleting"),
    ]
    interface = {"Name": "vpc-endpoint-type", "Values": ["Interface"]}
    asked = {"Filters": [OF_VPC, interface]}
    names = ["events", "logs", "sqs", "ssm", "sts"]
    zones_of = {f"com.amazonaws.us-east-1.{each}": EVERYWHERE for each in names}
    answered = ("describe_vpc_endpoints", {"VpcEndpoints": there}, asked)

    found = said(zones_of, answered, name="dev", network={**NETWORK, "endpoints": names})

    assert [str(each).partition(", and")[0] for each in found.problems] == [
        f"network.endpoints[2]: {VPC} has vpce-sqs to sqs already",
        f"network.endpoints[3]: {VPC} has vpce-ssm to ssm already",
    ]
    assert "leave ssm out, and let head and nodes into that one by HTTPS" in str(found.problems[1])


@pytest.mark.parametrize(("cluster", "is_refused"), [("", True), ("dev", False)])
def test_a_second_instance_connect_endpoint_is_named_before_a_deployment(
    cluster: str, is_refused: bool
):
    there = {
        "InstanceConnectEndpointId": "eice-0a1b2c3d",
        "State": "create-complete",
        "Tags": [{"Key": CLUSTER_TAG, "Value": cluster}] if cluster else [],
    }
    gone = {**there, "Tags": [], "State": "delete-complete"}
    answered = (
        "describe_instance_connect_endpoints",
        {"InstanceConnectEndpoints": [there, gone]},
        {"Filters": [OF_VPC]},
    )

    found = said({}, answered, name="dev", network={**NETWORK, "instance_connect": True})

    told = [f"network.instance_connect: {VPC} has eice-0a1b2c3d already, and EC2 makes one"]
    assert [str(each)[: len(told[0])] for each in found.problems] == told * is_refused
