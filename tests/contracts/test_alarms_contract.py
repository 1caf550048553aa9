"""What every `Alarms` promises: run on the simulated one and on the adapter against moto.

moto makes no composite alarms, and does not read which kinds are asked for: both are held by what
is asked and answered.
"""

from collections.abc import Callable

import pytest
from botocore.stub import Stubber

from local.cloud import LocalCloud
from tidegate.adapters.alarms import CloudWatchAlarms
from tidegate.core.model.alarms import AlarmState, SeenAlarm
from tidegate.core.model.errors import NotAuthorized, Throttled
from tidegate.ports.alarms import Alarms
from tidegate.sim.alarms import SimAlarms

type Bench = tuple[Alarms, Callable[[str, AlarmState], None]]


def sim() -> Bench:
    alarms = SimAlarms()
    return alarms, alarms.set


def moto(cloud: LocalCloud) -> Bench:
    client = cloud.client("cloudwatch")

    def put(name: str, state: AlarmState) -> None:
        client.put_metric_alarm(
            AlarmName=name,
            Namespace="site",
            MetricName="Errors",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1.0,
            ComparisonOperator="GreaterThanThreshold",
        )
        client.set_alarm_state(AlarmName=name, StateValue=state.value, StateReason="test")

    return CloudWatchAlarms(client), put


@pytest.fixture(params=["sim", "moto"])
def bench(request: pytest.FixtureRequest, cloud: LocalCloud) -> Bench:
    return sim() if request.param == "sim" else moto(cloud)


def test_each_is_told_in_its_state_and_those_that_there_are_not(bench: Bench) -> None:
    alarms, put = bench
    put("errors", AlarmState.ALARM)
    put("loss", AlarmState.NO_DATA)
    put("other", AlarmState.ALARM)

    assert alarms.states(("loss", "gone", "errors")) == (
        SeenAlarm("loss", AlarmState.NO_DATA),
        SeenAlarm("gone", None),
        SeenAlarm("errors", AlarmState.ALARM),
    )


def test_one_call_asks_for_both_kinds_by_name(cloud: LocalCloud) -> None:
    client = cloud.client("cloudwatch")
    asked = {"AlarmNames": ["both", "errors"], "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
    answer = {
        "MetricAlarms": [{"AlarmName": "errors", "StateValue": "OK"}],
        "CompositeAlarms": [{"AlarmName": "both", "StateValue": "ALARM"}],
    }

    with Stubber(client) as stub:
        stub.add_response("describe_alarms", answer, asked)

        assert CloudWatchAlarms(client).states(("both", "errors")) == (
            SeenAlarm("both", AlarmState.ALARM),
            SeenAlarm("errors", AlarmState.OK),
        )


def test_who_may_not_see_all_misses_composite_ones() -> None:
    """Source: CloudWatch API, DescribeAlarms: a right that is not on `*` leaves them out."""
    alarms = SimAlarms({"both": AlarmState.ALARM}, composite={"both"}, is_narrow=True)

    assert alarms.states(("both",)) == (SeenAlarm("both", None),)


@pytest.mark.parametrize(
    ("code", "error"), [("Throttling", Throttled), ("AccessDenied", NotAuthorized)]
)
def test_what_cloudwatch_refuses_is_typed(
    cloud: LocalCloud, code: str, error: type[Exception]
) -> None:
    client = cloud.client("cloudwatch")

    with Stubber(client) as stub:
        stub.add_client_error("describe_alarms", code)
        with pytest.raises(error):
            CloudWatchAlarms(client).states(("a",))
