"""Of many nodes one is always broken: it is replaced at once, and one of few rests its offering."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import A10G, T4, cluster, job, node, offering, pool, record
from tests.service.conftest import World
from tests.service.test_boot_failures import SAID, ended, joined_down, joined_small, never_came
from tidegate.core.fleet.rests import outweighed
from tidegate.core.model.ec2 import InstanceState, Market, Template
from tidegate.core.model.events import BootFailed, StateChange
from tidegate.core.model.ledger import NodeRecord
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Node


def gang_world(nodes: int) -> tuple[World, Job, list[str]]:
    """A pool of one offering; a job of so many nodes, which boot."""
    world = World(cluster(pool("first", (T4,), markets=(Market.SPOT,))))
    gang = replace(job(7), nodes=nodes)
    world.report([gang])
    world.look()
    return world, gang, sorted(one.instance_id for one in world.compute.live())


def joined(names: list[str]) -> list[Node]:
    return [node(name) for name in names]


def fails(world: World, name: str) -> None:
    world.compute.end(name)
    world.control().interrupt(
        [BootFailed(name, "gpu", SAID), StateChange(name, InstanceState.SHUTTING_DOWN)]
    )


def just_ends(world: World, name: str) -> None:
    """No event comes."""
    world.compute.ending_s = 60.0
    world.compute.end(name)


def rest(world: World) -> Resting:
    (found,) = world.ledger.all_resting.values()
    return found


@pytest.mark.parametrize("ends", [fails, just_ends])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_gang_does_not_wait_for_the_place_of_one_bad_node(
    ends: Callable[[World, str], None], *, is_last: bool
) -> None:
    """Whether the others joined before it failed or after."""
    world, gang, (bad, *good) = gang_world(4)
    world.clock.advance(60)
    if is_last:
        world.report([gang], joined(good))
        world.look()
    ends(world, bad)
    world.clock.advance(10)
    world.report([gang], joined(good))
    world.look()
    world.clock.advance(10)
    world.report([gang], joined(good))
    world.look()

    assert len(world.compute.live()) == 4
    assert rest(world).failures == 1, "one node failed, whoever tells of it and how often"


def test_what_fails_as_often_as_it_joins_rests() -> None:
    """Two joined; of their third the first two fail."""
    world, gang, (bad, *good) = gang_world(3)
    world.clock.advance(60)
    world.report([gang], joined(good))
    world.look()
    for failures in (1, 2):
        world.clock.advance(30)
        fails(world, bad)
        world.clock.advance(10)
        world.report([gang], joined(good))
        world.look()
        assert rest(world).failures == failures
        new = {one.instance_id for one in world.compute.live()} - set(good)
        if failures == 1:
            (bad,) = new

    assert not new
    assert rest(world).until_s > world.clock.now_s() + 40 * 60


@pytest.mark.parametrize(("ago_s", "bought"), [(1000.0, 1), (1900.0, 0)])
def test_what_joined_long_ago_tells_nothing(ago_s: float, bought: int) -> None:
    world, gang, names = gang_world(2)
    world.clock.advance(60)
    world.report([gang], joined(names))
    world.look()
    busy = [node(name, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1) for name in names]
    runs = job(7, nodes=2, on=names)
    world.clock.advance(ago_s)
    world.report([runs, job(8)], busy)
    world.look()
    (bad,) = {one.instance_id for one in world.compute.live()} - set(names)
    fails(world, bad)
    world.clock.advance(10)
    world.report([runs, job(8)], busy)
    world.look()

    assert len({one.instance_id for one in world.compute.live()} - set(names)) == bought


@pytest.mark.parametrize("how", [ended, never_came, joined_down, joined_small])
def test_a_plan_buys_nothing_of_what_it_lets_rest(how: Callable[[World, str], None]) -> None:
    world, _, (bad,) = gang_world(1)
    world.clock.advance(30)
    how(world, bad)
    world.look()

    assert set(world.compute.everything) == {bad}
    assert rest(world).failures == 1


def test_nodes_that_join_too_small_tell_nothing_for_their_offering() -> None:
    world, gang, names = gang_world(4)
    world.clock.advance(60)
    world.report([gang], [replace(each, cpus=1) for each in joined(names)])
    world.look()
    world.look()

    assert rest(world).code == "NodeTooSmall"
    assert set(world.compute.everything) == set(names)


@pytest.mark.parametrize("how", [fails, ended, never_came, joined_down, joined_small])
@pytest.mark.parametrize(("is_good", "bought"), [(True, 2), (False, 1)])
def test_a_template_that_brought_good_nodes_has_a_second_try(
    how: Callable[[World, str], None],
    is_good: bool,
    bought: int,
) -> None:
    """However long ago that was, and whatever is wrong with the node; a second failure counts."""
    made_so = Template("lt-first", "1", "made-so")
    world = World(cluster(pool("first", (T4,), markets=(Market.SPOT,))))
    good = made_so if is_good else None
    world.ledger.all_pool_history["first"] = PoolHistory("first", good=good)
    for _ in range(3):
        world.report([job(7)])
        world.look(first=made_so)
        world.clock.advance(30)
        for one in world.compute.live():
            how(world, one.instance_id)
            world.look(first=made_so)
        world.clock.advance(60)

    assert len(world.compute.everything) == bought
    assert rest(world).failures == bought


FAILED = Resting(
    *(offering(), 9000.0, 1, "BootstrapFailed", "stage gpu failed"),
    pool="first",
    template="made-so",
    since_s=5000.0,
)
JOINED = replace(record(), pool="first", template="made-so", joined_at_s=3201.0)


@pytest.mark.parametrize(
    ("failed", "joined", "is_one_nodes"),
    [
        (FAILED, (JOINED, JOINED), True),
        (FAILED, (JOINED,), False),
        (FAILED, (JOINED, replace(JOINED, joined_at_s=3199.0)), False),
        (FAILED, (JOINED, replace(JOINED, joined_at_s=None)), False),
        (FAILED, (JOINED, replace(JOINED, pool="second")), False),
        (FAILED, (JOINED, replace(JOINED, template="otherwise")), False),
        (FAILED, (JOINED, replace(JOINED, offering=offering(zone="us-east-1f"))), False),
        (replace(FAILED, since_s=0.0), (JOINED, JOINED), False),
        (replace(FAILED, code="VcpuLimitExceeded"), (JOINED, JOINED), False),
        (replace(FAILED, code="NodeJoinedDown"), (JOINED, JOINED), False),
    ],
)
def test_only_nodes_of_the_same_that_joined_about_then_tell_against_a_failure(
    failed: Resting, joined: tuple[NodeRecord, ...], *, is_one_nodes: bool
) -> None:
    assert (failed.key in outweighed([failed], joined, ())) is is_one_nodes


def test_what_rests_already_stays_so_beside_a_new_failure() -> None:
    world = World(cluster(pool("first", (T4, A10G), markets=(Market.SPOT,))))
    world.report([job(7, gpu_type="")])
    world.look()
    (bad,) = world.compute.live()
    others = {on for _, on in world.of.pools[0].offerings()} - {bad.offering}
    until_s = world.clock.now_s() + 600
    for on in others:
        world.ledger.rest(Resting(on, until_s, 1, "InsufficientInstanceCapacity", "none left"))
    world.clock.advance(30)
    just_ends(world, bad.instance_id)
    world.look()

    assert set(world.compute.everything) == {bad.instance_id}


def test_a_failure_of_an_old_template_stops_no_node_of_the_new_one() -> None:
    world = World(cluster(pool("first", (T4,), markets=(Market.SPOT,))))
    world.report([job(7)])
    world.look(first=Template("lt-first", "1", "old"))
    (bad,) = world.compute.live()
    world.clock.advance(30)
    just_ends(world, bad.instance_id)
    world.look(first=Template("lt-first", "2", "new"))

    assert [one.template for one in world.compute.everything.values()] == ["old", "new"]


def test_a_node_that_fails_in_its_first_second_failed_once() -> None:
    """EC2 tells whole seconds; its end tells nothing new."""
    world, _, (bad,) = gang_world(1)
    world.control().interrupt([BootFailed(bad, "gpu", SAID)])
    world.compute.ending_s = 60.0
    world.compute.end(bad)
    world.control().interrupt([StateChange(bad, InstanceState.SHUTTING_DOWN)])
    world.look()

    assert (rest(world).code, rest(world).failures) == ("BootstrapFailed", 1)


def test_an_older_node_that_is_not_in_time_ends_no_rest() -> None:
    """The others that joined tell against its failure, and not against the one that counts."""
    world, gang, (late, small, *good) = gang_world(5)
    world.clock.advance(60)
    nodes = [replace(joined([small])[0], cpus=1), *joined(good)]
    world.report([gang], nodes)
    world.look()
    before = rest(world)
    assert before.code == "NodeTooSmall"
    world.clock.advance(world.of.timings.given_up_s - 50)
    world.report([gang], nodes)
    world.look()

    assert not world.compute.everything[late].is_alive
    assert rest(world) == before
    assert len(world.compute.everything) == 5
