"""Nodes that are kept for larger jobs are not opened and closed again in turn, look by look."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_steering import busy, closed, closings, large, running, seen, small
from tests.make import NOW_S
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Send
from tidegate.core.planner import plan


def test_a_closed_node_stays_closed_for_a_job_that_may_start_once_others_have_ended() -> None:
    jobs = [running(large(), "i-big", left_s=60), large(2), small()]
    made = plan(seen(jobs, [closed(gpus=4)]))
    assert {each.job_id: each.by for each in made.served}["2"] == ("i-big",)
    assert not orders(made, OrderKind.UNDRAIN)


def test_nodes_of_components_open_for_their_job_as_a_whole() -> None:
    """By their own ids none could count on them: they opened and closed look by look."""
    jobs = [large(8, het_job_id="8"), large(9, het_job_id="8")]
    made = plan(seen(jobs, [closed("i-big"), closed("i-more")]))
    opened = [one for one in made.actions if isinstance(one, Send)]
    assert {one.opens_for for one in opened} == {"8"}
    assert {name for one in opened for name in one.order.names} == {"i-big", "i-more"}


@pytest.mark.parametrize(("opened_for", "is_closed"), [("1", False), ("7", True)])
def test_a_node_that_was_opened_for_a_job_is_not_closed_before_slurm_could_start_it(
    opened_for: str, *, is_closed: bool
) -> None:
    """Another look may find another place for it."""
    shown = seen([running(large(), "i-big"), small(1)], [busy()])
    told = PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S + 50, opens_for=opened_for)
    done = OrderResult("o-1", OrderKind.UNDRAIN, "i-big", OrderOutcome.DONE)
    assert shown.digest is not None
    shown = replace(
        shown,
        digest=replace(shown.digest, results=(done,)),
        nodes=tuple(replace(each, order=told) for each in shown.nodes),
    )

    assert bool(closings(plan(shown))) is is_closed
