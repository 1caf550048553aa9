"""What looks did, and whom each event is about: by its subjects, never by its sentence."""

import pytest

from tests.make import NOW_S, instance, job, node, record, snapshot
from tidegate.core.explain.history import EventKind, LookEvent, Narrator
from tidegate.core.model.ec2 import FleetRequest, Market, Offering, Override, Refusal, RefusalKind
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Action, Plan, Rest, Resume, Send, Terminate, Watch
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.planner import plan

SPOT = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)


def told(action: Action, seen: Snapshot | None = None) -> LookEvent:
    seen = seen or snapshot(records=[record("i-1"), record("i-12", pool="a10g")])
    return Narrator.of(Plan((action,), (), ()), seen).decided(action)


def order(kind: OrderKind, *names: str, on_nodes: tuple[str, ...] = ()) -> Send:
    asked = Order("x-1-o0", kind, names, NOW_S + 60, on_nodes=on_nodes)
    return Send(asked, "more is said of 7 than one would think: i-9")


def test_a_launch_for_many_jobs_is_about_each_of_them_and_about_no_other() -> None:
    seen = snapshot([job(n) for n in (*range(1, 6), *range(11, 18))])
    (launch,) = (a for a in plan(seen).actions if isinstance(a, Launch))

    event = told(launch, seen)

    assert "more" in event.sentence, "the sentence names a few of them only"
    for number in (1, 5, 11, 16, 17):
        assert event.is_about(job=str(number)), number
    for name in ("2x", "7", "x12", "more", "and", "6"):
        assert not event.is_about(job=name), name
    assert event.is_about(pool="t4")
    assert event.launch_id == launch.launch_id


@pytest.mark.parametrize(
    ("action", "code", "asked", "is_about"),
    [
        (order(OrderKind.RELEASE, "i-1", "i-12"), "release", {"node": "i-1"}, True),
        (order(OrderKind.RELEASE, "i-1", "i-12"), "release", {"pool": "a10g"}, True),
        (order(OrderKind.RELEASE, "i-1"), "release", {"node": "i-12"}, False),
        (order(OrderKind.RELEASE, "i-1"), "release", {"node": "i-9"}, False),
        (order(OrderKind.RELEASE, "i-1"), "release", {"pool": "a10g"}, False),
        (order(OrderKind.REQUEUE, "7", "8"), "requeue", {"job": "7"}, True),
        (order(OrderKind.REQUEUE, "7", "8"), "requeue", {"job": "i-1"}, False),
        (order(OrderKind.SIGNAL, "8", on_nodes=("i-1",)), "signal", {"node": "i-1"}, True),
        (order(OrderKind.SIGNAL, "8"), "signal", {"job": "7"}, False),
        (Terminate(("i-12",), "for job 7:"), "terminate", {"node": "i-12"}, True),
        (Terminate(("i-12",), "for job 7:"), "terminate", {"job": "7"}, False),
        (Watch(Stuck("7", "digest", NOW_S), "job 8"), "watch", {"job": "7"}, True),
        (Rest(SPOT, "t4", "", "NodeTooSmall", "of pool a10g"), "rest", {"pool": "t4"}, True),
        (Rest(SPOT, "t4", "", "NodeTooSmall", "of pool a10g"), "rest", {"pool": "a10g"}, False),
    ],
)
def test_a_decision_is_about_whom_it_names(
    action: Action, code: str, asked: dict[str, str], is_about: bool
) -> None:
    event = told(action)

    assert (event.kind, event.code) == (EventKind.DECISION, code)
    assert event.is_about(**asked) is is_about


def test_an_order_says_until_when_it_holds() -> None:
    assert told(order(OrderKind.DRAIN, "i-1")).until_s == NOW_S + 60


def test_what_a_dead_planner_left_is_about_its_jobs() -> None:
    (launch,) = (a for a in plan(snapshot([job(3)])).actions if isinstance(a, Launch))
    override = Override(SPOT.instance_type, SPOT.zone, "subnet-a", 0)
    request = FleetRequest("t", "lt-1", "1", Market.SPOT, 1, 1, (override,), ())
    recorded = snapshot(launches=[LaunchRecord(launch, NOW_S, request)])

    event = told(Resume(launch.launch_id, "its planner died"), recorded)

    assert event.is_about(job="3", pool="t4")


def test_what_ec2_gave_and_refused_and_what_ended_has_subjects() -> None:
    seen = snapshot([job(1)], nodes=[node("i-1")], records=[record("i-1")])
    made = plan(seen)
    tell = Narrator.of(made, seen)
    refusal = Refusal(SPOT, RefusalKind.CAPACITY, "InsufficientInstanceCapacity", "none for 1")

    refused, ended, trouble = tell.refused(refusal), tell.ended("i-1"), tell.trouble("slow")

    assert (refused.code, refused.pools) == ("InsufficientInstanceCapacity", ("t4",))
    assert refused.sentence.endswith(f"{SPOT}: InsufficientInstanceCapacity: none for 1")
    assert not refused.is_about(job="1")
    assert ended.is_about(node="i-1", pool="t4")
    assert trouble.is_about(job="99", node="i-99", pool="x")
    given = tell.launched(instance("i-7"))
    assert given.is_about(node="i-7", pool="t4")


@pytest.mark.parametrize(
    ("asked", "job_id", "is_same"),
    [
        ("7", "7", True),
        ("7", "7_3", True),
        ("7_3", "7_3", True),
        ("7_3", "7", True),
        ("7_3", "7_4", False),
        ("7", "70", False),
        ("70", "7", False),
        ("7", "17_7", False),
    ],
)
def test_a_task_is_meant_by_its_array(asked: str, job_id: str, is_same: bool) -> None:
    event = LookEvent(0.0, "x", EventKind.DECISION, "launch", jobs=(job_id,))

    assert event.is_about(job=asked) is is_same
