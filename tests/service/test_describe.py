"""The one log record of a look, and its figures."""

import json
from typing import Any

from tests.make import job, snapshot
from tests.service.conftest import World
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.errors import Throttled
from tidegate.core.model.plan import Plan, Served, Unmet
from tidegate.service.control import Looked, Round
from tidegate.service.describe import look_record, look_verdicts
from tidegate.service.figures import look_figures
from tidegate.service.outcome import Outcome

CLOUDWATCH_BYTES = 256 * 1024


def record_of(looked: Looked) -> Any:
    return look_record(looked)


def test_the_verdicts_hold_what_a_job_submitted_now_would_pay(world: World) -> None:
    world.report([job(1)])

    found = look_verdicts(world.look())

    assert found is not None
    assert {(each.partition, each.instance_type) for each in found.prices} == {
        ("gpu", each.name) for pool in world.of.pools for each in pool.instance_types
    }


def looked_at(*rounds: Round, trouble: str = "") -> Looked:
    return Looked(list(rounds), trouble)


def test_a_look_that_buys_says_what_for_and_what_ec2_refused(world: World) -> None:
    spot = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
    world.compute.shortages[spot] = 0
    world.report([job(1), job(2, gpus=64)])

    record = record_of(world.look())

    first, second = record["rounds"]
    assert first["refused"][0]["offering"] == str(spot)
    assert first["refused"][0]["code"] == "InsufficientInstanceCapacity"
    launched = first["launched"] + second["launched"]
    assert [each["jobs"] for each in launched] == [["1"]]
    assert launched[0]["instance_id"] == world.compute.live()[0].instance_id
    assert first["decisions"][0]["code"] == "launch"
    assert first["decisions"][0]["jobs"] == ["1"]
    assert (first["digest"], first["is_stale"]) == (1, False)
    assert set(record["unmet"]) == {"2"}
    assert set(record["served"]) == {"1"}


def test_a_look_that_failed_says_why(world: World) -> None:
    def throttle(point: str) -> None:
        if point == "before view":
            raise Throttled("slow down")

    world.break_with(throttle)
    looked = world.look()

    assert look_record(looked) == {
        "rounds": [],
        "trouble": "Throttled: slow down",
        "unmet": None,
        "served": None,
    }
    assert look_figures(looked)["LookFailed"] == 1
    assert "DigestAge" not in look_figures(looked)


def test_a_look_that_knows_no_queue_says_so_instead_of_an_empty_one(world: World) -> None:
    record = record_of(world.look())

    assert record["unmet"] is None
    assert "has not reported yet" in str(record["rounds"])


def test_a_round_that_lost_its_race_has_no_verdicts_and_no_figures() -> None:
    unmet = Plan((), (), (Unmet("1", "no room"),))
    lost = Round(snapshot([job(1)]), unmet, Outcome(is_stale=True, ended=["i-1"]))

    record = record_of(looked_at(lost))

    assert record["unmet"] is None
    assert record["rounds"][0]["is_stale"]
    assert "UnmetJobs" not in look_figures(looked_at(lost))
    assert "Terminated" not in look_figures(looked_at(lost))


def test_ten_thousand_jobs_fit_into_a_log_line_that_says_what_it_left_out() -> None:
    why = "every offering rests until 12:00: InsufficientInstanceCapacity \u00fc" * 3
    verdicts = Plan(
        (),
        tuple(Served(str(number), (), why) for number in range(10_000)),
        tuple(Unmet(str(number), why) for number in range(10_000)),
        notes=("n" * 50_000,) * 10,
    )
    trouble = Outcome(trouble=["t" * 50_000] * 10, ended=[f"i-{n:017x}" for n in range(5000)])
    each = Round(snapshot(), verdicts, trouble)

    record = record_of(looked_at(*[each] * 4))

    assert len(json.dumps(record)) < CLOUDWATCH_BYTES - 10_000
    assert len(record["unmet"]) + record["unmet_left_out"] == 10_000
    assert len(record["unmet"]) > 100
    ended = record["rounds"][0]
    assert len(ended["ended"]) + ended["ended_left_out"] == 5000


def test_a_launch_for_ten_thousand_jobs_names_its_instances(world: World) -> None:
    world.report([job(number) for number in range(3000)])

    record = record_of(world.look())

    assert len(json.dumps(record)) < CLOUDWATCH_BYTES - 10_000
    assert record["rounds"][0]["launched"]
