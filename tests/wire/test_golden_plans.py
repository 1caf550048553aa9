"""Whole plans for the example clusters, word by word."""

import pytest

from tests.wire.golden_plans import NAMES, PLANS, planned


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_is_the_one_that_was_kept(name: str) -> None:
    kept = (PLANS / f"{name}.txt").read_text(encoding="utf-8")

    assert planned(name) == kept, "if it is meant: python -m tests.wire.golden_plans"


def test_every_example_cluster_has_plans() -> None:
    assert {name.partition("-")[0] for name in NAMES} == {"dev", "research"}
