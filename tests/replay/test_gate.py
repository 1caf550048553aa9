"""Gates of replays: what fails, against what, and what is no gate."""

from dataclasses import replace

import pytest

from tests.replay.test_replay import EXACT, cluster, trace
from tidegate.sim.replay.gate import FIGURES, BadGate, Gate
from tidegate.sim.replay.run import replay


@pytest.fixture(scope="module")
def base():
    return replay(trace("0 3600 1 1"), cluster(), EXACT).outcome


def test_a_gate_judges_the_others_against_the_first(base):
    dear = replace(base, name="dear", cost_usd=base.cost_usd * 1.1)
    cheap = replace(base, name="cheap", cost_usd=base.cost_usd * 0.9)

    (failure,) = Gate("cost_usd > 1.05 * baseline").failures([base, dear, cheap])
    assert failure.startswith("dear (tidegate): cost_usd > 1.05 * baseline")
    (failure,) = Gate("cost_usd < baseline").failures([base, dear, cheap])
    assert failure.startswith("cheap")


def test_a_gate_with_a_number_judges_every_outcome(base):
    slow = replace(base, waits=replace(base.waits, p95_s=400.0))

    assert len(Gate("wait_p95_s>=400").failures([slow, base, slow])) == 2
    assert Gate("wait_p95_s > 400").failures([slow, base]) == []
    assert Gate("launches <= 1").failures([base]) != []


def test_every_figure_can_be_judged(base):
    for figure in FIGURES:
        assert len(Gate(f"{figure} >= 0").failures([base])) == 1


@pytest.mark.parametrize(
    "text",
    ["", "cost_usd", "cost > 3", "cost_usd = 3", "cost_usd > baseline * 2", "cost_usd > -1"],
)
def test_what_is_no_gate_is_refused(text):
    with pytest.raises(BadGate):
        Gate(text)
