"""What checks allow for that drawn worlds seldom show, and that they allow for no more."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, digest, node, pool, record, snapshot
from tidegate.core.model.budgets import Disruption
from tidegate.core.model.calendar import ALWAYS_UP, ScheduleOverride, Wanted
from tidegate.core.model.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    TEMPLATE_TAG,
    FleetRequest,
    Market,
    Offering,
    Override,
)
from tidegate.core.model.events import HealthCategory, HealthNotice, News, SpotInterruption
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch, LaunchRecord, LaunchStatus
from tidegate.core.model.plan import Plan, Served
from tidegate.core.model.slurm import Shape
from tidegate.ports import Finished
from tidegate.service.control import Looked, Round
from tidegate.service.outcome import Outcome
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.ending import HeadGoesLast, LeftSlurmFirst
from tidegate.sim.checks.futile import FUTILE_MAX, NoFutileLaunches
from tidegate.sim.checks.hours import NothingWhileStopped
from tidegate.sim.checks.leaving import OldNodesGo, OneFirstNode
from tidegate.sim.checks.orders import GangsWhole
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit
from tidegate.sim.world import SimWorld

SPOT = Offering(T4.name, ZONE, Market.SPOT)
STOPPED = replace(ALWAYS_UP, is_up=False)


@frozen
class StoppedUntil:
    """A calendar with one stop."""

    end_s: float

    def wanted(self, now_s: float, overrides: tuple[ScheduleOverride, ...] = ()) -> Wanted:
        return STOPPED if now_s < self.end_s else ALWAYS_UP


def witnessed() -> tuple[SimWorld, Witness]:
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    return world, Witness(world, Chaos(draw(0), world))


def first_node(world: SimWorld) -> FleetRequest:
    """The request for a node of a new template, recorded."""
    name = f"l-{len(world.ledger.all_launches)}"
    tags = ((LAUNCH_TAG, name), (POOL_TAG, "t4"), (TEMPLATE_TAG, "two-2"))
    override = Override(T4.name, ZONE, "subnet", 0)
    asked = FleetRequest(name, "lt-t4", "2", Market.SPOT, 1, 1, (override,), tags)
    launch = Launch(name, "t4", (SPOT,), 1, 1, (), 0.2, "", "the first of its template")
    world.ledger.all_launches[name] = LaunchRecord(launch, world.clock.now_s(), asked)
    return asked


@pytest.mark.parametrize("what", ["boots", "is hinted at", "has joined"])
def test_a_first_node_is_one_no_more_when_it_is_to_be_left_or_has_joined(what: str) -> None:
    world, seen = witnessed()
    Checks(seen, ()).install()
    world.compute.create_fleet(first_node(world))
    (first,) = world.compute.live()
    world.step(10.0 if what != "has joined" else 70.0)
    if what == "is hinted at":
        seen.chaos.cordoned.add(first.instance_id)
    again = first_node(world)

    if what == "boots":
        with pytest.raises(Broken, match="is a first node already"):
            OneFirstNode(seen).requested(again)
    else:
        OneFirstNode(seen).requested(again)


def test_a_node_that_joins_and_is_deleted_in_one_moment_boots_no_longer() -> None:
    world, seen = witnessed()
    Checks(seen, ()).install()

    def leave(node: SimNode) -> None:
        world.slurm.delete([node.name])

    world.slurm.on_join.append(leave)
    world.compute.create_fleet(first_node(world))
    world.step(60.0)

    assert not world.slurm.nodes
    OneFirstNode(seen).requested(first_node(world))


@pytest.mark.parametrize("stands_still_s", [0.0, 20.0])
def test_a_planner_that_stood_still_until_a_stop_was_over_may_buy(stands_still_s: float) -> None:
    world, seen = witnessed()
    world.calendar = StoppedUntil(world.clock.now_s() + 10.0)  # type: ignore[assignment]
    Checks(seen, ()).install()
    world.actors.append("planner")
    view = world.ledger.view()
    world.clock.advance(stands_still_s)
    world.ledger.commit(view.epoch, ())
    asked = first_node(world)

    if stands_still_s:
        NothingWhileStopped(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="is stopped"):
            NothingWhileStopped(seen).requested(asked)


@pytest.mark.parametrize("stands_still_s", [0.0, 20.0])
def test_a_head_that_is_stopped_after_the_stop_is_over_may_have_nodes(
    stands_still_s: float,
) -> None:
    """Whoever stopped it stood still; it starts again with the next reconcile."""
    world, seen = witnessed()
    world.calendar = StoppedUntil(world.clock.now_s() + 10.0)  # type: ignore[assignment]
    check = HeadGoesLast(seen)
    world.compute.create_fleet(first_node(world))
    world.clock.advance(stands_still_s)
    world.head.num_stops += 1

    if stands_still_s:
        check.passed(1.0)
    else:
        with pytest.raises(Broken, match="still runs"):
            check.passed(1.0)


def test_an_old_node_that_a_person_held_may_get_a_job_as_they_open_it() -> None:
    expiring = replace(pool(types=(T4,)), disruption=Disruption(expire_after_s=100.0))
    world = SimWorld(cluster(expiring), lambda instance: 60.0)
    seen = Witness(world, Chaos(draw(0), world))
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(1000.0)
    check, job = OldNodesGo(seen), world.slurm.jobs[job_id]

    with pytest.raises(Broken, match="old, 100"):
        check.started(job)
    seen.chaos.touched.update(job.node_names)
    check.started(job)


@pytest.mark.parametrize("is_noticed", [False, True])
def test_a_warning_about_a_node_whose_end_was_announced_before_is_left_out(
    is_noticed: bool,
) -> None:
    """Its end is its notice's, and so is its drain (`DrainedInTime`)."""
    world, seen = witnessed()
    Checks(seen, ()).install()
    (one,) = world.compute.create_fleet(first_node(world)).instances
    world.ledger.finish_launches(Finished("l-0", LaunchStatus.DONE, (record(one.instance_id),)))
    notice = SpotInterruption(one.instance_id, world.clock.now_s() + 120.0)
    warning = HealthNotice((one.instance_id,), HealthCategory.ISSUE, "AWS_EC2_TROUBLE")

    batch: list[News] = [warning, notice] if is_noticed else [warning]
    for tell in (*world.on_news, *world.on_interrupted):
        tell(batch)

    assert set(seen.hinted) == (set() if is_noticed else {one.instance_id})


@pytest.mark.parametrize("joins", ["empty", "with a job", "before the digest"])
def test_only_an_empty_node_that_joined_since_the_digest_may_end_as_one_of_slurm(
    joins: str,
) -> None:
    """Its boot bound ended as it joined."""
    world, seen = witnessed()
    (one,) = world.compute.create_fleet(first_node(world)).instances
    name = one.instance_id
    world.slurm.register(SimNode(name, 4, 16000, 1, "t4", ("t4",)))
    if joins == "with a job":
        job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
        world.slurm.nodes[name].jobs[job_id] = world.slurm.jobs[job_id]
    shown = [node(name)] if joins == "before the digest" else []
    seen.digests[0] = digest([], shown)

    if joins == "empty":
        LeftSlurmFirst(seen).terminating((name,))
    else:
        with pytest.raises(Broken, match="it is a node of Slurm still"):
            LeftSlurmFirst(seen).terminating((name,))


def come_and_go(
    world: SimWorld, seen: Witness, check: NoFutileLaunches, job_id: str, *, gang: str = ""
) -> None:
    """A node that was bought for the job comes, and ends without a job. `gang`: another one of the
    launch was for it too, and AWS takes that.
    """
    (one,) = world.compute.create_fleet(first_node(world)).instances
    known = world.ledger.all_launches[one.launch_id]
    bought = replace(known.launch, for_jobs=(job_id,), gated_for=gang)
    if gang:
        taken = f"{one.instance_id}-taken"
        world.compute.everything[taken] = replace(one, instance_id=taken)
        seen.noticed[taken] = world.clock.now_s()
    world.ledger.all_launches[one.launch_id] = replace(known, launch=bought)
    seen.registered[one.instance_id] = world.clock.now_s()
    check.ended(one)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_nodes_that_a_stop_lets_go_of_are_no_loop(is_stopped: bool) -> None:
    world, seen = witnessed()
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    check = NoFutileLaunches(seen)
    if is_stopped:
        world.calendar = StoppedUntil(world.clock.now_s() + 10.0)  # type: ignore[assignment]

    for _ in range(FUTILE_MAX):
        come_and_go(world, seen, check, job_id)

    if is_stopped:
        come_and_go(world, seen, check, job_id)
    else:
        with pytest.raises(Broken, match=f"7 nodes came and went for job {job_id}"):
            come_and_go(world, seen, check, job_id)


@pytest.mark.parametrize("gpus", [0, 1])
def test_nodes_that_join_without_their_gpus_are_no_loop(gpus: int) -> None:
    world, seen = witnessed()
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    check = NoFutileLaunches(seen)
    for _ in range(FUTILE_MAX):
        come_and_go(world, seen, check, job_id)

    (one,) = world.compute.create_fleet(first_node(world)).instances
    check.joined(SimNode(one.instance_id, 4, 16000, gpus, "t4", ("t4",), 1))
    known = world.ledger.all_launches[one.launch_id]
    bought = replace(known.launch, for_jobs=(job_id,))
    world.ledger.all_launches[one.launch_id] = replace(known, launch=bought)
    seen.registered[one.instance_id] = world.clock.now_s()

    if gpus:
        with pytest.raises(Broken, match=f"7 nodes came and went for job {job_id}"):
            check.ended(one)
    else:
        check.ended(one)


def test_nodes_of_a_gang_of_which_aws_takes_another_are_no_loop() -> None:
    """They were of no use without it."""
    world, seen = witnessed()
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    check = NoFutileLaunches(seen)

    for _ in range(FUTILE_MAX + 1):
        come_and_go(world, seen, check, job_id, gang=job_id)

    for _ in range(FUTILE_MAX):
        come_and_go(world, seen, check, job_id)
    with pytest.raises(Broken, match=f"7 nodes came and went for job {job_id}"):
        come_and_go(world, seen, check, job_id)


def test_more_nodes_of_one_launch_than_its_last_job_asks_for_are_no_loop() -> None:
    """Other jobs of the launch found places on nodes that others had left."""
    world, seen = witnessed()
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    check = NoFutileLaunches(seen)
    come_and_go(world, seen, check, job_id)
    (gone,) = world.compute.everything.values()

    for _ in range(FUTILE_MAX + 1):
        check.ended(gone)

    for _ in range(FUTILE_MAX - 1):
        come_and_go(world, seen, check, job_id)
    with pytest.raises(Broken, match=f"came and went for job {job_id}"):
        come_and_go(world, seen, check, job_id)


def test_components_that_start_together_have_as_many_futile_nodes_as_a_gang() -> None:
    """Others may take a place of one as it is opened, and the rest is bought again."""
    world, seen = witnessed()
    part = Submit("ada", Shape(1, "t4", 1, 1000), 3000.0)
    leader = world.slurm.submit(replace(part, beside=(part,)))
    first, second = world.slurm.table.active
    check = NoFutileLaunches(seen)

    for name in [first, second] * FUTILE_MAX:
        come_and_go(world, seen, check, name)

    with pytest.raises(Broken, match=f"13 nodes came and went for job {leader}"):
        come_and_go(world, seen, check, second)


def promising(world: SimWorld, gang: str, *names: str, ago_s: float = 0.0) -> Looked:
    """A look that began so long ago and has a gang count on these nodes."""
    began_s = world.clock.now_s() - ago_s
    snap = replace(snapshot(of=world.cluster, age_s=5.0), now_s=began_s)
    served = Plan((), (Served(gang, names, "nodes that fit are up"),), ())
    return Looked([Round(snap, served, Outcome())])


def a_gang_of_two(world: SimWorld, check: GangsWhole) -> tuple[SimJob, SimJob, str]:
    """A lesser job is about to start on the node that was bought for a gang, which counts on an
    open one as well; another job, and that node.
    """
    one = Submit("ada", Shape(1, "t4", 1, 1000), 60.0)
    gang = world.slurm.submit(replace(one, nodes=2, priority=9))
    lesser, other = (world.slurm.jobs[world.slurm.submit(one)] for _ in "12")
    names = [world.compute.create_fleet(first_node(world)).instances[0].instance_id for _ in "12"]
    for name in names:
        world.slurm.register(SimNode(name, 4, 16000, 1, "t4", ("t4",), 1))
    bought, kept = names
    world.ledger.all_nodes[bought] = replace(record(bought), gated_for=gang)
    check.looked(promising(world, gang, bought, kept))
    lesser.node_names = (bought,)
    return lesser, other, kept


@pytest.mark.parametrize(
    "excuse",
    [
        "",
        "a person",
        "a late job",
        "an early job",
        "an untold plan",
        "a told plan",
        "a wrong clock",
        "a newer plan",
    ],
)
def test_a_gang_that_lacks_an_open_node_leaves_its_own_to_others(excuse: str) -> None:
    """It is not at fault when somebody took the open one after the plan, or orders are dropped."""
    world, seen = witnessed()
    Checks(seen, ()).install()
    check = GangsWhole(seen)
    lesser, other, kept = a_gang_of_two(world, check)
    match excuse:
        case "a person":
            seen.chaos.touched.add(kept)
        case "a late job" | "an early job":
            other.started_at_s = world.clock.now_s() - (4.0 if excuse == "a late job" else 6.0)
            world.slurm.nodes[kept].jobs[other.job_id] = other
        case "an untold plan" | "a told plan":  # in the moment in which the one before was told
            for tell in world.ledger.on_commit:
                tell(True)
            if excuse == "a told plan":
                check.looked(Looked())
        case "a wrong clock":
            seen.chaos.note("clock")
        case "a newer plan":
            (bought,) = lesser.node_names
            gang = world.ledger.all_nodes[bought].gated_for
            check.looked(promising(world, gang, kept))
            check.looked(promising(world, gang, bought, kept, ago_s=9.0))

    if excuse in ("", "an early job", "a told plan"):
        with pytest.raises(Broken, match="which waits for gang"):
            check.started(lesser)
    else:
        check.started(lesser)


def test_a_small_job_beside_a_gang_takes_no_promise_from_it() -> None:
    world, seen = witnessed()
    check = GangsWhole(seen)
    (done,) = promising(world, "7", "i-1", "i-2").rounds
    beside = Served("8", ("i-2",), "it has what the gang leaves")

    check.looked(
        Looked([replace(done, plan=replace(done.plan, served=(*done.plan.served, beside)))])
    )

    assert check.promised == {"i-1": "7", "i-2": "7"}
