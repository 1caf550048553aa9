"""The deployed template drives its own functions, under its own roles."""

from datetime import timedelta

from tests import make
from tests.stack import story
from tests.stack.world import EVENING, NEXT_MORNING
from tidegate.core.model.orders import OrderKind


def test_every_resource_of_the_template_is_deployed(world):
    assert world.deployment.resources_deployed == world.deployment.resources_in_template > 80


def test_a_waiting_job_becomes_a_node_and_an_idle_node_ends(world):
    nodes = story.buy(world)
    assert len(nodes) == 1

    story.let_go(world, nodes)

    assert world.nodes() == []
    assert world.trouble() == []


def test_the_head_may_ask_for_verdicts_before_there_are_any(world):
    assert world.decisions.newest() is None

    story.buy(world)

    found = world.decisions.newest()
    assert found
    assert found.jobs
    assert "tidegate_jobs_waiting" in {each.name for each in found.samples}, "for Prometheus"
    assert world.trouble() == []


def test_a_notice_drains_the_node_and_the_job_gets_another_one(world):
    (node,) = story.buy(world)
    running = make.job(1, on=[node])
    world.report([running], [make.node(node, gpus_alloc=1, state="MIXED")])

    story.warn(world, node)

    drained = [order for order in world.orders() if order.kind is OrderKind.DRAIN]
    assert {order.names for order in drained} == {(node,)}
    world.report([make.job(1)], [make.node(node, state="IDLE+DRAIN")])
    assert len(set(world.nodes()) - {node}) == 1
    assert world.trouble() == []


def test_the_evening_stops_nodes_then_head_and_the_morning_starts_it(world):
    (node,) = story.buy(world)
    world.report(nodes=[make.node(node, idle_s=1)])

    world.router.advance_to(EVENING)
    assert world.head_state() == "running", "it waits for its node"
    story.let_go(world, [node])
    assert world.nodes() == []
    world.report([make.job(2)])
    assert world.nodes() == []
    assert "stopped until Tue 27 Nov 20:30" in world.looks()[-1]["unmet"]["2"]
    world.router.advance_to(EVENING + timedelta(minutes=15))
    assert world.head_state() == "stopped"

    world.router.advance_to(NEXT_MORNING)
    assert world.head_state() == "running"
    world.report([make.job(2)])
    assert len(world.nodes()) == 1
    assert world.trouble() == []


def test_an_unreadable_body_is_put_aside_and_the_look_happens(world):
    story.unreadable(world)

    assert len(world.looks()) >= 1
    assert sorted(body[:8] for body in world.dead_letters("DeadLooks"))[0] == "not JSON"
    assert world.trouble() == []


def test_an_unknown_event_of_the_default_bus_harms_nothing(world):
    world.put("aws.ec2", "EC2 Spot Instance Interruption Warning", {"instance-id": 7})
    (node,) = story.buy(world)
    story.warn(world, node)

    assert any(order.kind is OrderKind.DRAIN for order in world.orders())


def test_the_same_digest_event_twice_is_one_look_and_ours_are_never_dropped(world):
    world.report()
    event = {"head": "i-1", "sequence": 1}
    before = len(world.looks())
    for _ in range(3):
        world.report()
    assert len(world.looks()) == before + 3

    sqs = world.cloud.observer("sqs")
    for _ in range(2):
        body = f'{{"look": "test", "id": "{event["head"]}", "at": "now"}}'
        sqs.send_message(
            QueueUrl=world.queue_url("QueuesLooks"), MessageBody=body, MessageGroupId="stacked"
        )
        world.router.settle()
    assert len(world.looks()) == before + 4


def test_everything_delivered_twice_buys_once(world):
    world.router.delivery.repeat = world.router.poller.repeat = 2
    nodes = story.buy(world)

    assert len(nodes) == 1
