"""A reservation that the file names is split, moved, cancelled or prolonged under its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from tests.sim.test_prepaid import markets, paid, spent_today, world
from tests.sim.test_world import one_gpu, run, states
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.service.reservations import Reservations
from tidegate.sim.clock import START_S
from tidegate.sim.reservations import Owner
from tidegate.sim.world import SimWorld

RECONCILE_S = 300
LONG_S = 2000.0


@dataclass
class Story:
    """A cluster with one reservation by id, whose owner changes it."""

    of: Reservation
    world: SimWorld = field(init=False)
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        self.world = world(self.of)
        self.owner = Owner(self.world.compute)

    def submit(self, count: int, seconds: float = LONG_S) -> None:
        for _ in range(count):
            self.world.slurm.submit(one_gpu(seconds))

    def run(self, seconds: int) -> None:
        """Reconcile reads the reservations as it does on AWS."""
        for _ in range(seconds // RECONCILE_S):
            w = self.world
            work = Reservations(
                cluster=w.cluster, feed=self.owner.feed(), ledger=w.ledger, clock=w.clock
            )
            work.refresh()
            run(w, RECONCILE_S, 5.0)

    def asked_reserved(self) -> int:
        asked = self.world.compute.requests
        return sum(each.market is Market.RESERVED for each in asked)

    def said(self) -> Sequence[str]:
        return self.world.ledger.seen_market.reservations.troubles


@pytest.mark.parametrize("is_targeted", [False, True])
def test_what_was_split_off_is_not_asked_for_again_and_again(is_targeted: bool) -> None:
    """EC2 refuses what is there no more: a refusal costs the next job its rest, 3 to 30 min."""
    story = Story(replace(paid(Market.RESERVED, 4), is_targeted=is_targeted))
    story.submit(2)
    story.run(600)

    story.owner.move("cr-1", "cr-2", 2)
    story.run(300)
    before = story.asked_reserved()
    story.submit(2)
    story.run(3000)

    assert set(states(story.world).values()) == {"COMPLETED"}
    assert story.asked_reserved() == before, "its two places are taken"
    assert story.said() == (
        "cr-1 has 2 instances by EC2, not 4 as the file says: it is used for 2; cr-2 is of its type"
        " and zone and in no file: if what was split off or moved is there, it is used once it"
        " stands in reservations, or in a group",
    )


def test_nodes_that_were_moved_to_another_reservation_run_on_and_cost_nothing() -> None:
    story = Story(paid(Market.RESERVED, 3))
    story.submit(3)
    story.run(600)

    story.owner.move("cr-1", "cr-2", 2)
    story.run(3000)

    assert set(states(story.world).values()) == {"COMPLETED"}
    assert len(story.world.compute.everything) == 3
    assert spent_today(story.world) == 0.0


def test_a_reservation_that_is_cancelled_under_running_jobs_leaves_them_and_is_asked_no_more() -> (
    None
):
    story = Story(paid(Market.RESERVED, 2))
    story.submit(2)
    story.run(600)
    story.owner.cancel("cr-1")
    story.run(300)
    before = story.asked_reserved()
    assert markets(story.world.compute.live()) == [Market.ON_DEMAND] * 2

    story.submit(2)
    story.run(3600)

    assert set(states(story.world).values()) == {"COMPLETED"}
    assert story.asked_reserved() == before
    assert story.world.compute.live() == (), "nothing that costs by the hour idles"
    assert len(story.world.compute.everything) == 4
    assert spent_today(story.world) > 0.0
    assert story.said() == (
        "EC2 says that cr-1 is cancelled: its nodes run on and are billed on demand; take it out of"
        " reservations and deploy",
    )


def test_what_ec2_shows_no_more_stays_cancelled_and_what_was_never_shown_is_tried() -> None:
    story = Story(paid(Market.RESERVED, 1))
    story.owner.cancel("cr-1")
    story.run(300)
    story.owner.cancelled.clear()
    story.run(300)

    story.submit(1)
    story.run(900)

    assert story.asked_reserved() == 0
    assert story.said() == (
        "EC2 shows no cr-1 here: it gives no node; take it out of reservations and deploy, or mend"
        " its id",
    )

    new = Story(paid(Market.RESERVED, 1))
    new.world.compute.prepaid.reservations = ()
    new.run(300)
    new.submit(1)
    new.run(900)
    assert new.asked_reserved() > 0, "EC2 shows what is new a while later"


def test_a_reservation_ends_when_ec2_says_and_not_when_the_file_does() -> None:
    sooner = Story(paid(Market.RESERVED, 1))
    sooner.owner.compute.prepaid.change(replace(sooner.of, ends_at_s=START_S + 1200))
    later = Story(paid(Market.RESERVED, 1, ends_in_s=600.0))
    later.owner.compute.prepaid.change(replace(later.of, ends_at_s=START_S + 9000))

    for story in (sooner, later):
        story.run(1500)
        story.submit(1, 60.0)
        story.run(900)

    assert markets(tuple(sooner.world.compute.everything.values())) == [Market.SPOT]
    assert markets(later.world.compute.live()) == [Market.RESERVED]


def test_what_is_lent_goes_back_when_nothing_needs_it() -> None:
    """Its owner's other borrowers may use it, and another account's is billed by the hour."""
    stays, goes = Story(paid(Market.RESERVED, 1)), Story(paid(Market.INTERRUPTIBLE, 1))
    for story in (stays, goes):
        story.submit(1, 60.0)
        story.run(3000)

    assert len(stays.world.compute.live()) == 1
    assert goes.world.compute.live() == ()


def test_what_an_owner_takes_back_is_left_in_time_and_its_jobs_run_elsewhere() -> None:
    story = Story(paid(Market.INTERRUPTIBLE, 2))
    w = story.world
    story.submit(2)
    story.run(600)
    first = [each.instance_id for each in w.compute.live()]
    assert markets(w.compute.live()) == [Market.INTERRUPTIBLE] * 2

    for at_s, news in story.owner.take_back("cr-1", 2):
        w.announce(news)
        w.at(at_s, partial(w.compute.end, news.instance_id))
    story.run(900)

    assert not any(map(w.compute.is_live, first))
    assert markets(w.compute.live()) == [Market.SPOT] * 2
    asked = [each.market for each in w.compute.requests]
    assert asked.count(Market.INTERRUPTIBLE) == 1, "nothing is asked of what is taken back"
    story.run(3000)
    assert set(states(w).values()) == {"COMPLETED"}


def test_the_file_s_count_is_the_most_that_is_taken() -> None:
    """The rest may be another cluster's."""
    story = Story(paid(Market.RESERVED, 1))
    story.owner.compute.prepaid.change(replace(story.of, count=5))

    story.submit(2)
    story.run(600)

    assert sorted(markets(story.world.compute.live())) == [Market.RESERVED, Market.SPOT]
    assert story.said() == ()
