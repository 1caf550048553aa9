"""UltraServers are bought as one offer, and each is written into the cluster file."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.trouble import Fault, Trouble
from tests.adapters.test_capacity_blocks import buyer
from tests.adapters.test_ultra_blocks import TYPE, ultra
from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.cli.capacity.advise import Wanted
from tidegate.cli.capacity.buy import Purchase
from tidegate.core.explain.capacity import title
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import load_cluster

FILE = """name: lab
region: us-east-1
network:
  vpc: vpc-0a1b2c3d
  subnets: {us-east-1-dfw-2a: subnet-0a1b2c3d, us-east-1a: subnet-0a1b2c3e}
head: {zone: us-east-1a}
partitions: {gpu: {pools: [gb200], default: true}}
pools:
  gb200:  # ours
    instance_types: [p6e-gb200.36xlarge]
    zones: [us-east-1-dfw-2a]
    capacity_types: [capacity-block]
"""


@dataclass
class Shop:
    """EC2 has one offer of two UltraServers."""

    cloud: LocalCloud
    file: Path
    now: float = field(default_factory=time.time)
    told: list[str] = field(default_factory=list)

    def now_s(self) -> float:
        return self.now

    def buys(self, nodes: int = 36) -> None:
        blocks = CapacityBlocks(self.cloud.client("ec2"), buyer(self.cloud), "lab")
        wanted = Wanted(TYPE, nodes, 2)
        made = Purchase(
            "cb-1", self.file, blocks, wanted, None, self, self.approves, self.told.append
        )
        made.make()

    def approves(self, what: str) -> bool:
        self.told.append(what)
        return True

    def named(self) -> list[tuple[str, int]]:
        return [(each.id, each.count) for each in load_cluster(self.file).cluster.reservations]


@pytest.fixture
def shop(cloud: LocalCloud, tmp_path: Path) -> Shop:
    cloud.blocks.clear()
    cloud.blocks.offers.append(ultra())
    file = tmp_path / "lab.yaml"
    file.write_text(FILE)
    return Shop(cloud, file)


def test_each_of_them_stands_in_the_file(shop: Shop) -> None:
    shop.buys()

    ids = [each["CapacityReservationId"] for each in shop.cloud.blocks.bought]
    assert shop.named() == [(name, 18) for name in ids]
    assert shop.file.read_text().startswith(FILE), "nothing else in it changes"
    assert shop.told[0].startswith(
        f"buy 2 x u-p6e-gb200x72 (36 x {TYPE}) in us-east-1-dfw-2a, 2.0 d"
    )
    assert shop.told[1].startswith(f"bought {ids[0]} and {ids[1]}: 2 x u-p6e-gb200x72")


def test_after_a_lost_answer_all_of_them_are_found_and_written(shop: Shop) -> None:
    shop.cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", Fault.LOST_ANSWER))
    with pytest.raises(BadConfig, match="EC2 may have sold the block or not"):
        shop.buys()

    shop.buys()

    assert len(shop.cloud.blocks.bought) == len(shop.named()) == 2
    assert "were bought before: nothing is bought now" in shop.told[-3]


def test_where_the_answer_names_none_they_are_found_and_written_too(shop: Shop) -> None:
    shop.cloud.blocks.is_named_late = True
    with pytest.raises(BadConfig, match="names no reservation of it yet\nEC2 may have sold"):
        shop.buys()

    shop.buys()

    assert len(shop.cloud.blocks.bought) == len(shop.named()) == 2


def test_one_of_them_that_stands_in_the_file_is_not_written_twice(shop: Shop) -> None:
    shop.buys()
    whole = shop.file.read_text()
    shop.file.write_text("\n".join(whole.splitlines()[:-1]) + "\n")
    assert len(shop.named()) == 1

    shop.buys()

    assert shop.file.read_text() == whole
    assert len(shop.cloud.blocks.bought) == 2


def test_a_note_of_an_earlier_version_names_one(shop: Shop) -> None:
    shop.buys()
    (first, _) = load_cluster(shop.file).cluster.reservations
    shop.file.write_text(FILE)
    note = shop.file.with_name("lab.yaml.purchase")
    said: dict[str, Any] = {
        key: getattr(first, key)
        for key in ("id", "instance_type", "zone", "count", "market", "starts_at_s", "ends_at_s")
    }
    note.write_text(json.dumps({"offer": "cb-1", "bought": said}))

    shop.buys()

    assert shop.named() == [(first.id, 18)]


def test_a_title_of_single_instances_names_no_ultraserver(shop: Shop) -> None:
    blocks = CapacityBlocks(shop.cloud.client("ec2"), None, "lab")
    found = blocks.offers(TYPE, 36, 2, time.time())
    assert isinstance(found, tuple)

    assert title(found[0]).startswith("2 x u-p6e-gb200x72 (36 x p6e-gb200.36xlarge) in ")
