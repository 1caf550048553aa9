"""ListGroupResources for groups of capacity reservations, which moto lacks.

Source: Resource Groups API reference, ListGroupResources, and the parser of its service model.
"""

import json
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.resourcegroups.responses import ResourceGroupsResponse
from moto.resourcegroups.urls import url_paths

from local.blocks import LocalBlocks

# So many in a page, fewer than AWS's 50: a reader that stops after the first is found out.
PAGE = 2


class GroupNotFound(JsonRESTError):
    code = 404

    def __init__(self, group: str) -> None:
        super().__init__("NotFoundException", f"GroupName {group} not found.")


def install_groups(model: LocalBlocks) -> None:
    """Resource Groups' answer; for every server and mock of this process."""
    responder: Any = ResourceGroupsResponse
    paths: Any = url_paths

    def list_group_resources(self: Any) -> str:
        group = str(self._get_param("Group") or "")
        members = model.groups.get(group)
        if members is None:
            raise GroupNotFound(group)
        begin = int(self._get_param("NextToken") or 0)
        answer: dict[str, Any] = {"Resources": [_item(each) for each in members[begin:][:PAGE]]}
        if begin + PAGE < len(members):
            answer["NextToken"] = str(begin + PAGE)
        return json.dumps(answer)

    responder.list_group_resources = list_group_resources
    paths["{0}/list-group-resources$"] = ResourceGroupsResponse.dispatch


def _item(arn: str) -> dict[str, Any]:
    kind = "CapacityReservation" if ":capacity-reservation/" in arn else "Instance"
    return {"Identifier": {"ResourceArn": arn, "ResourceType": f"AWS::EC2::{kind}"}}
