"""What the check of double purchases makes of launches in doubt, and of what a planner knew."""

from dataclasses import replace

import pytest

from tests.make import A10G, T4, cluster, digest, job, node, offering, pool, record
from tests.sim.test_excuses import first_node
from tidegate.core.model.ledger import LaunchStatus, Phase
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.buying import NoDoubleBuy
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.sickness import GPU_FAILED
from tidegate.sim.world import SimWorld


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_a_plan_does_not_know_what_a_launch_brings_that_it_finishes(is_in_doubt: bool) -> None:
    """Its first offering would not have done for the job that something is bought for."""
    world = SimWorld(cluster(pool(types=(T4, A10G))), lambda instance: 60.0)
    (one,) = world.compute.create_fleet(first_node(world)).instances
    launches, both = world.ledger.all_launches, (offering(A10G), offering(T4))
    kept = replace(launches["l-0"], launch=replace(launches["l-0"].launch, offerings=both))
    world.clock.advance(50.0)
    asked = first_node(world)
    mine = replace(launches["l-1"], launch=replace(launches["l-1"].launch, for_jobs=("4",)))
    launches |= {"l-0": replace(kept, status=LaunchStatus.DONE), "l-1": mine}
    booting = record(one.instance_id, phase=Phase.LAUNCHED)
    world.ledger.all_nodes[one.instance_id] = replace(booting, launch_id="l-0")
    seen = Witness(world, Chaos(draw(0), world))
    seen.digests[0] = digest([job(4)], [])
    seen.views[0] = replace(world.ledger.view(), launches=(kept,) if is_in_doubt else ())

    if is_in_doubt:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(asked)


@pytest.mark.parametrize("waits_too", [False, True])
def test_a_node_in_doubt_may_be_for_a_job_that_part_of_its_offerings_do_for(
    waits_too: bool,
) -> None:
    """Beside it a node is bought for a job that any of them would have done for."""
    world = SimWorld(cluster(pool(types=(T4, A10G))), lambda instance: 60.0)
    world.compute.create_fleet(first_node(world))
    launches, both = world.ledger.all_launches, (offering(A10G), offering(T4))
    kept = replace(launches["l-0"], launch=replace(launches["l-0"].launch, offerings=both))
    world.clock.advance(50.0)
    asked = first_node(world)
    mine = replace(launches["l-1"], launch=replace(launches["l-1"].launch, for_jobs=("4",)))
    launches |= {"l-0": kept, "l-1": mine}
    seen = Witness(world, Chaos(draw(0), world))
    waiting = [job(4, gpu_type=""), *([job(5)] if waits_too else [])]
    seen.digests[0] = digest(waiting, [])

    if waits_too:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(asked)


@pytest.mark.parametrize("has_ended", [False, True])
def test_what_has_ended_of_a_launch_in_doubt_boots_no_more(has_ended: bool) -> None:
    """EC2 gives no other node under its token."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    (one,) = world.compute.create_fleet(first_node(world)).instances
    world.clock.advance(50.0)
    asked = first_node(world)
    launches = world.ledger.all_launches
    mine = replace(launches["l-1"], launch=replace(launches["l-1"].launch, for_jobs=("4",)))
    world.ledger.all_launches |= {"l-1": mine}
    seen = Witness(world, Chaos(draw(0), world))
    seen.digests[0] = digest([job(4)], [])
    if has_ended:
        world.compute.end(one.instance_id)

    if has_ended:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(asked)


@pytest.mark.parametrize("had_failed", [True, False])
def test_a_node_that_had_failed_when_the_queue_was_read_is_replaced_though_its_job_ended(
    had_failed: bool,
) -> None:
    """The planner stands still meanwhile: the job ends, and its node leaves Slurm."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    one, two = (world.compute.create_fleet(first_node(world)).instances[0] for _ in range(2))
    asked = first_node(world)
    mine = replace(world.ledger.all_launches["l-2"].launch, for_jobs=("4",), gated_for="4")
    world.ledger.all_launches["l-2"] = replace(world.ledger.all_launches["l-2"], launch=mine)
    names, xid = [one.instance_id, two.instance_id], GPU_FAILED
    state, reason = ("ALLOCATED+DRAIN", xid) if had_failed else ("ALLOCATED", "")
    seen = Witness(world, Chaos(draw(0), world))
    shown = [node(names[0], state=state, reason=reason), node(names[1], state="ALLOCATED")]
    seen.digests[0] = digest([job(4, nodes=2, on=names)], shown)

    if had_failed:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 1 nodes that boot, 0 are waited for"):
            NoDoubleBuy(seen).requested(asked)


@pytest.mark.parametrize("is_later", [True, False])
def test_of_plans_of_one_moment_the_later_one_has_to_reckon_with_the_other(is_later: bool) -> None:
    """A planner that was slow to ask EC2 doubles nothing that was planned after its own plan."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    requests = [first_node(world), first_node(world)]
    asked, other = reversed(requests) if is_later else requests
    world.compute.create_fleet(other)
    launches = world.ledger.all_launches
    mine = {n: replace(launches[n].launch, for_jobs=("4",)) for n in ("l-0", "l-1")}
    world.ledger.all_launches |= {n: replace(launches[n], launch=mine[n]) for n in mine}
    seen = Witness(world, Chaos(draw(0), world))
    seen.digests[0] = digest([job(4)], [])

    if not is_later:
        NoDoubleBuy(seen).requested(asked)
    else:
        with pytest.raises(Broken, match="makes 2 nodes that boot, 1 are waited for"):
            NoDoubleBuy(seen).requested(asked)
