"""What checks think of an order that is carried out when something has changed since."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool, record
from tests.sim.test_excuses import a_gang_of_two, first_node, promising, witnessed
from tests.sim.test_rolls import deploy
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market, Template
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.offers.reservations import BLOCK_DRAIN_S
from tidegate.service.control import Looked
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.ending import RequeuedOnlyForAReason
from tidegate.sim.checks.leaving import OldNodesGo
from tidegate.sim.checks.orders import GangsWhole, HoldsKept
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import SimNode
from tidegate.sim.slurm_table import SILENT_S
from tidegate.sim.world import SimWorld


def template(digest: str) -> Template:
    return Template("lt-t4", "2", digest)


@pytest.mark.parametrize("has_joined", [True, False])
def test_a_template_that_comes_after_the_decision_asks_for_no_proof(has_joined: bool) -> None:
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    witness = Witness(world, Chaos(draw(0), world))
    check = OldNodesGo(witness)
    (old,) = world.compute.create_fleet(first_node(world)).instances
    deploy(world, template("two-2" if has_joined else "two-3"))
    check.joined(SimNode(old.instance_id, 4, 16000, 1, "t4", ("t4",)))
    reason = str(DrainReason(DrainCode.DRIFTED, "made from another template"))
    order = Order("e-1-o0", OrderKind.DRAIN, (old.instance_id,), 1e12, text=reason)
    world.actors.append("planner")
    check.begun()
    check.sent(order)
    world.actors.pop()

    deploy(world, template("three-3"))
    world.in_hand.append(((order,), 0.0))

    if has_joined:
        check.commanded("drain", order.names)
    else:
        with pytest.raises(Broken, match="before a node of its pool's new template"):
            check.commanded("drain", order.names)


@pytest.mark.parametrize(
    ("priority", "is_sent", "is_fair"), [(9, True, True), (8, True, False), (9, False, False)]
)
def test_a_gang_that_was_opened_and_lost_a_node_to_one_as_important_is_closed_in_vain(
    priority: int, is_sent: bool, is_fair: bool
) -> None:
    world, seen = witnessed()
    check = GangsWhole(seen)
    lesser, other, kept = a_gang_of_two(world, check)
    (bought,) = lesser.node_names
    gang = world.ledger.all_nodes[bought].gated_for
    check.commanded("undrain", (bought, kept))

    other.submit = replace(other.submit, priority=priority)
    anew = promising(world, gang, bought)
    to_other = promising(world, other.job_id, kept).rounds[0].plan.served
    (done,) = anew.rounds
    check.looked(
        Looked([replace(done, plan=replace(done.plan, served=done.plan.served + to_other))])
    )
    if is_sent:
        until_s = world.clock.now_s() + 60.0
        check.sent(Order("e-2-o0", OrderKind.DRAIN, (bought,), until_s, text="kept"))

    if is_fair:
        check.started(lesser)
    else:
        with pytest.raises(Broken, match="which waits for gang"):
            check.started(lesser)


@pytest.mark.parametrize("missed_s", [5.0, -5.0])
def test_a_gang_that_was_opened_as_one_of_its_nodes_had_died_is_broken_up(missed_s: float) -> None:
    """Slurmctld misses the node for so long when the head writes what the plan sees."""
    world, seen = witnessed()
    check = GangsWhole(seen)
    lesser, _, mate = a_gang_of_two(world, check)
    (bought,) = lesser.node_names
    world.ledger.all_nodes[mate] = replace(
        record(mate), gated_for=world.ledger.all_nodes[bought].gated_for
    )
    check.commanded("undrain", (bought, mate))
    world.slurm.nodes[mate].died_at_s = check.seen_s - SILENT_S - missed_s

    if missed_s < 0:
        check.started(lesser)
    else:
        with pytest.raises(Broken, match="which waits for gang"):
            check.started(lesser)


@pytest.mark.parametrize("hit_in_run", [None, 0, 1, 2])
def test_a_run_whose_gpu_failed_is_requeued_for_a_reason_and_no_other_run(
    hit_in_run: int | None,
) -> None:
    """A person may have resumed the node by then: that mends no run that was hit."""
    world, seen = witnessed()
    check = RequeuedOnlyForAReason(seen)
    gang, _, _ = a_gang_of_two(world, GangsWhole(seen))
    gang.state, gang.starts = "RUNNING", 1
    if hit_in_run is not None:
        seen.chaos.gpu_faults[gang.job_id] = {hit_in_run: 0.0}

    if hit_in_run == 1:
        check.commanded("requeue", (gang.job_id,))
    else:
        with pytest.raises(Broken, match="whose nodes are all well"):
            check.commanded("requeue", (gang.job_id,))


@pytest.mark.parametrize("ends_in_s", [None, BLOCK_DRAIN_S + 60, BLOCK_DRAIN_S - 60])
def test_a_hold_lasts_until_the_capacity_block_of_its_node_ends(ends_in_s: float | None) -> None:
    world, seen = witnessed()
    check = HoldsKept(seen)
    _, _, name = a_gang_of_two(world, GangsWhole(seen))
    until_s = world.clock.now_s() + 86_400
    seen.chaos.held[name] = until_s
    world.slurm.drain([name], str(DrainReason(DrainCode.HELD, "held by ada", "ada", until_s)))
    if ends_in_s is not None:
        ends_at_s = world.clock.now_s() + ends_in_s
        block = Reservation("cr-1", T4.name, ZONE, 1, Market.CAPACITY_BLOCK, 0.0, ends_at_s)
        world.compute.prepaid.held[name] = block

    if ends_in_s == BLOCK_DRAIN_S - 60:
        check.commanded("delete", (name,))
    else:
        with pytest.raises(Broken, match="which a person holds"):
            check.commanded("delete", (name,))
