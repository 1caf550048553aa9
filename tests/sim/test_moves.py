"""Jobs that are moved to spot, in the whole loop; and what their checks think of it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool
from tests.sim.test_checks import witness
from tests.sim.test_excuses import StoppedUntil
from tidegate.core.model.ec2 import InstanceState, Market, Offering
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Send
from tidegate.core.model.slurm import Reading, Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.service.control import Looked
from tidegate.sim.checks.ending import RequeuedOnlyForAReason
from tidegate.sim.checks.moves import MovesLeadToSpot, NotBackAndForth
from tidegate.sim.checks.witness import Broken, Checks
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.due import due_by_s
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

WORK_S = 2 * 3600.0
SAYS = "tidegate:ckpt=USR1@20 tidegate:progress=/shared/ada/progress tidegate:move"
SPOT = Offering(T4.name, ZONE, Market.SPOT)
CHECKS = (MovesLeadToSpot, NotBackAndForth, RequeuedOnlyForAReason)


def begun(says: str = SAYS) -> tuple[SimWorld, list[Looked], SimJob]:
    """Spot is short, and the job has too little time to wait for it."""
    seen: list[Looked] = []
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0, seen.append)
    world.compute.shortages[SPOT] = 0
    limit_s = WORK_S + 300
    due = f"tidegate:deadline={START_S + limit_s + 1500:.0f}"
    submit = Submit(
        "ada", Shape(1, "t4", 1, 1000), WORK_S, time_limit_s=limit_s, comment=f"{says} {due}"
    )
    return world, seen, world.slurm.jobs[world.slurm.submit(submit)]


def markets(world: SimWorld) -> list[tuple[Market, bool]]:
    """What was bought, and whether it is still there."""
    every = world.compute.everything.values()
    return [(one.offering.market, one.state is InstanceState.RUNNING) for one in every]


def played(world: SimWorld) -> None:
    """Spot comes back after ten minutes."""
    world.step(600)
    del world.compute.shortages[SPOT]
    world.step(2400)


def test_a_job_goes_back_to_spot_and_ends_before_its_deadline() -> None:
    world, _, job = begun()
    Checks(witness(world), CHECKS).install()

    played(world)

    assert markets(world) == [(Market.ON_DEMAND, False), (Market.SPOT, True)]
    assert (job.requeues, job.signals) == (1, ["USR1"])
    world.step(WORK_S)
    assert job.state == "COMPLETED"
    assert job.requeues == 1
    assert job.ended_at_s < (due_by_s(job.submit.comment) or 0.0)


@pytest.mark.parametrize("missing", SAYS.split())
def test_without_one_of_its_words_it_stays(missing: str) -> None:
    world, _, job = begun(SAYS.replace(missing, ""))
    Checks(witness(world), CHECKS).install()

    played(world)

    assert markets(world) == [(Market.ON_DEMAND, True)]
    assert job.requeues == 0


def test_the_head_is_told_of_a_move_a_few_times_only() -> None:
    """Each of its answers makes a digest, and that a look."""
    world, seen, _ = begun()

    played(world)

    sent = [
        each.order.kind
        for looked in seen
        for done in looked.rounds
        for each in done.plan.actions
        if isinstance(each, Send)
    ]
    assert sent.count(OrderKind.REQUEUE) <= 3
    assert sent.count(OrderKind.SIGNAL) <= 3


def requeueing(seen: list[Looked]) -> Looked:
    """The look that had the job requeued."""
    return next(
        looked
        for looked in seen
        for done in looked.rounds
        for each in done.plan.actions
        if isinstance(each, Send) and each.order.kind is OrderKind.REQUEUE
    )


def without_spot(seen: Snapshot) -> Snapshot:
    assert seen.digest is not None
    nodes = tuple(each for each in seen.digest.reading.nodes if "spot" not in each.features)
    return replace(seen, digest=replace(seen.digest, reading=_with(seen, nodes=nodes)))


def without_words(seen: Snapshot) -> Snapshot:
    assert seen.digest is not None
    jobs = tuple(replace(each, progress=None) for each in seen.digest.reading.jobs)
    return replace(seen, digest=replace(seen.digest, reading=_with(seen, jobs=jobs)))


def too_late(seen: Snapshot) -> Snapshot:
    return replace(seen, now_s=seen.now_s + 1800)


def _with(seen: Snapshot, **parts: object) -> Reading:
    return replace(seen.heard.reading, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (without_spot, "0 spot nodes wait for it"),
        (without_words, "is moved, it says"),
        (too_late, "s to spare"),
    ],
)
def test_a_move_that_should_not_be_is_found(
    spoil: Callable[[Snapshot], Snapshot], found: str
) -> None:
    world, seen, _ = begun()
    played(world)
    looked, check = requeueing(seen), MovesLeadToSpot(witness(world))
    (done,) = looked.rounds[-1:]

    check.looked(looked)
    with pytest.raises(Broken, match=found):
        check.looked(Looked([replace(done, snapshot=spoil(done.snapshot))]))


def moving() -> tuple[SimWorld, SimJob]:
    """The job's node is closed, and it has not been requeued yet."""
    world, _, job = begun()
    world.step(600)
    del world.compute.shortages[SPOT]
    while not any("consolidatable" in node.reason for node in world.slurm.nodes.values()):
        world.step(1)
    return world, job


def test_who_is_moved_twice_at_once_is_found() -> None:
    world, job = moving()
    check = NotBackAndForth(witness(world))

    check.commanded("requeue", (job.job_id,))
    check.commanded("requeue", (job.job_id,))  # Slurm was silent the first time
    job.starts += 1

    with pytest.raises(Broken, match="is moved again after 0 s"):
        check.commanded("requeue", (job.job_id,))


def test_who_was_moved_and_is_late_is_found() -> None:
    world, job = moving()
    check = NotBackAndForth(witness(world))
    check.commanded("requeue", (job.job_id,))
    check.passed(1.0)

    job.submit = replace(job.submit, comment=f"{SAYS} tidegate:deadline={START_S:.0f}")

    with pytest.raises(Broken, match="after its deadline"):
        check.passed(1.0)


def test_who_was_moved_before_the_cluster_was_stopped_may_be_late() -> None:
    world, job = moving()
    check = NotBackAndForth(witness(world))
    check.commanded("requeue", (job.job_id,))

    world.calendar = StoppedUntil(world.clock.now_s() + 10.0)  # type: ignore[assignment]
    check.passed(1.0)
    job.submit = replace(job.submit, comment=f"{SAYS} tidegate:deadline={START_S:.0f}")
    check.passed(1.0)

    assert check.moved_s == {}


def test_who_did_not_say_so_and_is_requeued_from_a_closed_node_is_found() -> None:
    world, job = moving()
    check = RequeuedOnlyForAReason(witness(world))
    check.commanded("requeue", (job.job_id,))

    job.starts += 1
    job.submit = replace(job.submit, comment=job.submit.comment.replace("tidegate:move", ""))

    with pytest.raises(Broken, match="whose nodes are all well"):
        check.commanded("requeue", (job.job_id,))


def test_some_worlds_have_jobs_that_say_that_they_may_be_moved_and_others_that_do_not() -> None:
    worlds = [[each.submit.comment for each in draw(seed).arrivals] for seed in range(60)]
    telling = [c for of in worlds for c in of if "tidegate:progress=" in c]

    assert any("tidegate:move" in each for each in telling)
    assert any("tidegate:move" not in each for each in telling)
    assert sum(any("tidegate:move" in each for each in of) for of in worlds) < 15
