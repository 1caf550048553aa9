"""Which figures become metrics, each of which costs, and where the others go."""

import json
from typing import NoReturn

import pytest

from lambdas.interruption import on_events
from tests.lambdas.conftest import Context, Deployed, messages
from tidegate.core.model.errors import Throttled
from tidegate.service.interruptions import Interruptions
from tidegate.wire.deployment import Metrics
from tidegate.wiring.function import Event, Function, serve


def test_minimal_counts_the_few_that_matter_and_logs_the_rest():
    deployed = Deployed(chosen=Metrics.MINIMAL)

    deployed.planner.count(BootFailed=2, Launched=1, ForeignNotices=0)

    assert deployed.figures() == {"BootFailed": 2}
    assert [line["figures"] for line in deployed.lines()] == [{"Launched": 1}]


def test_full_counts_everything():
    deployed = Deployed(chosen=Metrics.FULL)

    deployed.planner.count(Launched=2, HeadStarted=1)

    assert deployed.figures() == {"Launched": 2, "HeadStarted": 1}
    assert deployed.lines() == []


def test_an_invocation_writes_what_it_counted_once(capsys: pytest.CaptureFixture[str]):
    deployed = Deployed()
    handler = serve(on_events, deployed.interruption)

    handler(messages("{not json"), Context())
    (written,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (written["BadEvents"], written["cluster"]) == ([1.0], "test")

    # Warnings are errors here; Lambda would write them into the log.
    assert handler({"Records": []}, Context()) == {"batchItemFailures": []}
    assert capsys.readouterr() == ("", "")


def test_what_was_counted_before_trouble_goes_out(capsys: pytest.CaptureFixture[str]):
    def fail(made: Function[Interruptions], event: Event) -> NoReturn:
        made.count(BadEvents=1)
        raise Throttled("slow down")

    with pytest.raises(Throttled):
        serve(fail, Deployed().interruption)({}, Context())

    assert '"BadEvents":[1.0]' in capsys.readouterr().out
