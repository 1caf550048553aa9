"""What comes from outside and is wrong: old, malformed, foreign, failing."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, instance, job, node, record
from tests.service.conftest import World
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.errors import NotAuthorized, Throttled
from tidegate.core.model.events import SpotInterruption
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.offers.hazards import with_learnt


def test_an_older_digest_is_ignored(world: World) -> None:
    old = world.report([job(1), job(2)])
    world.report([])
    world.look()
    world.bus.put_digest(old)

    looked = world.look()

    assert world.compute.live() == ()
    assert "ignored digest 1" in looked.rounds[0].notes[0]


def test_a_restarted_agent_starts_a_new_sequence(world: World) -> None:
    first = world.report([])
    world.look()
    restarted = Stamp("i-head", first.stamp.agent_started_at_s + 50, 0)
    world.bus.put_digest(Digest("test", restarted, NOW_S, world.report([job(1)]).reading))

    world.look()

    assert len(world.compute.live()) == 1


def test_a_malformed_digest_is_dropped_and_said(world: World) -> None:
    world.report([job(1)])
    world.bus.spoil_digest()

    looked = world.look()

    assert "cannot be read" in looked.rounds[0].notes[0]
    assert looked.trouble == ""


def test_a_look_never_fails_for_trouble_outside(world: World) -> None:
    world.report([job(1)])

    def throttle(point: str) -> None:
        if point == "before instances":
            raise Throttled("slow down")

    world.break_with(throttle)

    assert world.look().trouble == "Throttled: slow down"


def running_world() -> World:
    """Two nodes that run one job each; job 7 asked for a checkpoint signal."""
    world = World()
    now_s = world.clock.now_s()
    for name in ("i-1", "i-2"):
        world.compute.put(replace(instance(name), launched_at_s=now_s - 100))
        world.ledger.all_nodes[name] = record(name)
    world.report(
        [
            job(7, on=["i-1"], comment="tidegate:ckpt=USR1@20"),
            job(8, on=["i-2"]),
            job(9, on=["i-2"], is_requeueable=False),
        ],
        [node(name, state="MIXED", gpus_alloc=1) for name in ("i-1", "i-2")],
    )
    return world


def test_a_notice_drains_signals_and_requeues_in_time() -> None:
    world = running_world()
    at_s = world.clock.now_s()

    done = world.control().interrupt([SpotInterruption(name, at_s) for name in ("i-1", "i-2")])

    sent = {(o.kind, o.names): o for o in world.bus.orders}
    assert done.node_names == ("i-1", "i-2")
    assert sent[OrderKind.DRAIN, ("i-1", "i-2")].delay_s == 0
    assert sent[OrderKind.SIGNAL, ("7",)].text == "USR1"
    assert sent[OrderKind.REQUEUE, ("7",)].delay_s == 20
    assert sent[OrderKind.REQUEUE, ("8",)].delay_s == 95
    assert (OrderKind.REQUEUE, ("9",)) not in sent
    assert world.ledger.all_nodes["i-1"].phase is Phase.INTERRUPTED
    assert world.bus.take_looks()[-1] == "EC2 or AWS Health takes nodes away"


def test_a_job_that_starts_as_the_notice_comes_is_saved_by_the_next_look() -> None:
    world = running_world()
    late = job(11, on=["i-1"], comment="tidegate:ckpt=USR1@20")
    world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])
    world.report([late], [node("i-1", state="MIXED+DRAIN", gpus_alloc=1)])
    world.bus.orders.clear()

    world.look()

    sent = {(o.kind, o.names): o.delay_s for o in world.bus.orders}
    assert sent[OrderKind.SIGNAL, ("11",)] == 0
    assert sent[OrderKind.REQUEUE, ("11",)] == 20


def test_the_replacement_is_bought_elsewhere_before_the_node_dies() -> None:
    world = running_world()
    world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])

    world.look()

    new = [one for one in world.compute.live() if one.instance_id not in ("i-1", "i-2")]
    assert len(new) == 1
    assert new[0].offering != world.ledger.all_nodes["i-1"].offering


def test_the_next_snapshot_knows_the_hazard_of_what_ec2_took_back() -> None:
    world = running_world()
    taken = world.ledger.all_nodes["i-1"].offering
    world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])

    snapshot = world.look().rounds[0].snapshot
    pool_history = with_learnt(snapshot.cluster, snapshot.resting)
    assert [each.hazard_per_hour(taken) for each in (snapshot.cluster, pool_history)] == [0.05, 1.0]


def test_a_repeated_notice_repeats_the_same_orders() -> None:
    world = running_world()
    notice = SpotInterruption("i-1", world.clock.now_s())
    world.control().interrupt([notice])
    first = {order.order_id for order in world.bus.orders}

    world.control().interrupt([notice])

    assert {order.order_id for order in world.bus.orders} == first


def test_a_notice_for_a_foreign_instance_is_counted_and_left_alone() -> None:
    world = running_world()

    done = world.control().interrupt([SpotInterruption("i-other", world.clock.now_s())])

    assert (done.node_names, done.foreign) == ((), 1)
    assert world.bus.orders == []


@pytest.mark.parametrize("trouble", [NotAuthorized("no s3:GetObject"), Throttled("slow down")])
def test_a_digest_that_may_not_be_read_delays_no_drain(trouble: Exception) -> None:
    world = running_world()

    def refuse(point: str) -> None:
        if point == "before newest_digest":
            raise trouble

    world.break_with(refuse)
    done = world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])

    assert [order.kind for order in world.bus.orders] == [OrderKind.DRAIN]
    assert world.ledger.all_nodes["i-1"].phase is Phase.INTERRUPTED
    assert str(trouble) in done.trouble
    assert world.bus.take_looks()[-1] == "EC2 or AWS Health takes nodes away"


def test_the_drain_is_on_its_way_before_the_digest_is_read() -> None:
    world = running_world()
    seen: list[str] = []
    world.break_with(seen.append)

    world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])

    assert seen.index("after send_orders") < seen.index("before newest_digest")


def test_an_order_to_an_adopted_node_is_remembered() -> None:
    world = World()
    launched_at_s = world.clock.now_s() - 2000
    world.compute.put(replace(instance("i-1"), launched_at_s=launched_at_s))
    idle = replace(node("i-1"), last_busy_at_s=0.0)
    for _ in range(3):
        world.clock.advance(1.0)
        world.report([], [idle])
        world.look()

    assert [order.kind for order in world.bus.orders] == [OrderKind.RELEASE]


def test_an_instance_that_ec2_does_not_show_is_ended_and_not_counted_as_ended(
    world: World,
) -> None:
    known = replace(record(phase=Phase.JOINED), launched_at_s=world.clock.now_s() - 100)
    world.ledger.all_nodes["i-1"] = known
    world.report()

    looked = world.look()

    assert world.compute.terminated == [("i-1",)]
    assert looked.rounds[0].outcome.ended == []
