"""A plan as JSON: everything that is done, for whom, at which price; and why others wait."""

import json
from typing import Any

from tests import make
from tidegate.core.model.cluster import Limits
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.wire.plan import PlanModel, encode_plan


def planned(snapshot: Snapshot, *notes: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_plan(plan(snapshot), snapshot, notes))
    PlanModel.model_validate(found)
    return found


def test_a_launch_says_what_is_bought_where_for_whom_and_at_which_price() -> None:
    found = planned(make.snapshot([make.job(1), make.job(2)]))

    [launch] = [each for each in found["actions"] if each["action"] == "launch"]
    assert (launch["pool"], launch["market"], launch["count"]) == ("t4", "spot", 2)
    assert launch["overrides"][0] == {
        "instance_type": "g4dn.xlarge",
        "zone": "us-east-1a",
        "usd_per_hour": 0.2,
    }
    assert launch["jobs"] == ["1", "2"]
    assert launch["token"] == f"test-{launch['launch_id']}"
    assert launch["usd_per_hour"] == 0.4
    assert launch["sentence"].endswith(launch["reason"])
    assert found["usd_per_hour"] == 0.4
    assert [each["job_id"] for each in found["served"]] == ["1", "2"]


def test_an_unmet_job_says_why_obstacle_by_obstacle() -> None:
    found = planned(make.snapshot([make.job(1, gpus=16)]))

    [unmet] = found["unmet"]
    assert unmet["job_id"] == "1"
    assert unmet["reason"]
    assert {each["pool"] for each in unmet["why"]} == {"t4", "a10g"}


def test_every_action_has_a_kind_and_a_sentence() -> None:
    cluster = make.cluster(make.pool(limits=Limits(nodes=1)))
    snapshot = make.snapshot(
        [make.job(1, on=["i-1"])],
        [make.node("i-1", gpus_alloc=1), make.node("i-2", idle_s=9999)],
        of=cluster,
        instances=[make.instance("i-1"), make.instance("i-2"), make.instance("i-3")],
        records=[make.record("i-1"), make.record("i-2")],
    )

    actions = planned(snapshot)["actions"]

    assert {each["action"] for each in actions} >= {"adopt", "order"}
    assert all(each["sentence"] for each in actions)


def test_notes_of_the_reader_stand_before_the_plans_own() -> None:
    assert planned(make.snapshot([]), "seen")["notes"] == ["seen"]


def test_every_field_of_a_plan_is_described() -> None:
    schema = PlanModel.model_json_schema()

    nameless = [
        f"{part}.{name}"
        for part, definition in {"": schema, **schema["$defs"]}.items()
        for name, value in definition.get("properties", {}).items()
        if name != "action" and not value.get("description")
    ]
    assert nameless == []
