"""The life of nodes as the deployed functions see it, step by step."""

import gzip
from collections.abc import Iterator
from datetime import timedelta

from local.stack_world import StackWorld
from tests import make
from tests.core.test_idle_gpus import idle
from tests.stack.world import EVENING, MORNING, NEXT_MORNING, STACK, WEEK
from tidegate.adapters.notices import told as told_of
from tidegate.adapters.reports import S3Reports
from tidegate.core.model.notice import MailEnd
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.wire.events import SPOT_DETAIL_TYPE

type Missing = Iterator[str]
"""What should have come of a chapter and did not; exhaust it, or the chapter stops half-way."""


def first_look(world: StackWorld) -> None:
    """Before the head has ever reported."""
    world.router.advance_to(MORNING + timedelta(minutes=6))


def buy(world: StackWorld, job_id: int = 1) -> list[str]:
    world.report([make.job(job_id)])
    return world.nodes()


def warn(world: StackWorld, instance_id: str) -> None:
    detail = {"instance-id": instance_id, "instance-action": "terminate"}
    world.put("aws.ec2", SPOT_DETAIL_TYPE, detail)


def let_go(world: StackWorld, names: list[str]) -> None:
    """The nodes stand idle, are released as ordered, and end."""
    world.report(nodes=[make.node(name, idle_s=9999) for name in names])
    released = [order for order in world.orders() if order.kind is OrderKind.RELEASE]
    results = [
        OrderResult(order.order_id, order.kind, name, OrderOutcome.DONE)
        for order in released
        for name in order.names
    ]
    world.report(results=results)


def unreadable(world: StackWorld) -> None:
    """Bodies that nobody can read, on both queues."""
    sqs = world.cloud.observer("sqs")
    sqs.send_message(
        QueueUrl=world.queue_url("QueuesLooks"), MessageBody="not JSON", MessageGroupId="x"
    )
    world.put("tidegate.agent", "Tidegate Digest", {"odd": 1}, bus=STACK)


def hand_in(world: StackWorld) -> None:
    """The head says that nobody ran in the week that is over."""
    world.hand_in(WEEK, gzip.compress(b""))


def opening(world: StackWorld) -> Missing:
    """Schedules fire before the head has ever reported."""
    first_look(world)
    if not world.looks():
        yield "no look"


def day(world: StackWorld) -> Missing:
    """A node is bought, reclaimed, replaced, and let go."""
    nodes = buy(world)
    if not nodes:
        yield "no node for a waiting job"
    for node in nodes:
        running = [make.job(1, on=[node])]
        world.report(running, [make.node(node, gpus_alloc=1, state="MIXED")])
        warn(world, node)
        if not any(order.kind is OrderKind.DRAIN for order in world.orders()):
            yield "no drain after a notice"
    let_go(world, world.nodes())
    let_go(world, world.nodes())
    if left := world.nodes():
        yield f"{len(left)} idle nodes stay"


def prices(world: StackWorld) -> Missing:
    """What the cluster file leaves open is read from EC2, on time."""
    seen = world.ledger().view().seen_market
    if not seen.spot:
        yield "no spot prices"
    if not seen.on_demand:
        yield "no on-demand prices"


def rubbish(world: StackWorld) -> Missing:
    unreadable(world)
    if not world.dead_letters("DeadLooks"):
        yield "an unreadable body is not put aside"


def told(world: StackWorld) -> Missing:
    """A job for which no pool has a node has waited for hours."""
    world.report([make.job(9, gpus=64, begins_at_s=make.NOW_S - 10 * 3600)])
    if not any(
        "people were told" in line for each in world.router.invocations for line in each.lines
    ):
        yield "nobody was told of a long wait"
    yield from mailed(world)
    world.report()


def mailed(world: StackWorld) -> Missing:
    """The GPUs of a job idle, and its owner hears of it."""
    ses = world.cloud.observer("ses")
    ses.verify_email_identity(EmailAddress="tidegate@example.org")
    put = world.cloud.observer("sesv2").put_suppressed_destination
    put(EmailAddress="ada@example.org", Reason="BOUNCE")
    before = ses.get_send_quota()["SentLast24Hours"]
    world.report([idle()], [make.node("i-9", state="MIXED+DYNAMIC_NORM", gpus_alloc=1)])
    world.look()
    if ses.get_send_quota()["SentLast24Hours"] == before:
        yield "no mail to the owner of idle GPUs"
    told = told_of(world.cloud.observer("dynamodb"), world.physical("AWS::DynamoDB::Table"))
    if MailEnd.SUPPRESSED not in {each.end for each in told.mails.values()}:
        yield "nobody noticed that SES sends nothing to the owner"


def reported(world: StackWorld) -> Missing:
    """What was handed in before the evening is a page by the next morning."""
    reports = S3Reports(
        world.cloud.observer("s3"), world.physical("AWS::S3::Bucket"), world.file.cluster.name
    )
    if reports.pages() != {WEEK: True}:
        yield "no page of the week that people were told of"


def night(world: StackWorld) -> Missing:
    """The evening's cron, a node that still has to go, and the next morning's cron."""
    nodes = buy(world, 2)
    world.router.advance_to(EVENING)
    let_go(world, nodes)
    world.router.advance_to(EVENING + timedelta(minutes=15))
    if (state := world.head_state()) != "stopped":
        yield f"the head is {state} in the evening"
    world.router.advance_to(NEXT_MORNING)
    if (state := world.head_state()) != "running":
        yield f"the head is {state} in the morning"


def whole(world: StackWorld) -> Missing:
    """Everything, so that each right of each function is used once."""
    yield from opening(world)
    yield from day(world)
    yield from rubbish(world)
    yield from told(world)
    hand_in(world)
    yield from night(world)
    yield from reported(world)
    yield from prices(world)
