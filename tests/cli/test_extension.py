"""A block that ends with work on it: what EC2 offers, and the purchase of a later end."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import SSLError
from typer.testing import CliRunner, Result

from local.blocks import LocalBlocks
from local.trouble import Fault, Trouble
from tests.adapters.test_capacity_blocks import DAY_S, buyer
from tests.cli.conftest import Town
from tests.cli.test_capacity import Person, refuse_by_the_hour
from tests.make import job
from tidegate.adapters.block_extensions import BlockExtensions
from tidegate.cli.capacity.buy import pools_for
from tidegate.cli.capacity.extend import ExtensionPurchase
from tidegate.cli.main import app
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import BadConfig
from tidegate.wire.added_reservation import with_reservations
from tidegate.wire.config import load_cluster

TYPE, ZONE, BLOCK = "g5.xlarge", "us-east-1a", "cr-00000000000000001"


def at(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


@dataclass
class Shop:
    """A block of the file that began yesterday and ends in six hours, and a day more of it."""

    town: Town
    now: float = field(default_factory=time.time)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends_s = self.now // 60 * 60 + 6 * 3600
        held = Reservation(
            BLOCK, TYPE, ZONE, 2, Market.CAPACITY_BLOCK, self.ends_s - 2 * DAY_S, self.ends_s
        )
        file = load_cluster(self.town.file)
        made = with_reservations(self.town.file.read_text(), [held], pools_for(file.cluster, held))
        assert made
        self.town.file.write_text(made)
        self.blocks.bought.append(
            {
                "CapacityReservationId": BLOCK,
                "InstanceType": TYPE,
                "InstancePlatform": "Linux/UNIX",
                "AvailabilityZone": ZONE,
                "Tenancy": "default",
                "TotalInstanceCount": 2,
                "StartDate": at(held.starts_at_s),
                "EndDate": at(self.ends_s),
                "ReservationType": "capacity-block",
                "CreateDate": held.starts_at_s,
            }
        )
        self.offers("cbe-1")

    def now_s(self) -> float:
        return self.now

    @property
    def blocks(self) -> LocalBlocks:
        return self.town.cloud.blocks

    def offers(self, name: str, fee: str = "50.25") -> None:
        self.blocks.extension_offers.append(
            {
                "CapacityReservationId": BLOCK,
                "CapacityBlockExtensionOfferingId": name,
                "InstanceType": TYPE,
                "InstanceCount": 2,
                "AvailabilityZone": ZONE,
                "CapacityBlockExtensionStartDate": at(self.ends_s),
                "CapacityBlockExtensionEndDate": at(self.ends_s + DAY_S),
                "CapacityBlockExtensionDurationHours": 24,
                "UpfrontFee": fee,
                "CurrencyCode": "USD",
                "Tenancy": "default",
            }
        )

    @property
    def note(self) -> Path:
        return self.town.file.with_name(f"{self.town.file.name}.purchase")

    @property
    def sold(self) -> int:
        return len(self.blocks.extended)

    def buy(
        self,
        approve: Callable[[str], bool] = lambda _: True,
        *,
        offer: str = "cbe-1",
        at_most: float | None = None,
        sells: Any = None,
        days: int = 1,
    ) -> None:
        client = self.town.cloud.client("ec2")
        asked = BlockExtensions(client, sells or buyer(self.town.cloud))
        file = self.town.file
        ExtensionPurchase(
            offer, BLOCK, days, file, asked, at_most, self, approve, self.told.append
        ).make()

    def ask(self, *words: str) -> Result:
        given = ["capacity", *words, "--cluster", str(self.town.file)]
        return CliRunner().invoke(app, given, obj=Person(self.town).client)


@pytest.fixture
def shop(town: Town) -> Shop:
    town.cloud.blocks.clear()
    return Shop(town)


def test_a_block_that_ends_with_work_for_it_is_offered_longer(shop: Shop) -> None:
    shop.town.report([job(1, gpu_type="a10g", time_limit_s=3600.0)])
    refuse_by_the_hour(shop.town)

    result = shop.ask()

    told = " ".join(result.output.split())
    assert f"cbe-1: {BLOCK}, 2 x {TYPE} in {ZONE}, 24.0 h longer until" in told, told
    assert ", 50.25 USD" in told
    assert "1 job waits that nothing else serves now" in told
    # 48 hours of an instance and its disk, at about 1.02 USD.
    assert re.search(r"costs 1\.0\d x \((48|49)\.\d\d USD\) the same hours on demand", told)
    command = f"tidegate capacity --extend {BLOCK} --days 1 --buy cbe-1 --at-most 50.25"
    assert command in told


def test_what_is_offered_is_bought_on_approval_alone(shop: Shop) -> None:
    shop.town.report()
    words = ("--extend", BLOCK, "--days", "1", "--buy", "cbe-1")

    assert shop.ask(*words).exit_code == 1, "nobody answered"
    assert shop.ask(*words, "--yes", "--at-most", "50").exit_code == 1, "dearer"
    assert shop.sold == 0

    before = shop.town.file.read_text()
    done = shop.ask(*words, "--yes", "--at-most", "50.25")
    assert done.exit_code == 0, done.output
    assert "EC2 says payment-pending" in " ".join(done.output.split())
    assert shop.sold == 1
    assert shop.town.file.read_text() == before
    again = shop.ask(*words, "--yes", "--at-most", "50.25")
    assert "was bought before: nothing is bought now" in " ".join(again.output.split())
    assert shop.sold == 1


@pytest.mark.parametrize("shown_after_s", [0.0, 3600.0])
def test_of_two_people_who_are_asked_at_once_one_buys(shop: Shop, shown_after_s: float) -> None:
    shop.blocks.shown_after_s = shown_after_s

    def meanwhile(_: str) -> bool:
        shop.buy()
        return True

    try:
        shop.buy(meanwhile)
    except BadConfig as error:
        assert "another purchase has begun meanwhile" in str(error)
    assert shop.sold == 1


def test_whose_answer_is_lost_buys_nothing_while_ec2_may_hide_it(shop: Shop) -> None:
    shop.blocks.shown_after_s = 3600.0
    shop.town.cloud.trouble(Trouble("ec2:PurchaseCapacityBlockExtension", Fault.LOST_ANSWER))
    with pytest.raises(BadConfig, match="EC2 may have sold the extension or not"):
        shop.buy()
    with pytest.raises(BadConfig, match="try again in 10 min"):
        shop.buy()
    shop.offers("cbe-2")
    with pytest.raises(BadConfig, match="first finish it with tidegate capacity --extend"):
        shop.buy(offer="cbe-2")

    shop.blocks.shown_after_s = 0.0
    shop.buy()

    assert shop.sold == 1
    assert not shop.note.exists()


def test_a_line_that_breaks_after_the_question_leaves_it_in_doubt(shop: Shop) -> None:
    class Broken:
        def purchase_capacity_block_extension(self, **_: Any) -> Any:
            raise SSLError(endpoint_url="https://ec2", error=OSError("EOF"))

    with pytest.raises(BadConfig, match="EC2 may have sold the extension or not"):
        shop.buy(sells=Broken())

    assert shop.note.exists()


def test_an_offer_that_is_gone_lists_what_there_is_instead(shop: Shop) -> None:
    shop.blocks.extension_offers.clear()
    shop.offers("cbe-9", "60")

    with pytest.raises(BadConfig, match=r"EC2 offers cbe-1 no more.*\n.*cbe-9: "):
        shop.buy()

    def gone(_: str) -> bool:
        shop.blocks.extension_offers.clear()
        return True

    with pytest.raises(BadConfig, match="EC2 sells cbe-9 no more, nothing was bought"):
        shop.buy(gone, offer="cbe-9")
    assert shop.sold == 0
    assert not shop.note.exists()


def test_while_a_payment_is_pending_ec2_offers_nothing_more(shop: Shop) -> None:
    shop.blocks.payments["cbe-1"] = "payment-pending"
    shop.buy()
    shop.offers("cbe-2")

    with pytest.raises(BadConfig, match="it offers nothing of that kind: The Capacity Block"):
        shop.buy(offer="cbe-2")

    assert shop.sold == 1


def test_what_was_not_paid_for_can_be_bought_again(shop: Shop) -> None:
    shop.buy()
    shop.blocks.payments["cbe-1"] = "payment-failed"
    shop.offers("cbe-2")

    shop.buy(offer="cbe-2")

    assert [each["CapacityBlockExtensionOfferingId"] for each in shop.blocks.extended] == [
        "cbe-1",
        "cbe-2",
    ]


def test_an_offer_that_was_not_paid_for_and_is_still_there_can_be_bought_again(shop: Shop) -> None:
    shop.buy()
    shop.blocks.payments["cbe-1"] = "payment-failed"

    shop.buy()

    assert shop.sold == 2


def test_a_block_that_the_file_does_not_name_is_not_extended(shop: Shop) -> None:
    shop.town.report()

    result = shop.ask("--extend", "cr-00000009", "--days", "1", "--buy", "cbe-1")

    assert result.exit_code == 1
    assert f"it has {BLOCK}" in " ".join(result.output.split())
