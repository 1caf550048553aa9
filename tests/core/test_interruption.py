"""Which orders save the jobs on nodes that EC2 reclaims: few, complete, the same when repeated."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, digest, job, offering, record
from tidegate.core.interruption.save import (
    NAMES_MAX,
    Checkpoint,
    InterruptionNotice,
    after_loss,
    checkpoint,
    orders_for,
    reclaim_at_s,
    saves,
)
from tidegate.core.model.cluster import Timings
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.resting import TAKEN_BACK, Resting
from tidegate.core.model.slurm import Job, Reading
from tidegate.core.offers.hazards import learnt_hazards
from tidegate.wire.orders import encode_order

RECLAIM_AT_S = NOW_S + 120
TIMINGS = Timings()
SQS_BYTES_MAX = 256 * 1024


def reading(*jobs: Job) -> Reading:
    return digest(jobs).reading


def notices(*names: str, reclaim_at_s: float = RECLAIM_AT_S) -> list[InterruptionNotice]:
    return [InterruptionNotice(name, reclaim_at_s) for name in names]


GOING = DrainReason(DrainCode.RECLAIM, "EC2 reclaims it")


def of(kind: OrderKind, orders: tuple[Order, ...]) -> list[Order]:
    return [order for order in orders if order.kind is kind]


def storm(count: int) -> tuple[Order, ...]:
    """Orders for so many nodes with a job each that wants USR1 and 20 s."""
    names = [f"i-{number:017x}" for number in range(count)]
    jobs = [job(n, on=[name], comment="tidegate:ckpt=USR1@20") for n, name in enumerate(names)]
    of_nodes = orders_for(notices(*names), GOING, NOW_S, TIMINGS)
    return (*of_nodes, *saves(notices(*names), reading(*jobs), NOW_S, TIMINGS))


def test_a_batch_is_one_order_of_each_kind() -> None:
    made = storm(NAMES_MAX)

    assert [order.kind for order in made] == [
        OrderKind.DRAIN,
        OrderKind.SIGNAL,
        OrderKind.REQUEUE,
    ]
    assert all(len(order.names) == NAMES_MAX for order in made)


def test_no_order_is_larger_than_a_message_may_be_and_none_is_left_out() -> None:
    made = storm(2 * NAMES_MAX + 1)

    assert max(len(encode_order(order)) for order in made) < SQS_BYTES_MAX / 4
    for kind in (OrderKind.DRAIN, OrderKind.SIGNAL, OrderKind.REQUEUE):
        names = [name for order in of(kind, made) for name in order.names]
        assert len(names) == len(set(names)) == 2 * NAMES_MAX + 1


def test_jobs_are_signalled_by_signal_and_requeued_by_time() -> None:
    jobs = (
        job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20"),
        job(2, on=["i-2"], comment="tidegate:ckpt=USR2@20"),
        job(3, on=["i-3"], comment="tidegate:ckpt=USR1@60"),
        job(4, on=["i-4"]),
    )

    made = saves(notices("i-1", "i-2", "i-3", "i-4"), reading(*jobs), NOW_S, TIMINGS)

    signals = {order.text: order.names for order in of(OrderKind.SIGNAL, made)}
    requeues = {order.delay_s: order.names for order in of(OrderKind.REQUEUE, made)}
    assert signals == {"USR1": ("1", "3"), "USR2": ("2",)}
    assert requeues == {20: ("1", "2"), 60: ("3",), 95: ("4",)}


@pytest.mark.parametrize(
    ("comment", "signal"), [("tidegate:ckpt=B:USR1@20", ""), ("", "B:USR1@20")]
)
def test_the_first_component_asks_for_all_of_a_heterogeneous_job(comment: str, signal: str) -> None:
    """Its script is the only one, and all components leave their nodes when one does."""
    first = job(1, on=["i-1"], het_job_id="1", comment=comment, signal=signal)
    other = job(2, on=["i-2"], het_job_id="1", comment="tidegate:ckpt=USR2@60")

    made = saves(notices("i-2"), reading(first, other), NOW_S, TIMINGS)

    assert [(o.kind, o.names, o.text, o.delay_s) for o in made] == [
        (OrderKind.SIGNAL, ("2",), "B:USR1", 0),
        (OrderKind.REQUEUE, ("2",), made[1].text, 20),
    ]


@pytest.mark.parametrize(
    ("asked", "text"), [("B:USR1@20", "B:USR1"), ("USR1@20", "S:USR1"), ("nonsense", None)]
)
def test_what_a_script_asks_with_signal_is_honoured(asked: str, text: str | None) -> None:
    found = saves(notices("i-1"), reading(job(1, on=["i-1"], signal=asked)), NOW_S, TIMINGS)

    signals = [order.text for order in found if order.kind is OrderKind.SIGNAL]
    (requeue,) = [order for order in found if order.kind is OrderKind.REQUEUE]
    assert signals == ([text] if text else [])
    assert requeue.delay_s == (20 if text else 95)


def test_the_comment_says_it_before_the_script_does() -> None:
    both = job(1, on=["i-1"], signal="B:USR1@90", comment="tidegate:ckpt=USR2@5")

    assert checkpoint(both) == Checkpoint("USR2", 5.0)


@pytest.mark.parametrize("to", ["", "B:", "S:"])
def test_a_comment_may_say_whom_the_signal_is_for(to: str) -> None:
    asked = job(1, on=["i-1"], comment=f"mine, tidegate:ckpt={to}SIGUSR1@20")

    assert checkpoint(asked) == Checkpoint(f"{to}USR1", 20.0)


def test_a_grace_longer_than_the_notice_ends_25_seconds_before_the_reclaim() -> None:
    asked = job(1, on=["i-1"], comment="tidegate:ckpt=USR1@9999")

    made = saves(notices("i-1"), reading(asked), NOW_S, TIMINGS)

    assert [order.delay_s for order in of(OrderKind.REQUEUE, made)] == [95]


def test_a_job_that_may_not_be_requeued_is_signalled_and_left_to_run() -> None:
    asked = job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20", is_requeueable=False)

    made = saves(
        notices("i-1"), reading(asked, job(2, on=["i-1"], is_requeueable=False)), NOW_S, TIMINGS
    )

    assert [(order.kind, order.names) for order in made] == [(OrderKind.SIGNAL, ("1",))]


def test_a_gang_is_saved_in_time_for_the_first_of_its_nodes() -> None:
    gang = job(1, on=["i-1", "i-2", "i-3"], nodes=3)
    two = [InterruptionNotice("i-2", RECLAIM_AT_S), InterruptionNotice("i-1", NOW_S + 60)]

    (requeue,) = saves(two, reading(gang), NOW_S, TIMINGS)

    assert (requeue.delay_s, requeue.on_nodes) == (35, ("i-1", "i-2"))


def test_a_job_elsewhere_and_one_that_waits_are_left_alone() -> None:
    made = saves(notices("i-1"), reading(job(1, on=["i-2"]), job(2)), NOW_S, TIMINGS)

    assert made == ()


def test_a_notice_that_is_over_requeues_at_once() -> None:
    asked = job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20")

    made = saves(notices("i-1", reclaim_at_s=NOW_S - 5), reading(asked), NOW_S, TIMINGS)

    assert [(order.kind, order.delay_s) for order in made] == [
        (OrderKind.SIGNAL, 0),
        (OrderKind.REQUEUE, 0),
    ]
    assert {order.not_after_s for order in made} == {NOW_S + TIMINGS.order_ttl_s}


def test_nothing_is_asked_for_a_job_after_its_node_is_gone() -> None:
    asked = job(1, on=["i-1"], comment="tidegate:ckpt=USR1@20")

    made = saves(notices("i-1", reclaim_at_s=NOW_S + 5), reading(asked), NOW_S, TIMINGS)

    assert {order.not_after_s for order in made} == {NOW_S + 5}


def test_the_same_question_gives_the_same_ids_in_any_order_of_notices() -> None:
    jobs = reading(*(job(n, on=[f"i-{n}"], comment="tidegate:ckpt=USR1@20") for n in range(4)))

    def asked(some: list[InterruptionNotice]) -> tuple[Order, ...]:
        return (*orders_for(some, GOING, NOW_S, TIMINGS), *saves(some, jobs, NOW_S, TIMINGS))

    some = notices("i-0", "i-1", "i-2")
    other = asked(notices("i-0", "i-1", "i-3"))

    assert asked(some) == asked(some[::-1] + some)
    assert not {o.order_id for o in asked(some)} & {o.order_id for o in other}


def test_a_notice_that_comes_late_still_drains() -> None:
    (drain,) = orders_for(notices("i-1", reclaim_at_s=NOW_S - 60), GOING, NOW_S, TIMINGS)

    assert drain.not_after_s == NOW_S + TIMINGS.order_ttl_s


def test_no_notice_is_no_order() -> None:
    assert orders_for((), GOING, NOW_S, TIMINGS) == ()
    assert saves((), reading(job(1, on=["i-1"])), NOW_S, TIMINGS) == ()


@pytest.mark.parametrize(
    ("cordon", "expected"),
    [
        (None, None),
        (Cordon("issue", NOW_S), None),
        (Cordon("maintenance", NOW_S, NOW_S + 601), None),
        (Cordon("maintenance", NOW_S, NOW_S + 600), NOW_S + 600),
    ],
)
def test_maintenance_becomes_a_reclaim_ten_minutes_before(
    cordon: Cordon | None, expected: float | None
) -> None:
    assert reclaim_at_s(replace(record(), cordon=cordon), NOW_S) == expected


def test_an_offering_rests_longer_with_each_loss_and_a_storm_is_one() -> None:
    first = after_loss(offering(), None, NOW_S, TIMINGS)
    assert first is not None
    again = after_loss(offering(), first, NOW_S + 600, TIMINGS)
    assert again is not None

    rests_s = (first.until_s - NOW_S, again.until_s - NOW_S - 600)
    assert rests_s == (TIMINGS.rest_min_s, 2 * TIMINGS.rest_min_s)
    assert after_loss(offering(), first, NOW_S + 5, TIMINGS) is None


def test_a_longer_rest_for_another_cause_stays() -> None:
    short = Resting(offering(), NOW_S + TIMINGS.rest_max_s, 9, "NodeTooSmall", "")

    assert after_loss(offering(), short, NOW_S, TIMINGS) is None


def test_losses_raise_the_hazard_and_refusals_do_not() -> None:
    lost = Resting(offering(), NOW_S, 3, TAKEN_BACK, "")
    refused = Resting(offering(market=Market.ON_DEMAND), NOW_S, 7, "InsufficientInstance", "")

    assert learnt_hazards([lost, refused]) == {offering(): 3.0}
