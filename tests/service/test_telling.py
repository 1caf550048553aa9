"""People are told of each cause once, and never not at all, whatever dies in between."""

from collections.abc import Iterator

import pytest

from tests.make import NOW_S, job
from tests.service.conftest import World
from tidegate.core.model.errors import Throttled
from tidegate.core.model.notice import NoticeCode, Told
from tidegate.core.model.slurm import Job
from tidegate.service.telling import Teller
from tidegate.sim.faults import KillAt, Killed
from tidegate.sim.notices import SimNotices

HOUR_S = 3600.0


@pytest.fixture
def notices() -> SimNotices:
    return SimNotices()


def long(number: int) -> Job:
    return job(number, gpus=64, begins_at_s=NOW_S - 3 * HOUR_S)


def tell(world: World, notices: SimNotices, *jobs: Job, reports: bool = True) -> int:
    if reports:
        world.report(jobs)
    return Teller("test", notices, world.clock, wait_s=2 * HOUR_S).tell(world.look())


def causes(notices: SimNotices) -> list[list[str]]:
    return [[each.cause for each in message.notices] for message in notices.sent]


def test_what_a_look_finds_goes_into_one_message_and_is_not_repeated(
    world: World, notices: SimNotices
) -> None:
    assert tell(world, notices, long(1), long(2)) == 2
    assert tell(world, notices, long(1), long(2)) == 0
    assert tell(world, notices, long(1), long(2), long(3)) == 1

    assert causes(notices) == [["1", "2"], ["3"]]
    assert [each.code for each in notices.sent] == [NoticeCode.JOB_WAITS] * 2
    assert notices.sent[0].cluster == "test"


def test_a_job_that_ran_and_waits_again_is_told_of_again(world: World, notices: SimNotices) -> None:
    tell(world, notices, long(1), long(2))
    tell(world, notices, long(2), long(3))

    tell(world, notices, long(1), long(2), long(3))

    assert causes(notices) == [["1", "2"], ["3"], ["1"]]


def test_a_look_that_does_not_know_the_queue_tells_and_forgets_nothing(
    world: World, notices: SimNotices
) -> None:
    tell(world, notices, long(1))
    world.bus.spoil_digest()

    assert tell(world, notices, reports=False) == 0
    assert notices.noted.at_s


def test_where_nothing_is_to_tell_nothing_is_asked(world: World, notices: SimNotices) -> None:
    notices.faults = KillAt()

    tell(world, notices, job(1))

    assert notices.faults.points == []


def points(world: World, notices: SimNotices) -> Iterator[int]:
    counted = notices.faults = KillAt()
    tell(world, notices, long(1))
    yield from range(len(counted.points))


def test_a_planner_that_dies_anywhere_has_told_or_tells_the_next_time() -> None:
    steps = list(points(World(), SimNotices()))
    assert len(steps) == 6
    for step in steps:
        world, notices = World(), SimNotices(faults=KillAt(step))
        with pytest.raises(Killed):
            tell(world, notices, long(1))
        notices.faults = KillAt()

        tell(world, notices, long(1))
        tell(world, notices, long(1))

        assert ["1"] in causes(notices), f"killed at {step}"
        assert len(notices.sent) <= 2, f"killed at {step}"
        assert "job-waits/1" in notices.noted.at_s


def test_what_could_not_be_sent_is_not_noted(world: World, notices: SimNotices) -> None:
    def refuse(point: str) -> None:
        if point == "before publish":
            raise Throttled("slow down")

    notices.faults = refuse
    with pytest.raises(Throttled):
        tell(world, notices, long(1))

    assert notices.noted == Told()
