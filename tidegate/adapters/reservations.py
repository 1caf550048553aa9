"""The account's reservations: what EC2 shows, what is in a group, and how blocks were extended.

Source: EC2 API reference, DescribeCapacityReservations, DescribeCapacityBlockStatus; Resource
Groups API reference, ListGroupResources; EC2 user guide, "Capacity Reservation groups".
"""

from collections.abc import Collection, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_missing, message_of, tolerating
from tidegate.adapters.block_extensions import extensions
from tidegate.adapters.capacity_blocks import holdings
from tidegate.core.model.capacity import Extension, Gone, Holding
from tidegate.core.model.frozen import frozen

# Source: Resource Groups user guide, "Resource types you can use with AWS Resource Groups".
RESERVATION = "AWS::EC2::CapacityReservation"


@frozen
class AwsReservations:
    """Those of one region. `groups`: the client of Resource Groups."""

    ec2: Any
    groups: Any
    cluster: str

    def held(self) -> tuple[Holding, ...]:
        return holdings(self.ec2, self.cluster)

    def members(self, group: str) -> tuple[str, ...] | Gone:
        """In the order of their ids. What is no reservation is left out."""
        pages = self.groups.get_paginator("list_group_resources").paginate(Group=group)
        with aws_call():
            found = tolerating(lambda: [one for page in pages for one in _listed(page)], is_missing)
        if isinstance(found, ClientError):
            return Gone(message_of(found))
        return tuple(sorted(found))

    def impaired(self) -> frozenset[str]:
        pages = self.ec2.get_paginator("describe_capacity_block_status").paginate()
        with aws_call():
            found = [each for page in pages for each in page["CapacityBlockStatuses"]]
        return frozenset(
            each["CapacityBlockId"]
            for each in found
            if each.get("InterconnectStatus") == "impaired"
        )

    def extensions(self, reservation_ids: Collection[str]) -> tuple[Extension, ...]:
        return extensions(self.ec2, reservation_ids)


def _listed(page: Mapping[str, Any]) -> list[str]:
    """The ids in the ARNs of a page."""
    ours = (each["Identifier"] for each in page.get("Resources", ()))
    return [
        each["ResourceArn"].rpartition("/")[2]
        for each in ours
        if each["ResourceType"] == RESERVATION
    ]
