"""Gangs that start from stopped nodes, in the whole loop: what EC2 refuses, and who dies when."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_stopped import DISK_USD, ON, SETTLED_S, START_POINTS, dying
from tests.sim.test_world import run, states
from tidegate.core.model.ec2 import FleetRequest, InstanceState, Market
from tidegate.core.model.ledger import Phase
from tidegate.core.model.slurm import Shape
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.stopped import StartedWhenSettled
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.draw import draw
from tidegate.sim.faults import no_faults
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

ZONES = ("us-east-1a", "us-east-1b")
THERE = replace(ON, zone="us-east-1b")
GANG = Submit("ada", Shape(1, "t4", 1, 1000), 100.0, nodes=3, priority=5)


def with_stopped_nodes(count: int = 3) -> SimWorld:
    """A gang has run, and its nodes stand stopped, ready to be started; another zone sells too."""
    of = pool(types=(T4,), markets=(Market.ON_DEMAND,), idle_s=10.0, zones=ZONES)
    kept = replace(of, stopped_nodes=count, stopped_usd_per_hour=DISK_USD)
    w = SimWorld(cluster(kept), lambda instance: 60.0)
    w.slurm.submit(GANG)
    run(w, 600 + SETTLED_S)
    assert len(w.compute.stopped) == count
    assert {w.compute.everything[name].offering for name in w.compute.stopped} == {ON}
    return w


def since(w: SimWorld, num_before: int) -> list[tuple[bool, int]]:
    """What EC2 was asked for since: whether it was a start, and of how many nodes."""
    return [(bool(each.starts), each.count) for each in w.compute.requests[num_before:]]


def test_the_next_gang_starts_what_the_one_before_left() -> None:
    w = with_stopped_nodes()
    before = len(w.compute.requests)

    gang = w.slurm.submit(GANG)
    run(w, 100)

    assert since(w, before) == [(True, 1)] * 3
    assert len(w.compute.everything) == 3
    assert w.slurm.jobs[gang].state == "RUNNING"
    assert {each.phase for each in w.ledger.all_nodes.values()} == {Phase.JOINED}
    run(w, 400)
    assert set(states(w).values()) == {"COMPLETED"}
    assert w.compute.live() == ()
    assert len(w.compute.stopped) == 3


def test_where_ec2_has_room_for_none_one_is_asked_for_and_the_gang_is_bought_elsewhere() -> None:
    w = with_stopped_nodes()
    before = len(w.compute.requests)
    w.compute.shortages[ON] = 0

    w.slurm.submit(GANG)
    run(w, 10)

    assert since(w, before) == [(True, 1), (False, 3)]
    assert {each.offering for each in w.compute.live()} == {THERE}
    assert len(w.compute.stopped) == 3


@pytest.mark.parametrize("room", [1, 2])
def test_where_ec2_has_room_for_some_the_gang_is_whole_all_the_same(room: int) -> None:
    w = with_stopped_nodes()
    w.compute.shortages[ON] = room

    gang = w.slurm.submit(GANG)
    run(w, 100)

    job = w.slurm.jobs[gang]
    assert job.state == "RUNNING"
    assert {w.compute.everything[name].offering for name in job.node_names} == {THERE}
    run(w, 900)
    assert w.compute.live() == ()
    assert set(states(w).values()) == {"COMPLETED"}


def test_with_one_that_somebody_ended_meanwhile_the_gang_is_completed() -> None:
    """It was there when the plan was made, and EC2 does not start it."""
    w = with_stopped_nodes()
    victim = sorted(w.compute.stopped)[-1]

    def ends(request: FleetRequest) -> None:
        if victim in w.compute.stopped:
            del w.compute.stopped[victim]
            ended = replace(w.compute.everything[victim], state=InstanceState.TERMINATED)
            w.compute.everything[victim] = ended

    w.compute.on_request.append(ends)

    gang = w.slurm.submit(GANG)
    run(w, 300)

    assert w.slurm.jobs[gang].state in ("RUNNING", "COMPLETED")
    assert len(w.compute.everything) == 4
    run(w, 600)
    assert w.compute.live() == ()


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("point", START_POINTS)
def test_a_planner_that_dies_while_it_starts_a_gang_buys_nothing_beside_it(
    point: str, calls: int
) -> None:
    """At the first, second or third call of this kind."""
    w = with_stopped_nodes()
    w.redelivery_s = 60.0
    dies, left = dying(point), [calls]

    def passes(reached: str) -> None:
        left[0] -= reached == point
        if left[0] <= 0:
            dies(reached)

    w.compute.faults = w.ledger.faults = passes
    w.slurm.submit(GANG)
    run(w, 500)
    w.compute.faults = w.ledger.faults = no_faults
    run(w, 600)

    assert set(states(w).values()) == {"COMPLETED"}
    assert len(w.compute.everything) == 3
    assert sorted(w.compute.stopped) == sorted(w.compute.everything)
    assert len(w.ledger.all_former) == 3


def watched() -> SimWorld:
    w = with_stopped_nodes()
    Checks(Witness(w, Chaos(draw(0), w)), (StartedWhenSettled,)).install()
    return w


def test_a_gang_that_is_started_where_its_pool_has_placement_groups_is_found() -> None:
    w = watched()
    (kept,) = w.cluster.pools
    w.cluster = replace(w.cluster, pools=(replace(kept, placement_group=True),))

    w.slurm.submit(GANG)
    with pytest.raises(Broken, match="is started in pool t4"):
        run(w, 10)


@pytest.mark.parametrize(
    ("more", "found"),
    [({"starts": ""}, "in part, and bought in part"), ({"offerings": (THERE,)}, "1a, us-east-1b")],
)
def test_a_gang_that_is_started_in_part_or_in_two_zones_is_found(
    more: dict[str, object], found: str
) -> None:
    w = watched()

    def spoils(request: FleetRequest) -> None:
        """The last of those that the plan has made is another one by now."""
        name, last = max(w.ledger.all_launches.items())
        launch = replace(last.launch, **more)  # type: ignore[arg-type]
        w.ledger.all_launches[name] = replace(last, launch=launch)

    w.compute.on_request.insert(0, spoils)
    w.slurm.submit(GANG)
    with pytest.raises(Broken, match=found):
        run(w, 10)
