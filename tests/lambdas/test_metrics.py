"""Which figures become metrics, each of which costs, and where the others go."""

from tests.lambdas.conftest import Deployed
from tidegate.wire.deployment import Metrics


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
