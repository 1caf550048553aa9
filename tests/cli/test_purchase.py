"""The purchase of a block when two people, slow people, files and networks get in its way."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import SSLError

from local.trouble import Fault, Trouble
from tests.adapters.test_capacity_blocks import buyer, said
from tests.cli.conftest import Town
from tidegate.adapters.capacity_blocks import CapacityBlocks
from tidegate.cli.capacity.advise import Wanted
from tidegate.cli.capacity.buy import Purchase
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import load_cluster

TYPE, ZONE = "g5.xlarge", "us-east-1a"


@dataclass
class Shop:
    """EC2 has nine blocks of the offer cb-1, and sells one to each who asks."""

    town: Town
    now: float = field(default_factory=time.time)
    told: list[str] = field(default_factory=list)

    def now_s(self) -> float:
        return self.now

    @property
    def note(self) -> Path:
        return self.town.file.with_name(f"{self.town.file.name}.purchase")

    @property
    def sold(self) -> int:
        return len(self.town.cloud.blocks.bought)

    def named(self) -> list[str]:
        return [each.id for each in load_cluster(self.town.file).cluster.reservations]

    def purchase(
        self,
        approve: Callable[[str], bool] = lambda _: True,
        *,
        offer: str = "cb-1",
        file: Path | None = None,
        at_most: float | None = None,
        sells: Any = None,
    ) -> Purchase:
        client = self.town.cloud.client("ec2")
        blocks = CapacityBlocks(client, sells or buyer(self.town.cloud), self.town.names.cluster)
        wanted = Wanted(TYPE, 2, 2)
        place = file or self.town.file
        return Purchase(offer, place, blocks, wanted, at_most, self, approve, self.told.append)


@pytest.fixture
def shop(town: Town) -> Shop:
    blocks = town.cloud.blocks
    blocks.clear()
    what: dict[str, Any] = {"InstanceType": TYPE, "AvailabilityZone": ZONE, "InstanceCount": 2}
    blocks.offers += [said("cb-1", **what), said("cb-2", **what)]
    blocks.left["cb-1"] = 9
    return Shop(town)


@pytest.mark.parametrize("shown_after_s", [0.0, 3600.0])
def test_of_two_people_who_are_asked_at_once_one_buys(shop: Shop, shown_after_s: float) -> None:
    """The second answers when the first has finished."""
    shop.town.cloud.blocks.shown_after_s = shown_after_s

    def meanwhile(_: str) -> bool:
        shop.purchase().make()
        return True

    try:
        shop.purchase(meanwhile).make()
    except BadConfig as error:
        assert "another purchase has begun meanwhile" in str(error)
    assert shop.sold == len(shop.named()) == 1


def test_a_person_who_thinks_for_long_is_no_reason_to_buy_twice(shop: Shop) -> None:
    """The time in which EC2 may hide the block counts from the purchase, not from the question."""
    shop.town.cloud.blocks.shown_after_s = 3600.0
    shop.town.cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", Fault.LOST_ANSWER))

    def thinks(_: str) -> bool:
        shop.now += 1200
        return True

    with pytest.raises(BadConfig, match="EC2 may have sold the block or not"):
        shop.purchase(thinks).make()
    shop.now += 1
    with pytest.raises(BadConfig, match="try again in 10 min"):
        shop.purchase().make()

    assert shop.sold == 1


def test_who_comes_again_before_ec2_shows_the_block_does_not_buy_another(shop: Shop) -> None:
    shop.town.cloud.blocks.shown_after_s = 3600.0
    before = shop.town.file.read_text()
    shop.purchase().make()
    assert "does not show" in shop.told[-1]
    shop.town.file.write_text(before)

    shop.purchase().make()
    shop.town.cloud.blocks.shown_after_s = 0.0
    shop.purchase(offer="cb-2").make()

    assert shop.sold == len(shop.named()) == 2
    assert not shop.note.exists()


def test_a_purchase_of_which_nothing_came_does_not_stand_in_the_way_of_others(shop: Shop) -> None:
    shop.town.cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", Fault.LOST_REQUEST))
    with pytest.raises(BadConfig):
        shop.purchase().make()
    shop.town.cloud.blocks.left["cb-1"] = 0
    shop.now += 900

    with pytest.raises(BadConfig, match="first finish it with tidegate capacity --buy cb-1"):
        shop.purchase(offer="cb-2").make()
    with pytest.raises(BadConfig, match="EC2 offers cb-1 no more"):
        shop.purchase().make()
    shop.purchase(offer="cb-2").make()

    assert shop.sold == len(shop.named()) == 1


def test_a_line_that_breaks_after_the_question_leaves_it_in_doubt(shop: Shop) -> None:
    class Broken:
        def purchase_capacity_block(self, **_: Any) -> Any:
            raise SSLError(endpoint_url="https://ec2", error=OSError("EOF"))

    with pytest.raises(BadConfig, match="EC2 may have sold the block or not"):
        shop.purchase(sells=Broken()).make()

    assert json.loads(shop.note.read_text())["offer"] == "cb-1"


def test_a_bound_that_is_no_number_lets_nothing_through(shop: Shop) -> None:
    with pytest.raises(BadConfig, match="nothing was bought"):
        shop.purchase(at_most=float("nan")).make()

    assert shop.sold == 0


def test_a_file_that_is_not_edited_is_checked_all_the_same_before_anything_is_paid(
    shop: Shop,
) -> None:
    shop.town.file.write_text(shop.town.file.read_text() + "\n...\n")
    shop.town.cloud.blocks.offers[0]["AvailabilityZone"] = "us-east-1f"

    with pytest.raises(BadConfig, match="in us-east-1f with capacity type capacity-block"):
        shop.purchase().make()

    assert shop.sold == 0


def test_what_cannot_be_written_is_said_before_anything_is_paid(shop: Shop) -> None:
    long = shop.town.file.with_name("l" * 250)  # its note would have too long a name
    long.write_text(shop.town.file.read_text())
    with pytest.raises(BadConfig, match="File name too long"):
        shop.purchase(file=long).make()
    shop.town.file.chmod(0o444)
    with pytest.raises(BadConfig, match=r"is read-only: make it writable; nothing was bought"):
        shop.purchase().make()

    assert shop.sold == 0


def test_a_link_stays_one_and_its_file_has_one_note(shop: Shop) -> None:
    shop.town.cloud.blocks.shown_after_s = 3600.0
    link = shop.town.file.parent / "links" / "lab.yaml"
    link.parent.mkdir()
    link.symlink_to(shop.town.file)

    shop.purchase(file=link).make()

    assert link.is_symlink()
    assert len(shop.named()) == 1
    assert shop.note.exists()
