"""Jobs that must have ended by a time, in the whole loop; and what their check thinks of plans."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool
from tests.sim.test_checks import witness
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.plan import Unmet
from tidegate.core.model.slurm import Shape
from tidegate.core.model.why import Why, WhyNot
from tidegate.service.control import Looked
from tidegate.sim.checks.deadlines import LOOKS_S, DeadlinesHeeded
from tidegate.sim.checks.witness import Broken, Checks
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.due import due_by_s
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

LIMIT_S = 600.0
SPOT, ON_DEMAND = (Offering(T4.name, ZONE, m) for m in (Market.SPOT, Market.ON_DEMAND))
BOOT_S = cluster().pools[0].boot_s
# What a job that writes no checkpoint needs for one interruption.
NET_S = 2 * BOOT_S + LIMIT_S + LOOKS_S


def until(spare_s: float) -> Submit:
    due = f"tidegate:deadline={START_S + LIMIT_S + spare_s:.0f}"
    shape = Shape(1, "t4", 1, 1000)
    return Submit("ada", shape, LIMIT_S - 60, time_limit_s=LIMIT_S, comment=due)


def played(submit: Submit, *, has_spot: bool) -> tuple[SimWorld, list[Looked], str]:
    seen: list[Looked] = []
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0, seen.append)
    Checks(witness(world), (DeadlinesHeeded,)).install()
    if not has_spot:
        world.compute.shortages[SPOT] = 0
    job_id = world.slurm.submit(submit)
    return world, seen, job_id


@pytest.mark.parametrize(
    ("spare_s", "has_spot", "market", "waits"),
    [
        (NET_S + 1800, True, Market.SPOT, False),
        (NET_S + 1800, False, Market.ON_DEMAND, True),
        (NET_S - 60, True, Market.ON_DEMAND, False),
    ],
)
def test_a_job_is_given_what_its_deadline_leaves_time_for_and_ends_before_it(
    spare_s: float, has_spot: bool, market: Market, waits: bool
) -> None:
    submit = until(spare_s)
    world, _, job_id = played(submit, has_spot=has_spot)

    world.step(LIMIT_S + spare_s + 300)

    (bought,) = world.compute.everything.values()
    job = world.slurm.jobs[job_id]
    assert bought.offering.market is market
    assert (bought.launched_at_s - START_S > 900) is waits
    assert job.state == "COMPLETED"
    assert job.ended_at_s < (due_by_s(submit.comment) or 0.0)


def test_nothing_comes_for_a_job_that_is_too_late_for_any_node() -> None:
    world, seen, job_id = played(until(BOOT_S - 30), has_spot=True)

    world.step(1200)

    assert not world.compute.everything
    (unmet,) = seen[-1].rounds[-1].plan.unmet
    assert (unmet.job_id, [why.kind for why in unmet.why_nots]) == (job_id, [Why.DEADLINE])


@pytest.mark.parametrize(("spare_s", "is_right"), [(NET_S + 60, True), (NET_S - 60, False)])
def test_who_waits_for_spot_with_too_little_time_is_found(spare_s: float, is_right: bool) -> None:
    world, seen, job_id = played(until(NET_S + 1800), has_spot=False)
    world.step(60)
    (done,) = seen[-1].rounds[-1:]
    digest = done.snapshot.digest
    assert digest is not None
    (job,) = digest.reading.jobs
    due = f"tidegate:deadline={done.snapshot.now_s + LIMIT_S + spare_s:.0f}"
    reading = replace(digest.reading, jobs=(replace(job, comment=due),))
    snapshot = replace(done.snapshot, digest=replace(digest, reading=reading))
    waits = Unmet(job_id, "it waits for spot", (WhyNot(Why.SPARE_TIME, "it waits for spot"),))
    found = replace(done, snapshot=snapshot, plan=replace(done.plan, unmet=(waits,)))

    check = DeadlinesHeeded(witness(world))

    if is_right:
        check.looked(Looked([found]))
    else:
        with pytest.raises(Broken, match="s to spare"):
            check.looked(Looked([found]))


@pytest.mark.parametrize(("spare_s", "found"), [(BOOT_S - 30, "too late"), (NET_S - 60, "is spot")])
def test_a_purchase_that_a_deadline_forbids_is_found(spare_s: float, found: str) -> None:
    """The planner knows of no deadline here; the check reads it from the queue."""
    submit = until(spare_s)
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    check = DeadlinesHeeded(seen := witness(world))
    world.compute.on_request.append(check.requested)
    world.ledger.on_view.append(lambda view: seen.views.update({seen.depth: view}))

    def note(digest: Digest) -> None:
        jobs = tuple(replace(job, comment=submit.comment) for job in digest.reading.jobs)
        told = replace(digest, reading=replace(digest.reading, jobs=jobs))
        seen.digests[seen.depth] = told

    world.bus.on_digest.append(note)
    world.slurm.submit(replace(submit, comment=""))

    with pytest.raises(Broken, match=found):
        world.step(120)


def test_some_worlds_have_jobs_with_deadlines_with_and_without_time() -> None:
    worlds = [draw(seed) for seed in range(40)]
    dues = [
        (due_s - START_S - each.at_s - (each.submit.time_limit_s or 0.0))
        for world in worlds
        for each in world.arrivals
        if (due_s := due_by_s(each.submit.comment)) is not None
    ]

    assert any(spare_s < BOOT_S for spare_s in dues)
    assert any(spare_s > NET_S for spare_s in dues)
    assert sum(any(due_by_s(e.submit.comment) for e in w.arrivals) for w in worlds) < 20
