"""A snapshot as JSON: nothing is lost on the way, every mistake is told with its path."""

import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from tests import make
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.ledger import Launch, LaunchRecord, Phase
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Association, Licence, Shape, Spread
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request
from tidegate.wire.snapshot import SnapshotModel, decode_snapshot, encode_snapshot


def full_snapshot() -> Snapshot:
    """A snapshot with something in every place."""
    jobs = [
        make.job("7_3", time_limit_s=3600.5, licences=(("matlab", 2),), deadline_s=make.NOW_S),
        make.job(8, on=["i-1"], started_at_s=make.NOW_S - 9),
        make.job(9, gpus=4, spreads=(Spread(2, Shape(2, "t4", 1, 1000)),)),
        make.job(10, nodes=2, gpus=4),
    ]
    made = make.snapshot(
        jobs,
        [make.node("i-1", gpus_alloc=1), make.node("i-2", state="IDLE+DRAIN+DYNAMIC_NORM")],
        associations=[Association("qos high", qos="high", in_all=8)],
    )
    assert made.digest
    reading = replace(made.digest.reading, licences=(Licence("matlab", 4),))
    made = replace(
        made,
        digest=replace(made.digest, reading=reading),
        digest_age_s=1.5,
        instances=(make.instance("i-1"), make.instance("i-2")),
        nodes=(
            make.record("i-1"),
            make.record(
                "i-2",
                phase=Phase.INTERRUPTED,
                order=PendingOrder("o-1", OrderKind.DRAIN, make.NOW_S + 5),
            ),
        ),
        resting=(Resting(make.offering(market=Market.ON_DEMAND), make.NOW_S + 60, 2, "x", "y"),),
        wanted=Wanted(is_up=True, sentence="up until Fri", until_s=make.NOW_S + 999),
    )
    launch = next(each for each in plan(made).actions if isinstance(each, Launch))
    request = fleet_request(launch, "test", make.placement(made.cluster))
    return replace(made, launches=(LaunchRecord(launch, make.NOW_S - 5, request),))


def read(data: object, snapshot: Snapshot | None = None) -> Snapshot:
    cluster = (snapshot or full_snapshot()).cluster
    text = data if isinstance(data, str) else json.dumps(data)
    return decode_snapshot(text, cluster, "snapshot.json").snapshot


def changed(path: str, value: object) -> dict[str, Any]:
    """The full snapshot's JSON, with another value at `path.0.in.it`."""
    data: dict[str, Any] = json.loads(encode_snapshot(full_snapshot()))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    here: Any = data
    for parent in parents:
        here = here[parent]
    here[last] = value
    return data


def problems(data: object) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        read(data)
    return [" ".join(line.split()) for line in str(caught.value).splitlines()[1:]]


def test_a_snapshot_survives_the_way_and_gives_the_same_plan() -> None:
    snapshot = full_snapshot()

    again = read(encode_snapshot(snapshot))

    assert again == snapshot
    assert plan(again) == plan(snapshot)


def test_a_head_that_was_never_heard_survives_the_way() -> None:
    snapshot = replace(full_snapshot(), digest=None, digest_age_s=inf)

    assert read(encode_snapshot(snapshot)) == snapshot


def test_what_is_left_out_is_nothing_and_the_cluster_is_up() -> None:
    found = read({"now_s": 5})

    assert (found.now_s, found.digest, found.instances, found.wanted.is_up) == (5.0, None, (), True)


def test_prices_and_hazards_seen_count_before_the_cluster_files() -> None:
    offering = {"instance_type": "g4dn.xlarge", "zone": "us-east-1a", "market": "spot"}
    market = {
        "prices": [{"offering": offering, "usd_per_hour": 0.1}],
        "hazards": [{"offering": offering, "per_hour": 0.5}],
    }

    cluster = read({"now_s": 5, "market": market}).cluster

    assert cluster.prices[make.offering()] == 0.1
    assert cluster.prices[make.offering(market=Market.ON_DEMAND)] == 0.526
    assert cluster.hazard_per_hour(make.offering()) == 0.5


FAULTS = [
    ("now_s", -1, "now_s must be at least 0, is -1"),
    (
        "digest.reading.jobs.0.nodes",
        -2,
        "digest.reading.jobs[0].nodes must be at least 0, is -2",
    ),
    (
        "digest.reading.jobs.0.nodes",
        "2",
        "digest.reading.jobs[0].nodes must be a whole",
    ),
    ("digest.reading.nodes.0.state", "", "digest.reading.nodes[0].state must be"),
    (
        "digest.reading.nodes.0.gpus_alloc",
        9,
        "digest.reading.nodes[0].gpus_alloc 9, but the",
    ),
    ("digest.cluster", "other", "digest.cluster other, but the cluster file describes test"),
    ("instances.0.state", "napping", "instances[0].state must be pending or running or"),
    ("instances.1.instance_id", "i-1", "instances instance_id i-1 is there 2 times"),
    ("nodes.1.instance_id", "i-1", "nodes instance_id i-1 is there 2 times"),
    ("digest.reading.nodes.1.name", "i-1", "digest.reading.nodes name i-1 is there 2 times"),
    ("digest.reading.jobs.1.job_id", "7_3", "digest.reading.jobs job_id 7_3 is there 2 times"),
    (
        "instances.0.offering.instance_type",
        "g9.xlarge",
        "instances[0].offering.instance_type g9.xlarge is not a known instance type; did you mean",
    ),
    ("nodes.0.phase", "gone", "nodes[0].phase must be launched or joined or"),
    ("market.prices.0.usd_per_hour", 0, "market.prices[0].usd_per_hour must be more than 0, is 0"),
    ("jobs", [], "jobs unknown name"),
    ("version", 2, "version must be 1, is 2"),
]


@pytest.mark.parametrize(("path", "value", "says"), FAULTS)
def test_one_mistake_gives_one_problem_with_its_path(path: str, value: object, says: str) -> None:
    [problem] = problems(changed(path, value))

    assert problem.startswith(says)


def test_all_mistakes_come_at_once() -> None:
    data = changed("digest.reading.jobs.0.nodes", -2)
    data["instances"][0]["state"] = "napping"

    assert len(problems(data)) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"now_s": NaN}', '{"now_s": 1e999}']
)
def test_what_is_no_snapshot_says_so(text: str) -> None:
    with pytest.raises(BadConfig, match=r"^snapshot\.json: 1 problem"):
        read(text)


def test_a_node_in_a_state_never_seen_is_left_alone_and_told() -> None:
    snapshot = full_snapshot()
    data = changed("digest.reading.nodes.0.state", "IDLE+DYNAMIC_NORM+FROBBED")

    found = decode_snapshot(json.dumps(data), snapshot.cluster, "snapshot.json")

    assert found.notes == ("node i-1 has the state FROBBED, never seen: left alone, gets no job",)
    assert found.snapshot.digest
    state = found.snapshot.digest.reading.nodes[0].state
    assert (state.is_idle, state.takes_jobs, state.is_deletable) == (False, False, False)


def test_an_instance_that_no_pool_has_counts_and_is_told() -> None:
    snapshot = full_snapshot()
    data = changed("instances.0.offering.instance_type", "p5.48xlarge")

    found = decode_snapshot(json.dumps(data), snapshot.cluster, "snapshot.json")

    assert found.notes == ("i-1 is a p5.48xlarge, which no pool has: it counts as it is",)
    plan(found.snapshot)


def test_every_field_of_a_snapshot_is_described() -> None:
    schema = SnapshotModel.model_json_schema()

    nameless = [
        f"{part}.{name}"
        for part, definition in {"": schema, **schema["$defs"]}.items()
        for name, value in definition.get("properties", {}).items()
        if not value.get("description")
    ]
    assert nameless == []
