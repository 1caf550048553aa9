"""The interruption function's handler: notices first, and nothing it cannot read stops it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lambdas.interruption import on_events
from tests.lambdas.conftest import Deployed, messages
from tests.make import job, node, record
from tests.wire.test_events import HEALTH, REBALANCE, RESERVATION, SPOT_WARNING, STATE_CHANGE
from tidegate.core.model.errors import NotAuthorized, Throttled, TidegateError
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind

DONE: dict[str, list[object]] = {"batchItemFailures": []}
OURS = "i-0b662ef9931388ba0"
SECOND = "i-0b662ef9931388bb1"


@pytest.fixture
def fleet(deployed: Deployed) -> Deployed:
    """Two nodes that are ours."""
    for name in (OURS, SECOND):
        deployed.world.ledger.all_nodes[name] = record(name)
    return deployed


def notice(of: Deployed, instance_id: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(of.world.clock.now_s(), UTC).isoformat()
    return SPOT_WARNING | {"time": at, "detail": {"instance-id": instance_id}}


def test_all_notices_of_a_batch_are_one_drain(fleet: Deployed) -> None:
    event = messages(notice(fleet, OURS), notice(fleet, SECOND), notice(fleet, "i-0123456789"))

    assert on_events(fleet.interruption, event) == DONE

    (drain,) = fleet.world.bus.orders
    assert (drain.kind, drain.names) == (OrderKind.DRAIN, (OURS, SECOND))
    assert drain.not_after_s == fleet.world.clock.now_s() + 120
    assert fleet.world.ledger.all_nodes[OURS].phase is Phase.INTERRUPTED
    assert fleet.figures() == {"Interrupted": 2, "ForeignNotices": 1}
    assert fleet.lines()[-1]["interruption"]["nodes"] == [OURS, SECOND]


def told(of: Deployed, kind: str, **detail: object) -> dict[str, Any]:
    """The log record of what a node tells of its boot."""
    detail |= {"instance-id": OURS, "plan_id": "ab-7"}
    event = {"source": "tidegate.node", "detail-type": kind, "detail": detail}
    assert on_events(of.interruption, messages(event)) == DONE
    (found,) = [each["boot"] for each in of.lines() if "boot" in each]
    return dict(found)


def test_a_boot_that_failed_is_logged_with_the_plan_that_bought_it(fleet: Deployed) -> None:
    said = told(fleet, "BootstrapFailed", stage="gpu", tail="x")

    assert said == {"instance_id": OURS, "plan_id": "ab-7", "failed": "gpu"}


def test_a_boot_that_succeeded_is_logged_with_its_times_and_its_plan(fleet: Deployed) -> None:
    said = told(fleet, "NodeReady", stages=[{"stage": "gpu", "at_ms": 100, "ms": 1900}])

    assert said == {"instance_id": OURS, "plan_id": "ab-7", "stages": {"gpu": 1.9}, "s": 2.0}


def test_a_node_that_ends_itself_is_logged_and_noted(fleet: Deployed) -> None:
    detail = {"instance-id": OURS, "plan_id": "ab-7", "silent_s": 1860}
    event = {"source": "tidegate.node", "detail-type": "NodeOrphaned", "detail": detail}

    assert on_events(fleet.interruption, messages(event)) == DONE

    said = {"instance_id": OURS, "plan_id": "ab-7", "silent_s": 1860.0}
    assert [each["orphaned"] for each in fleet.lines() if "orphaned" in each] == [said]
    assert fleet.world.ledger.all_nodes[OURS].silent_s == 1860.0


def test_what_became_of_a_reset_of_gpus_is_logged_and_noted(fleet: Deployed) -> None:
    detail = {"instance-id": OURS, "took_s": 21}
    event = {"source": "tidegate.node", "detail-type": "GpuReset", "detail": detail}

    assert on_events(fleet.interruption, messages(event)) == DONE

    said = "its GPUs were reset in 21 s, and it takes jobs again"
    logged = [each["gpu_reset"] for each in fleet.lines() if "gpu_reset" in each]
    assert logged == [{"instance_id": OURS, "said": said}]
    assert fleet.world.ledger.all_nodes[OURS].reset_said == said


def test_a_notice_is_logged_with_the_plans_that_bought_its_nodes(fleet: Deployed) -> None:
    """A launch of before plans had ids has none."""
    nodes = fleet.world.ledger.all_nodes
    nodes[OURS] = replace(nodes[OURS], launch_id="ab-7-0")
    third, fourth = "i-0b662ef9931388bc2", "i-0b662ef9931388bd3"
    nodes[third] = replace(record(third), launch_id="ab-7-1")
    nodes[fourth] = replace(record(fourth), launch_id="aa-9-0")
    notices = [notice(fleet, name) for name in (OURS, SECOND, third, fourth)]

    on_events(fleet.interruption, messages(*notices))

    assert fleet.lines()[-1]["interruption"]["plan_ids"] == ["aa-9", "ab-7"]


@pytest.mark.parametrize("body", ["{not json", "[]", SPOT_WARNING | {"detail": {}}])
def test_only_the_body_that_cannot_be_read_comes_again(fleet: Deployed, body: object) -> None:
    answer = on_events(fleet.interruption, messages(body, notice(fleet, OURS)))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert [order.names for order in fleet.world.bus.orders] == [(OURS,)]
    assert fleet.figures()["BadEvents"] == 1
    assert fleet.lines()[0]["message"] == "an event cannot be read"


def test_a_batch_of_nothing_readable_comes_again_whole(fleet: Deployed) -> None:
    answer = on_events(fleet.interruption, messages("{not json", ""))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}, {"itemIdentifier": "m-1"}]}


@pytest.mark.parametrize("trouble", [Throttled("slow down"), NotAuthorized("no")])
def test_trouble_with_the_table_fails_the_batch(fleet: Deployed, trouble: TidegateError) -> None:
    def refuse(point: str) -> None:
        if point == "before nodes":
            raise trouble

    fleet.break_with(refuse)

    with pytest.raises(type(trouble)):
        on_events(fleet.interruption, messages(notice(fleet, OURS)))


@pytest.mark.parametrize(
    ("event", "kind", "figure"),
    [
        (RESERVATION, OrderKind.DRAIN, "Interrupted"),
        (STATE_CHANGE, OrderKind.DELETE, "DeadNodes"),
        (HEALTH, OrderKind.DRAIN, "Cordoned"),
    ],
)
def test_other_news_of_our_nodes_is_acted_on_and_looked_at(
    fleet: Deployed, event: dict[str, Any], kind: OrderKind, figure: str
) -> None:
    assert on_events(fleet.interruption, messages(event)) == DONE

    assert [(order.kind, order.names) for order in fleet.world.bus.orders] == [(kind, (OURS,))]
    assert fleet.world.bus.take_looks() == ("EC2 or AWS Health takes nodes away",)
    assert fleet.figures()[figure] == 1


@pytest.mark.parametrize(
    ("event", "foreign"),
    [
        (REBALANCE, 0),
        (STATE_CHANGE | {"detail": {"instance-id": OURS, "state": "running"}}, 0),
        (STATE_CHANGE | {"detail": {"instance-id": "i-0123456789", "state": "stopping"}}, 1),
        (HEALTH | {"detail": HEALTH["detail"] | {"service": "RDS"}}, 0),
        (HEALTH | {"detail": HEALTH["detail"] | {"eventTypeCategory": "accountNotification"}}, 1),
    ],
)
def test_news_that_changes_none_of_our_nodes_is_acknowledged(
    fleet: Deployed, event: dict[str, Any], foreign: int
) -> None:
    assert on_events(fleet.interruption, messages(event)) == DONE

    assert fleet.world.bus.take_looks() == ()
    assert fleet.world.bus.orders == []
    assert fleet.figures() == ({"ForeignNotices": foreign} if foreign else {})
    # The account's other instances change their state all day; what EC2 recommends is told.
    ignored = [line["interruption"]["ignored"] for line in fleet.lines()]
    assert ignored == ([[OURS]] if event is REBALANCE else [])


def test_what_a_notice_costs_and_saves_is_counted_and_told(fleet: Deployed) -> None:
    began_s = fleet.world.clock.now_s() - 3600
    lost = job(7, on=[OURS], started_at_s=began_s, is_requeueable=False)
    saved = job(8, on=[SECOND], comment="tidegate:ckpt=USR1@20", started_at_s=began_s)
    fleet.world.report([lost, saved], [node(OURS, gpus_alloc=1), node(SECOND, gpus_alloc=1)])

    on_events(fleet.interruption, messages(notice(fleet, OURS), notice(fleet, SECOND)))

    told = {"Interrupted": 2, "SavedJobs": 1, "LostGpuHours": 1.0}
    assert fleet.figures() == told
    said = fleet.lines()[-1]["interruption"]
    assert (said["saved_jobs"], said["lost_gpu_hours"]) == (1, 1.0)


def test_a_node_counts_once_however_often_its_end_is_told(fleet: Deployed) -> None:
    def ends(instance_id: str, state: str) -> dict[str, Any]:
        return STATE_CHANGE | {"detail": {"instance-id": instance_id, "state": state}}

    for event in (notice(fleet, OURS), notice(fleet, OURS), ends(SECOND, "stopping")):
        on_events(fleet.interruption, messages(event))
    for name in (OURS, SECOND):
        on_events(fleet.interruption, messages(ends(name, "terminated")))

    assert fleet.figures() == {"Interrupted": 1, "DeadNodes": 1}


@pytest.mark.parametrize("missing", ["id", "version", "account", "region", "resources"])
def test_a_notice_without_a_field_that_nobody_needs_is_obeyed(
    fleet: Deployed, missing: str
) -> None:
    poor = {key: value for key, value in notice(fleet, OURS).items() if key != missing}

    assert on_events(fleet.interruption, messages(poor)) == DONE

    assert [order.names for order in fleet.world.bus.orders] == [(OURS,)]


@pytest.mark.parametrize("at", ["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_a_notice_of_another_time_drains_and_requeues_within_two_minutes(
    fleet: Deployed, at: str
) -> None:
    now_s = fleet.world.clock.now_s()
    fleet.world.report([job(7, on=[OURS])], [node(OURS, gpus_alloc=1)])

    assert on_events(fleet.interruption, messages(notice(fleet, OURS) | {"time": at})) == DONE

    drain, requeue = fleet.world.bus.orders
    assert (drain.kind, requeue.kind) == (OrderKind.DRAIN, OrderKind.REQUEUE)
    for order in (drain, requeue):
        assert now_s + order.delay_s < order.not_after_s <= now_s + 120


def test_an_event_of_an_unknown_kind_is_said_counted_and_acknowledged(fleet: Deployed) -> None:
    unknown = SPOT_WARNING | {"detail-type": "EC2 Something New"}

    assert on_events(fleet.interruption, messages(unknown)) == DONE

    assert "EC2 Something New" in fleet.lines()[0]["message"]
    assert fleet.figures()["BadEvents"] == 1
    assert fleet.world.bus.orders == []
