"""What arrives at the planner, in the shapes that AWS sends."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.events import (
    BootFailed,
    GpuReset,
    HealthCategory,
    HealthNotice,
    Look,
    NodeOrphaned,
    NodeReady,
    RebalanceRecommendation,
    ReservationInterruption,
    SpotInterruption,
    StateChange,
    UnknownEvent,
)
from tidegate.wire.events import RESERVATION_DETAIL_TYPES, encode_look, parse_event

# Shape: EC2 user guide, "Spot Instance interruption notices"; the ARN carries zone, no account.
OURS = "i-0b662ef9931388ba0"
SPOT_WARNING: dict[str, Any] = {
    "version": "0",
    "id": "1e5527d7-bb36-4607-3370-4164db56a40e",
    "detail-type": "EC2 Spot Instance Interruption Warning",
    "source": "aws.ec2",
    "account": "123456789012",
    "time": "1970-01-01T00:02:03Z",
    "region": "us-east-1",
    "resources": ["arn:aws:ec2:us-east-1b:instance/i-0b662ef9931388ba0"],
    "detail": {"instance-id": "i-0b662ef9931388ba0", "instance-action": "terminate"},
}

DIGEST_PUT: dict[str, Any] = {
    "version": "0",
    "id": "2",
    "detail-type": "Tidegate Digest",
    "source": "tidegate.agent",
    "account": "123456789012",
    "time": "2026-01-06T00:00:00Z",
    "region": "us-east-1",
    "resources": [],
    "detail": {
        "key": "digest/demo.json.gz",
        "head": "i-head",
        "start": 1767657600.5,
        "sequence": 12,
        "sha256": "00",
    },
}

REBALANCE: dict[str, Any] = SPOT_WARNING | {
    "detail-type": "EC2 Instance Rebalance Recommendation",
    "detail": {"instance-id": "i-0b662ef9931388ba0"},
}

RESERVATION: dict[str, Any] = SPOT_WARNING | {
    "detail-type": "EC2 Capacity Reservation Instance Interruption Warning",
    "time": "1970-01-01T00:00:00Z",
    "detail": {
        "instance-id": "i-0b662ef9931388ba0",
        "instance-action": "terminate",
        "instance-termination-time": "1970-01-01T00:02:00Z",
        "azId": "use1-az1",
    },
}

STATE_CHANGE: dict[str, Any] = SPOT_WARNING | {
    "detail-type": "EC2 Instance State-change Notification",
    "detail": {"instance-id": "i-0b662ef9931388ba0", "state": "stopping"},
}

HEALTH: dict[str, Any] = SPOT_WARNING | {
    "detail-type": "AWS Health Event",
    "source": "aws.health",
    "resources": ["i-0b662ef9931388ba0"],
    "detail": {
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "statusCode": "upcoming",
        "startTime": "Sat, 05 Jun 2016 15:10:09 GMT",
        "affectedEntities": [
            {"entityValue": "i-0b662ef9931388ba0", "tags": {}},
            {"entityValue": "vol-0b662ef9931388ba0"},
            {"entityValue": "i-12345678"},
        ],
    },
}


def test_a_stored_digest_asks_for_a_look() -> None:
    assert parse_event(json.dumps(DIGEST_PUT)) == Look("digest 12 of i-head")


def test_a_look_of_our_own_keeps_its_reason() -> None:
    body = encode_look("spot interruption", look_id="1", at="2026-01-06T00:00:00+00:00")

    assert parse_event(body) == Look("spot interruption")


def test_a_spot_warning_names_the_instance_and_the_time_of_the_event() -> None:
    assert parse_event(json.dumps(SPOT_WARNING)) == SpotInterruption("i-0b662ef9931388ba0", 123.0)


def test_a_state_change_names_the_instance_and_its_state() -> None:
    changed = StateChange("i-0b662ef9931388ba0", InstanceState.STOPPING, 123.0)

    assert parse_event(json.dumps(STATE_CHANGE)) == changed


def test_a_rebalance_recommendation_names_the_instance() -> None:
    assert parse_event(json.dumps(REBALANCE)) == RebalanceRecommendation(OURS)


def test_a_reservation_that_is_taken_back_names_instance_and_time() -> None:
    told = parse_event(json.dumps(RESERVATION))

    assert told == ReservationInterruption(OURS, at_s=0.0, ends_at_s=120.0)


@pytest.mark.parametrize("detail_type", RESERVATION_DETAIL_TYPES)
def test_it_is_known_by_both_its_names(detail_type: str) -> None:
    told = parse_event(json.dumps(RESERVATION | {"detail-type": detail_type}))

    assert isinstance(told, ReservationInterruption)


def test_the_older_shape_of_it_says_no_end() -> None:
    older = RESERVATION | {"detail": {"instance-id": OURS, "instance-action": "terminate"}}

    assert parse_event(json.dumps(older)) == ReservationInterruption(OURS, at_s=0.0)


def test_a_health_event_names_all_its_instances_and_nothing_else() -> None:
    assert parse_event(json.dumps(HEALTH)) == HealthNotice(
        (OURS, "i-12345678"),
        HealthCategory.SCHEDULED_CHANGE,
        "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        1465139409.0,
        said_at_s=123.0,
    )


def test_a_health_event_of_another_service_is_about_none() -> None:
    other = parse_event(json.dumps(HEALTH | {"detail": HEALTH["detail"] | {"service": "RDS"}}))

    assert isinstance(other, HealthNotice)
    assert other.instance_ids == ()


def test_a_health_event_that_is_closed_is_over() -> None:
    closed = HEALTH | {"detail": HEALTH["detail"] | {"statusCode": "closed"}}

    told = parse_event(json.dumps(closed))

    assert isinstance(told, HealthNotice)
    assert told.is_over


def test_a_quarter_of_a_megabyte_is_read_like_any_other() -> None:
    entities = [{"entityValue": f"i-{number:017x}", "tags": {}} for number in range(5_000)]
    large = HEALTH | {"detail": HEALTH["detail"] | {"affectedEntities": entities}}
    body = json.dumps(large)

    told = parse_event(body)

    assert len(body) > 230_000
    assert isinstance(told, HealthNotice)
    assert len(told.instance_ids) == 5_000


def test_an_event_of_another_kind_is_named() -> None:
    event = SPOT_WARNING | {"detail-type": "Something New"}

    assert parse_event(json.dumps(event)) == UnknownEvent("Something New", "aws.ec2")


def test_fields_that_aws_adds_are_ignored() -> None:
    event = SPOT_WARNING | {"new": 1, "detail": SPOT_WARNING["detail"] | {"newer": 2}}

    assert isinstance(parse_event(json.dumps(event)), SpotInterruption)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "rubbish",
        "[]",
        "null",
        "{}",
        '{"look": 7, "id": "1"}',
        '{"look": "why"}',
        json.dumps({"detail-type": "Something New"}),
        json.dumps({"detail-type": ["Something New"], "source": "aws.ec2"}),
        json.dumps(REBALANCE | {"detail": {}}),
        json.dumps(
            HEALTH | {"detail": HEALTH["detail"] | {"affectedEntities": [{"entityValue": 7}]}}
        ),
        json.dumps(HEALTH | {"detail": HEALTH["detail"] | {"eventTypeCategory": "rumour"}}),
        json.dumps(HEALTH | {"detail": HEALTH["detail"] | {"startTime": "soon"}}),
        json.dumps(HEALTH | {"source": "aws.ec2"}),
        json.dumps(REBALANCE | {"source": "someone.else"}),
        json.dumps(RESERVATION | {"source": "someone.else"}),
        json.dumps(STATE_CHANGE | {"source": "someone.else"}),
        json.dumps(
            RESERVATION | {"detail": RESERVATION["detail"] | {"instance-termination-time": "x"}}
        ),
        json.dumps({key: value for key, value in SPOT_WARNING.items() if key != "time"}),
        json.dumps(STATE_CHANGE | {"detail": STATE_CHANGE["detail"] | {"state": "asleep"}}),
        json.dumps(SPOT_WARNING | {"source": "someone.else"}),
        json.dumps(DIGEST_PUT | {"source": "aws.ec2"}),
        json.dumps(SPOT_WARNING | {"detail": {}}),
        json.dumps(SPOT_WARNING | {"detail": {"instance-id": "i-1; rm -rf /"}}),
        json.dumps(SPOT_WARNING | {"time": "yesterday"}),
        json.dumps(DIGEST_PUT | {"detail": "no object"}),
        "[" * 100_000,
    ],
)
def test_anything_else_is_a_bad_event_with_a_sentence(body: str) -> None:
    with pytest.raises(BadEvent, match="the event"):
        parse_event(body)


@given(st.binary() | st.text())
def test_any_body_is_an_event_or_a_bad_one(body: bytes | str) -> None:
    with suppress(BadEvent):
        parse_event(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([SPOT_WARNING, DIGEST_PUT, STATE_CHANGE, HEALTH, RESERVATION]), st.data())
def test_an_event_with_any_field_replaced_is_an_event_or_a_bad_one(
    event: dict[str, Any], data: st.DataObject
) -> None:
    field = data.draw(st.sampled_from(sorted(event)))
    with suppress(BadEvent):
        parse_event(json.dumps(event | {field: data.draw(JSON)}))


@given(st.sampled_from([SPOT_WARNING, HEALTH, RESERVATION]), st.data())
def test_a_detail_with_any_field_replaced_is_an_event_or_a_bad_one(
    event: dict[str, Any], data: st.DataObject
) -> None:
    field = data.draw(st.sampled_from(sorted(event["detail"])))
    detail = event["detail"] | {field: data.draw(JSON)}
    with suppress(BadEvent):
        parse_event(json.dumps(event | {"detail": detail}))


def test_a_node_that_is_ready_says_how_long_each_stage_took() -> None:
    stages = [
        {"stage": "identity", "how": "apply", "at_ms": 20, "ms": 80, "tries": 1},
        {"stage": "gpu", "how": "skip", "at_ms": 100, "ms": 1900, "tries": 2},
    ]
    detail: dict[str, Any] = {"instance-id": OURS, "role": "node", "stages": stages}
    event = {"detail-type": "NodeReady", "source": "tidegate.node", "detail": detail}

    read = parse_event(json.dumps(event | {"detail": detail | {"plan_id": "ab-1"}}))

    assert read == NodeReady(OURS, "ab-1", {"identity": 0.08, "gpu": 1.9}, 2.0)
    for wrong in ({"stages": stages * 30}, {"plan_id": "x" * 101}, {"stages": [{"stage": "gpu"}]}):
        with pytest.raises(BadEvent):
            parse_event(json.dumps(event | {"detail": detail | wrong}))


def test_a_node_that_ends_itself_says_for_how_long_its_head_was_silent() -> None:
    detail = {"instance-id": OURS, "role": "node", "plan_id": "ab-1", "silent_s": 1860}
    event = {"detail-type": "NodeOrphaned", "source": "tidegate.node", "detail": detail}

    assert parse_event(json.dumps(event)) == NodeOrphaned(OURS, 1860.0, "ab-1")
    for wrong in ({"silent_s": -1}, {"silent_s": 1e10}, {"silent_s": None}):
        with pytest.raises(BadEvent):
            parse_event(json.dumps(event | {"detail": detail | wrong}))


def test_a_node_says_what_became_of_a_reset_of_its_gpus() -> None:
    detail = {"instance-id": OURS, "role": "node", "plan_id": "ab-1", "took_s": 21}
    event = {"detail-type": "GpuReset", "source": "tidegate.node", "detail": detail}
    failed = {"instance-id": OURS, "failed": "Unknown\n  Error" * 100}

    assert parse_event(json.dumps(event)) == GpuReset(OURS, 21.0, "", "ab-1")
    said = parse_event(json.dumps(event | {"detail": failed}))
    assert isinstance(said, GpuReset)
    assert said.sentence.startswith(
        "a reset has not mended its GPUs, and it reboots: Unknown ErrorUnknown Error"
    )
    assert len(said.failed) <= 200
    for wrong in ({"took_s": -1}, {"took_s": 1e10}, {"failed": 1}):
        with pytest.raises(BadEvent):
            parse_event(json.dumps(event | {"detail": detail | wrong}))


def test_a_node_that_gives_up_says_in_which_stage_and_the_end_of_its_log() -> None:
    detail = {"instance-id": OURS, "role": "node", "stage": "gpu", "tail": "no\n  GPU " * 100}
    event = {"detail-type": "BootstrapFailed", "source": "tidegate.node", "detail": detail}

    read = parse_event(json.dumps(event))

    assert isinstance(read, BootFailed)
    assert (read.instance_id, read.stage) == (OURS, "gpu")
    assert len(read.said) == 300
    assert read.said.endswith("no GPU no GPU")
    with pytest.raises(BadEvent):
        parse_event(json.dumps(event | {"source": "someone.else"}))
