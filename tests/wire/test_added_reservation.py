"""A block is written into a cluster file, and nothing else in it changes."""

import pytest

from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.wire.added_reservation import lines, with_reservations
from tidegate.wire.config import parse_cluster

HEAD = """# Ours. Keep me.
name: lab
region: us-east-1
partitions: {gpu: {pools: [h100], default: true}}
"""
POOL = """pools:
  h100: # dear
    instance_types: [p5.48xlarge]
    zones: [us-east-1a]
    capacity_types: TYPES
prices_usd_per_hour: {p5.48xlarge: {on-demand: 55.04, spot: 20}}
"""
BLOCK = Reservation(
    "cr-0a1b2c3d", "p5.48xlarge", "us-east-1a", 8, Market.CAPACITY_BLOCK, 1796124600, 1796643000
)
OTHER = (
    "{id: cr-11111111, kind: capacity-block, instance_type: p5.48xlarge, zone: us-east-1a,"
    " count: 1, starts_at: '2026-11-01T11:30:00Z', ends_at: '2026-11-02T11:30:00Z'}"
)
FLAT = OTHER.strip("{}").replace(", ", "\n  ")
LONG = OTHER.strip("{}").replace(", ", "\n    ")


def text(types: str = "[on-demand]", before: str = "", after: str = "") -> str:
    return HEAD + before + POOL.replace("TYPES", types) + after


@pytest.mark.parametrize(
    "given",
    [
        text(),
        text().rstrip("\n"),
        text("[spot, on-demand] # in this order"),
        text("\n      - on-demand # last\n      - spot"),
        text("[capacity-block, on-demand]"),
        text(before="reservations: []\n"),
        text(after=f"reservations: [{OTHER}]\n"),
        text(before=f"reservations: [\n  {OTHER} # old\n  ]\n"),
        text(before=f"reservations:\n  - {OTHER} # old\n\n# the pools\n"),
        text(after=f"reservations:\n- {FLAT} # old\n"),
        text(after=f"reservations:\n  - {LONG} # old"),
        text().replace("\n", "\r\n"),
        text(after="# äöü €\n"),
    ],
)
def test_the_block_is_added_and_every_line_stays(given: str) -> None:
    made = with_reservations(given, [BLOCK], ["h100"])

    assert made is not None
    file = parse_cluster(made, "lab")
    assert BLOCK in list(file.cluster.reservations)
    (pool,) = file.cluster.pools
    assert pool.markets[0] is Market.CAPACITY_BLOCK
    comments = [line.partition("#")[2] for line in given.splitlines()]
    assert [line.partition("#")[2] for line in made.splitlines() if "#" in line] == [
        each for each in comments if each
    ]
    put = [BLOCK.id, "capacity-block"]
    assert all(each in made for each in put)


@pytest.mark.parametrize(
    "given",
    [
        text("&types [on-demand]").replace("zones: [us-east-1a]", "zones: [us-east-1a]")
        + "\n...\n",
        text().replace("  h100: # dear\n", "  h100: &pool\n") + "labels: *pool\n",
    ],
)
def test_what_would_change_something_else_is_left_to_a_person(given: str) -> None:
    assert with_reservations(given, [BLOCK], ["h100"]) is None


def test_a_person_is_told_what_to_add() -> None:
    told = "\n".join(lines([BLOCK], ["h100"]))

    assert "reservations:\n  - {id: cr-0a1b2c3d, kind: capacity-block" in told
    assert 'starts_at: "2026-12-01T11:30:00Z", ends_at: "2026-12-07T11:30:00Z"' in told
    assert "pools.h100.capacity_types, first: capacity-block" in told
