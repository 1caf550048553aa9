"""The endpoints that a VPC has already, and of which EC2 makes no second one."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.adapters.account import Account
from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.core.model.frozen import frozen

_GOING = frozenset({"deleting", "deleted", "delete-complete", "delete-in-progress"})


@frozen
class Endpoint:
    """`cluster`: the Tidegate cluster that made it, or ""."""

    endpoint_id: str
    cluster: str


def with_names(account: Account, vpc_id: str, region: str) -> Mapping[str, Endpoint]:
    """Service -> the interface endpoint by which the VPC resolves its name (private DNS).

    Errors: Throttled, NotAuthorized.
    """
    kind = {"Name": "vpc-endpoint-type", "Values": ["Interface"]}
    # In China some services are named the other way round: what is behind the region is the name.
    return {
        each["ServiceName"].partition(f".{region}.")[2]: _endpoint(each, "VpcEndpointId")
        for each in _of_vpc(account, "describe_vpc_endpoints", "VpcEndpoints", vpc_id, kind)
        if each.get("PrivateDnsEnabled")
    }


def of_instance_connect(account: Account, vpc_id: str) -> tuple[Endpoint, ...]:
    """Errors: Throttled, NotAuthorized."""
    operation, key = "describe_instance_connect_endpoints", "InstanceConnectEndpoints"
    found = _of_vpc(account, operation, key, vpc_id)
    return tuple(_endpoint(each, "InstanceConnectEndpointId") for each in found)


def _of_vpc(
    account: Account, operation: str, key: str, vpc_id: str, *more: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, *more]
    with aws_call():
        pages = account.clients("ec2").get_paginator(operation).paginate(Filters=filters)
        for page in pages:
            yield from (each for each in page[key] if each.get("State", "").lower() not in _GOING)


def _endpoint(found: Mapping[str, Any], name: str) -> Endpoint:
    tags = {each["Key"]: each["Value"] for each in found.get("Tags", ())}
    return Endpoint(found[name], tags.get(CLUSTER_TAG, ""))
