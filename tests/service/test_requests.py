"""What goes into a fleet request beside what the launch says."""

from dataclasses import replace

import pytest

from tests.make import ZONE, cluster, offering, placement
from tidegate.core.model.cluster import OPEN
from tidegate.core.model.ec2 import Market, Template
from tidegate.core.model.ledger import Launch
from tidegate.service.requests import fleet_request
from tidegate.wire.tags import TAGS_MAX


def launch(market: Market = Market.SPOT, *, gated_for: str = "", into: str = "") -> Launch:
    wanted = offering(market=market)
    made = Launch("l-1", "t4", (wanted,), 2, 2, ("7",), 0.2, gated_for, "for 7")
    return replace(made, reservation=into)


@pytest.mark.parametrize(
    ("market", "gated_for", "group"),
    [
        (Market.SPOT, "7", "group-a"),
        (Market.ON_DEMAND, "7", "group-a"),
        (Market.SPOT, "", ""),
        # A block takes none, and a reservation is where it is.
        (Market.CAPACITY_BLOCK, "7", ""),
        (Market.RESERVED, "7", ""),
    ],
)
def test_a_gang_that_is_not_paid_for_comes_into_the_placement_group_of_its_pool_and_zone(
    market: Market, gated_for: str, group: str
) -> None:
    placed = replace(placement(cluster()), groups={f"t4/{ZONE}": "group-a", "a10g/x": "other"})
    placed = replace(placed, templates={**placed.templates, "t4/cr-1": Template("lt-block", "3")})
    into = {Market.CAPACITY_BLOCK: "cr-1", Market.RESERVED: OPEN}.get(market, "")

    request = fleet_request(launch(market, gated_for=gated_for, into=into), "test", placed)

    assert [each.placement_group for each in request.overrides] == [group]


def test_a_capacity_block_has_a_launch_template_of_its_own() -> None:
    placed = placement(cluster())
    placed = replace(placed, templates={**placed.templates, "t4/cr-1": Template("lt-block", "3")})

    request = fleet_request(launch(Market.CAPACITY_BLOCK, into="cr-1"), "test", placed)

    assert (request.launch_template_id, request.launch_template_version) == ("lt-block", "3")


def test_a_place_in_a_reservation_is_asked_for_where_ec2_cannot_sell_another() -> None:
    """Also while the pool uses an older template: on demand it would pass limits in money."""
    placed = placement(cluster())
    older = Template("lt-t4", "2", "bb-2")

    wanted = replace(launch(Market.RESERVED, into=OPEN), template=older)
    request = fleet_request(wanted, "test", placed)

    assert request.launch_template_id == "lt-t4/reserved"


def test_the_digest_of_the_template_goes_with_each_instance() -> None:
    placed = placement(cluster())
    placed = replace(placed, templates={"t4": Template("lt-t4", "3", "aa-3")})
    older = Template("lt-t4", "2", "bb-2")

    newest = fleet_request(launch(), "test", placed)
    rolled_back = fleet_request(replace(launch(), template=older), "test", placed)

    assert dict(newest.tags)["tidegate:template"] == "aa-3"
    assert rolled_back.launch_template_version == "2"
    assert dict(rolled_back.tags)["tidegate:template"] == "bb-2"


def test_a_node_has_room_for_all_tags_of_a_site_beside_those_of_its_launch() -> None:
    """An instance bears 50: of the file, of its launch, and its name; EC2 refuses one more."""
    full = replace(
        launch(gated_for="7"),
        account="vision",
        user="ada",
        layout="1g.10gb:7",
        data="s3://bucket/prefix",
        template=Template("lt-t4", "2", "bb-2"),
    )

    tags = fleet_request(full, "test", placement(cluster())).tags

    ours = {key for key, _ in tags} | {"Name"}
    assert len(ours) == 11
    assert TAGS_MAX + len(ours) <= 50
