"""Events, messages and schedules reach functions as the deployed stack says, and no other way."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.router.clock import VirtualClock
from tests.local.conftest import Stack
from tests.local.put import Route, bodies, dead_bodies, event, eventually, look, of, said
from tests.local.stack import role, schedule, statement

FIVE_MINUTES_S = 300


def test_an_event_reaches_a_function_by_rule_and_permission(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    (done,) = router.invocations
    seen = said(done)
    assert done.function_name == deployed.resources["Async"][1]
    assert (seen["event"]["detail"], seen["event"]["account"]) == ({"number": 1}, "123456789012")
    assert datetime.fromisoformat(seen["event"]["time"]).tzinfo == UTC
    assert router.undelivered == []


def test_an_event_reaches_a_function_through_a_queue(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route()

    event(stack, "tidegate.agent", number=1)
    router.settle()

    (done,) = router.invocations
    assert done.function_name == deployed.resources["Planner"][1]
    assert [body["detail"] for body in bodies(done)] == [{"number": 1}]
    assert done.event["Records"][0]["attributes"]["MessageGroupId"] == "dev"


def test_an_event_that_no_rule_matches_goes_nowhere(stack: Stack, route: Route):
    stack.deploy()
    router = route()

    event(stack, "someone.else", number=1)
    router.settle()

    assert (router.invocations, router.undelivered) == ([], [])


@pytest.mark.parametrize(("rule", "source"), [("Digest", "tidegate.agent"), ("Spot", "test.ec2")])
def test_a_disabled_rule_delivers_nothing(stack: Stack, route: Route, rule, source):
    stack.properties(rule)["State"] = "DISABLED"
    stack.deploy()
    router = route()

    event(stack, source, number=1)
    router.settle()

    assert (router.invocations, router.undelivered) == ([], [])


def test_without_the_lambda_permission_the_event_goes_to_the_targets_queue(
    stack: Stack, route: Route
):
    del stack.template["Resources"]["SpotMayInvoke"]
    deployed = stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    assert router.invocations == []
    assert "does not let events.amazonaws.com invoke" in router.undelivered[0].reason
    assert [body["detail"] for body in dead_bodies(stack, deployed, "Dead")] == [{"number": 1}]


def test_a_permission_for_another_rule_is_none(stack: Stack, route: Route):
    stack.properties("SpotMayInvoke")["SourceArn"] = {"Fn::GetAtt": ["Digest", "Arn"]}
    stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    assert router.invocations == []
    assert len(router.undelivered) == 1


def test_without_a_queue_policy_the_event_is_lost(stack: Stack, route: Route):
    del stack.template["Resources"]["LooksPolicy"]
    stack.deploy()
    router = route()

    event(stack, "tidegate.agent", number=1)
    router.settle()

    assert router.invocations == []
    (lost,) = router.undelivered
    assert "does not let events.amazonaws.com send" in lost.reason
    assert lost.went_to == ""


def test_a_dead_letter_queue_without_a_policy_takes_nothing(stack: Stack, route: Route):
    del stack.template["Resources"]["SpotMayInvoke"]
    del stack.template["Resources"]["DeadPolicy"]
    deployed = stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    assert [each.went_to for each in router.undelivered] == [""]
    assert dead_bodies(stack, deployed, "Dead") == []


def test_everything_comes_twice_when_that_is_asked_for(stack: Stack, route: Route):
    deployed = stack.deploy()
    router = route(repeat=2)

    event(stack, "test.ec2", number=1)
    look(stack, deployed, number=2)
    router.settle()

    assert len(of(router.invocations, "async")) == 2
    first, second = of(router.invocations, "planner")
    assert first.event == second.event


def test_a_mapping_without_rights_to_the_queue_polls_nothing(stack: Stack, route: Route):
    stack.properties("FunctionRole")["Policies"][0]["PolicyDocument"]["Statement"] = [
        statement("sqs:ReceiveMessage")
    ]
    deployed = stack.deploy()
    router = route()

    look(stack, deployed, number=1)
    router.settle()

    assert router.invocations == []
    assert "GetQueueAttributes" in router.troubles[0]


def test_a_role_that_lambda_may_not_assume_runs_nothing(stack: Stack, route: Route):
    stack.add("FunctionRole", role("ec2", statement("sqs:*")))
    stack.deploy()
    router = route()

    event(stack, "test.ec2", number=1)
    router.settle()

    assert {each.error.split(" may ")[1] for each in router.invocations} == {
        "not be assumed by lambda.amazonaws.com"
    }


def test_a_stop_in_tokyo_is_fired_at_eleven_utc(stack: Stack, route: Route):
    stack.add("Stop", schedule("cron(0 20 ? * MON-FRI *)", "Asia/Tokyo"))
    stack.deploy()
    router = route(clock=VirtualClock())
    friday = next_weekday(4)

    router.advance_to(friday.replace(hour=10, minute=59))
    assert len(router.invocations) == weekdays_before(friday)
    router.advance_to(friday.replace(hour=11, minute=1))

    last = router.invocations[-1]
    assert last.event["at"] == f"{friday:%Y-%m-%d}T11:00:00Z"
    assert len(last.event["id"]) == 36
    assert said(last)["time"] == pytest.approx(friday.replace(hour=11).timestamp(), abs=30)
    assert router.clock.now_s() == pytest.approx(
        friday.replace(hour=11, minute=1).timestamp(), abs=5
    )


def next_weekday(weekday: int) -> datetime:
    """The next such day but one week at least from now, at midnight UTC."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=7 + (weekday - today.weekday()) % 7)


def weekdays_before(day: datetime) -> int:
    """How often a schedule of 11:00 UTC from Monday to Friday is due from now until `day`."""
    found, each = 0, datetime.now(UTC).replace(hour=11, minute=0, second=0, microsecond=0)
    while each < day:
        found += each > datetime.now(UTC) and each.weekday() < 5
        each += timedelta(days=1)
    return found


def test_events_carry_the_time_of_the_routers_clock(stack: Stack, route: Route):
    stack.deploy()
    router = route()
    later = datetime.now(UTC) + timedelta(days=400)
    router.clock.jump_to(later)

    event(stack, "test.ec2", number=1)
    router.settle()

    stamped = datetime.fromisoformat(said(router.invocations[0])["event"]["time"])
    assert abs(stamped - later) < timedelta(seconds=30)


def test_schedules_fire_in_order_and_a_disabled_one_does_not(stack: Stack, route: Route):
    stack.add("Every", schedule("rate(5 minutes)", "UTC"))
    stack.add("Hourly", schedule("rate(1 hour)", "UTC"))
    stack.add("Never", schedule("rate(1 minute)", "UTC"))
    stack.properties("Never")["State"] = "DISABLED"
    stack.deploy()
    router = route()

    fired = router.advance_to(datetime.now(UTC) + timedelta(minutes=61))

    names = ["Every" if "-Every-" in arn else "Hourly" for arn in fired]
    assert names.count("Every") == 12
    assert names.count("Hourly") == 1
    at = [each.event["at"] for each in router.invocations]
    assert len(at) == 13
    assert at == sorted(at)


def test_a_schedule_whose_role_may_not_invoke_is_said(stack: Stack, route: Route):
    stack.add("SchedulerRole", role("scheduler", statement("lambda:GetFunction")))
    stack.add("Every", schedule("rate(5 minutes)", "UTC"))
    stack.deploy()
    router = route()

    router.advance_to(datetime.now(UTC) + timedelta(minutes=6))

    assert router.invocations == []
    assert "may not lambda:InvokeFunction" in router.undelivered[0].reason


def test_a_schedule_whose_role_is_of_another_service_is_said(stack: Stack, route: Route):
    stack.add("SchedulerRole", role("events", statement("lambda:InvokeFunction")))
    stack.add("Every", schedule("rate(5 minutes)", "UTC"))
    stack.deploy()
    router = route()

    router.advance_to(datetime.now(UTC) + timedelta(minutes=6))

    assert router.invocations == []
    assert "does not trust scheduler.amazonaws.com" in router.undelivered[0].reason


@pytest.mark.parametrize(("named", "fired"), [("Group", 1), ("Other", 0)])
def test_a_role_may_trust_the_schedules_of_one_group_only(stack: Stack, route: Route, named, fired):
    other = {"Name": {"Fn::Sub": "${AWS::StackName}-other"}}
    stack.add("Other", {"Type": "AWS::Scheduler::ScheduleGroup", "Properties": other})
    stack.add("Every", schedule("rate(5 minutes)", "UTC"))
    trust = stack.properties("SchedulerRole")["AssumeRolePolicyDocument"]["Statement"][0]
    trust["Condition"] = {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": [named, "Arn"]},
        }
    }
    stack.deploy()
    router = route()

    router.advance_to(datetime.now(UTC) + timedelta(minutes=6))

    assert len(router.invocations) == fired


def test_threads_route_by_themselves(stack: Stack, route: Route):
    stack.add("Stop", schedule("rate(5 minutes)", "UTC"))
    deployed = stack.deploy()
    router = route()
    router.start()

    event(stack, "test.ec2", number=1)
    look(stack, deployed, number=2)
    router.settle()
    assert len(of(router.invocations, "planner")) == 1
    assert len(of(router.invocations, "async")) == 1

    router.clock.jump_to(datetime.now(UTC) + timedelta(seconds=FIVE_MINUTES_S + 1))
    eventually("the schedule fired", lambda: len(router.invocations) >= 3)
    assert "at" in router.invocations[-1].event


def test_an_interruption_does_not_wait_behind_planning(stack: Stack, route: Route, tmp_path: Path):
    stack.properties("Planner")["Timeout"] = 120
    deployed = stack.deploy()
    router = route()
    router.start()
    done, awaited = tmp_path / "done", tmp_path / "done.awaited"

    look(stack, deployed, do="wait", for_file=str(done))
    eventually("planning has begun", awaited.exists)
    event(stack, "test.ec2", number=1)
    eventually("the interruption was handled", lambda: of(router.invocations, "async"))
    done.touch()
    router.settle()

    assert [each.function_name for each in router.invocations] == [
        deployed.resources["Async"][1],
        deployed.resources["Planner"][1],
    ]
