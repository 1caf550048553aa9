"""Reading the account's reservations: what is kept of it, and what happens when it is not read."""

from dataclasses import dataclass, field, replace

import pytest

from tests.core.test_reservation_groups import BLOCK, GROUP, extended, grouping, odcr
from tests.make import job
from tests.service.conftest import World
from tidegate.core.model.capacity import BlockState, ExtensionState, Holding
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import Throttled
from tidegate.core.model.seen_reservations import NONE_SEEN, SeenReservations
from tidegate.core.offers.seen_reservations import TOLD_AFTER_S, reservation_troubles
from tidegate.service.reservations import Reservations
from tidegate.sim.reservations import SimReservations


@dataclass
class Owning:
    """A cluster that takes nodes from a group."""

    world: World = field(default_factory=lambda: World(grouping(BLOCK)))
    feed: SimReservations = field(default_factory=SimReservations)

    def has(self, *names: str) -> None:
        self.feed.has = [Holding(odcr(each), BlockState.ACTIVE) for each in names]
        self.feed.has.append(Holding(BLOCK, BlockState.ACTIVE))
        self.feed.groups[GROUP] = list(names)

    def refresh(self) -> SeenReservations:
        of = self.world
        work = Reservations(cluster=of.of, feed=self.feed, ledger=of.ledger, clock=of.clock)
        seen = work.refresh()
        assert seen == of.ledger.seen_market.reservations
        return seen


@pytest.fixture
def owning() -> Owning:
    made = Owning()
    made.has("cr-00000001")
    return made


def test_the_next_look_launches_into_what_came_into_the_group(owning: Owning) -> None:
    owning.world.report([job()])
    owning.refresh()

    (round_,) = owning.world.look().rounds

    assert [each.id for each in round_.snapshot.cluster.reservations] == ["cr-7", "cr-00000001"]
    (asked,) = owning.world.compute.requests
    assert (asked.market, asked.launch_template_id) == (Market.RESERVED, "lt-t4/group-gpus")


def test_what_cannot_be_read_is_as_it_was_read_last(owning: Owning) -> None:
    before = owning.refresh()
    owning.has("cr-00000001", "cr-00000002")
    owning.world.clock.advance(TOLD_AFTER_S)

    owning.feed.groups_trouble = Throttled("TooManyRequestsException")
    seen = owning.refresh()
    assert (seen.found, seen.at_s) == (before.found, before.at_s)
    assert seen.troubles == (
        "the reservation group gpus cannot be read: Throttled: TooManyRequestsException",
    )

    owning.feed.trouble = Throttled("RequestLimitExceeded")
    seen = owning.refresh()
    assert seen.found == before.found
    assert list(reservation_troubles(owning.world.of, seen, owning.world.clock.now_s())) == [
        "the account's reservations cannot be read: Throttled: RequestLimitExceeded",
        "the account's reservations were last read 60 min ago: what came into a group since, or was"
        " extended, split or cancelled, does not count yet",
    ]

    owning.feed.trouble = owning.feed.groups_trouble = None
    assert len(owning.refresh().found) == 3


def test_of_a_group_that_cannot_be_read_a_reservation_that_ended_is_left_out(
    owning: Owning,
) -> None:
    owning.refresh()
    owning.feed.has = [Holding(odcr("cr-00000001"), BlockState.CANCELLED)]
    owning.feed.groups_trouble = Throttled("TooManyRequestsException")

    assert owning.refresh().found == ()


def test_a_group_that_is_gone_gives_nothing_and_is_said(owning: Owning) -> None:
    owning.refresh()
    del owning.feed.groups[GROUP]

    seen = owning.refresh()

    assert [each.id for each in seen.found] == ["cr-7"]
    assert seen.troubles == (
        "there is no reservation group gpus: make it again, or take it out of reservation_groups"
        " and deploy",
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ExtensionState.PAYMENT_PENDING, "is payment-pending: it counts once it is paid for"),
        (ExtensionState.PAYMENT_FAILED, "was not paid for: the block ends"),
    ],
)
def test_an_extension_that_is_not_paid_for_is_said(
    owning: Owning, state: ExtensionState, words: str
) -> None:
    owning.feed.extended = [extended(state)]

    (said,) = owning.refresh().troubles

    assert words in said


@pytest.mark.parametrize("is_impaired", [True, False])
def test_an_ultraserver_that_ec2_finds_impaired_is_said(is_impaired: bool) -> None:
    held = replace(BLOCK, instance_type="trn2u.48xlarge", block="cb-1")
    owning = Owning(World(replace(grouping(held), reservation_groups=())))
    owning.feed.has = [Holding(held, BlockState.ACTIVE)]
    owning.feed.is_impaired = frozenset({"cb-1"} if is_impaired else {"cb-2"})

    seen = owning.refresh()

    assert [each.block for each in seen.found] == ["cb-1"]
    assert [each[:47] for each in seen.troubles] == [
        "EC2 finds the interconnect of cb-1 (cr-7) impai"
    ] * is_impaired
    assert seen.at_s == owning.world.clock.now_s(), "the reservations were read all the same"


def test_what_is_known_of_an_ultraserver_stays_where_its_status_cannot_be_read() -> None:
    class Denied(SimReservations):
        def impaired(self) -> frozenset[str]:
            raise Throttled("RequestLimitExceeded")

    held = replace(BLOCK, instance_type="trn2u.48xlarge", block="cb-1")
    owning = Owning(World(replace(grouping(held), reservation_groups=())), Denied())
    owning.feed.has = [Holding(held, BlockState.ACTIVE, is_launchable=False)]

    seen = owning.refresh()

    assert [each.id for each in seen.found] == ["cr-7"]
    assert seen.troubles == (
        "whether UltraServers are impaired cannot be read: Throttled: RequestLimitExceeded",
        "EC2 takes no launches into cr-7 now (unlaunchable): it is tried again by itself",
    )


def test_nothing_is_asked_where_nothing_is_reserved() -> None:
    owning = Owning(World(replace(grouping(), reservation_groups=())))
    owning.feed.trouble = Throttled("asked all the same")

    assert owning.refresh() == NONE_SEEN
