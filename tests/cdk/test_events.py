"""Queues, rules, schedules and alarms."""

import json
import re
from pathlib import Path

import pytest

from cdk.dashboard import GRAPHS, MAILS
from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized
from tidegate.core.interruption.policy import Nothing, action_for
from tidegate.core.model.cluster import Rebalance, Timings
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import StateChange
from tidegate.wire.metrics import MINIMAL
from userdata.render import NODE_STAGES

ROOT = Path(__file__).parents[2]

QUEUES = ("Dead", "DeadLooks", "Looks", "Interruptions", "Urgent", "Routine")


def queue(stack: Stack, name: str) -> Properties:
    (found,) = [
        dict(resource["Properties"])
        for logical_id, resource in stack.resources("AWS::SQS::Queue")
        if logical_id[: -len("00000000")] == f"Queues{name}"
    ]
    return found


@pytest.mark.parametrize("name", ["Looks", "Interruptions"])
def test_message_stays_hidden_for_longer_than_its_function_may_live(dev: Stack, name):
    longest_s = max(function["Timeout"] for function in dev.all("AWS::Lambda::Function"))

    assert queue(dev, name)["VisibilityTimeout"] > longest_s


@pytest.mark.parametrize("name", ["Urgent", "Routine"])
def test_order_that_a_dying_head_took_comes_back_long_before_a_spot_node_goes(dev: Stack, name):
    found = queue(dev, name)

    assert found["VisibilityTimeout"] == 20
    # It outlives a slurmctld that is silent for as long as the order is valid.
    longest_s = Timings().spot_notice_s
    assert found["VisibilityTimeout"] * found["RedrivePolicy"]["maxReceiveCount"] > longest_s


@pytest.mark.parametrize("name", ["Dead", "DeadLooks"])
def test_dead_letters_wait_two_weeks(dev: Stack, name):
    assert queue(dev, name)["MessageRetentionPeriod"] == 14 * 24 * 3600


@pytest.mark.parametrize(
    ("name", "tries"), [("Looks", 5), ("Interruptions", 5), ("Urgent", 10), ("Routine", 10)]
)
def test_other_messages_are_worth_nothing_after_an_hour_and_die_after_tries(
    dev: Stack, name: str, tries: int
):
    found = queue(dev, name)

    assert found["MessageRetentionPeriod"] == 3600
    assert found["RedrivePolicy"]["maxReceiveCount"] == tries


@pytest.mark.parametrize("name", QUEUES)
def test_looks_and_their_dead_are_fifo_and_no_other_queue(dev: Stack, name):
    expected = True if name in ("Looks", "DeadLooks") else None

    assert queue(dev, name).get("FifoQueue") is expected
    assert queue(dev, name).get("ContentBasedDeduplication") is expected


RULES = {
    "EventsDigest": ("tidegate.agent", "Tidegate Digest", "Looks"),
    "EventsBoot": ("tidegate.node", "BootstrapFailed", "Interruptions"),
    "EventsSpot": ("aws.ec2", "EC2 Spot Instance Interruption Warning", "Interruptions"),
    "EventsRebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation", "Interruptions"),
    "EventsStateChange": ("aws.ec2", "EC2 Instance State-change Notification", "Interruptions"),
    "EventsReservation": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "Interruptions",
    ),
    "EventsHealth": ("aws.health", "AWS Health Event", "Interruptions"),
}


def test_there_are_these_rules_and_no_others(dev: Stack):
    assert len(dev.all("AWS::Events::Rule")) == len(RULES)


@pytest.mark.parametrize("name", RULES)
def test_rule_sends_its_events_into_one_queue_and_the_undelivered_to_the_dead(dev: Stack, name):
    source, detail_type, target_queue = RULES[name]
    rule = dev.named(name, "AWS::Events::Rule")
    (target,) = rule["Targets"]

    assert rule["State"] == "ENABLED"
    assert rule["EventPattern"]["source"] == [source]
    assert rule["EventPattern"]["detail-type"][0] == detail_type
    assert joined(target["Arn"]).startswith(f"<Queues{target_queue}")
    assert joined(target["DeadLetterConfig"]["Arn"]).startswith("<QueuesDead")
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 20


def test_nodes_tell_of_boots_and_of_a_silent_head(dev: Stack):
    rule = dev.named("EventsBoot", "AWS::Events::Rule")

    told = ["BootstrapFailed", "NodeReady", "NodeOrphaned", "GpuReset"]
    assert rule["EventPattern"]["detail-type"] == told


def test_interruptible_reservations_are_known_by_both_names(dev: Stack):
    rule = dev.named("EventsReservation", "AWS::Events::Rule")

    assert rule["EventPattern"]["detail-type"] == [
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
    ]


def test_what_head_and_nodes_say_comes_by_the_cluster_s_own_bus_and_all_else_by_the_default_bus(
    dev: Stack,
):
    assert dev.one("AWS::Events::EventBus")["Name"] == "tidegate-dev"
    for name in RULES:
        rule = dev.named(name, "AWS::Events::Rule")
        bus = joined(rule.get("EventBusName", "default"))
        group = rule["Targets"][0].get("SqsParameters")
        if name == "EventsDigest":
            assert (bus[:10], group) == ("<EventsBus", {"MessageGroupId": "dev"})
        elif name == "EventsBoot":
            assert (bus[:10], group) == ("<EventsBus", None)
        else:
            assert (bus, group) == ("default", None)


def test_states_that_nobody_acts_on_wake_nobody(dev: Stack):
    pattern = dev.named("EventsStateChange", "AWS::Events::Rule")["EventPattern"]
    calm, timings = Rebalance.IGNORE, Timings()
    told = {
        state.value
        for state in InstanceState
        if action_for(StateChange("i-1", state), calm, 0.0, timings) != Nothing()
    }

    assert set(pattern["detail"]["state"]) == told


def test_only_news_of_ec2_s_health_are_taken(dev: Stack):
    pattern = dev.named("EventsHealth", "AWS::Events::Rule")["EventPattern"]

    assert pattern["detail"] == {"service": ["EC2"]}


def test_each_rule_may_write_to_its_queue_and_to_the_dead_and_nobody_else_may(dev: Stack):
    granted = {
        (joined(statement["Condition"]["ArnEquals"]["aws:SourceArn"]), joined(policy["Queues"][0]))
        for policy in dev.all("AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    }
    rules = {logical_id for logical_id, _ in dev.resources("AWS::Events::Rule")}

    assert len(granted) == 2 * len(rules)
    assert {source for source, _ in granted} == {f"<{rule}.Arn>" for rule in rules}


@pytest.mark.parametrize(
    ("name", "expression"),
    [("stop", "cron(0 20 ? * MON-FRI *)"), ("start", "cron(0 8 ? * MON-FRI *)")],
)
def test_schedule_fires_in_the_cluster_s_time_zone_and_tells_when_it_was(
    dev: Stack, name, expression
):
    schedule = dev.named(f"Hours{name.capitalize()}", "AWS::Scheduler::Schedule")
    target = schedule["Target"]

    assert schedule["ScheduleExpression"] == expression
    assert schedule["ScheduleExpressionTimezone"] == "Asia/Tokyo"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert json.loads(target["Input"]) == {
        "schedule": name,
        "at": "<aws.scheduler.scheduled-time>",
    }
    assert joined(target["Arn"]).startswith("<FunctionsSchedule")
    assert joined(target["DeadLetterConfig"]["Arn"]).startswith("<QueuesDead")


def test_cluster_without_hours_is_only_reconciled(tmp_path):
    made = synthesized(tmp_path, dev_file(schedules=None))["tidegate-dev"]

    schedule = made.one("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "rate(5 minutes)"
    assert joined(schedule["Target"]["Arn"]).startswith("<FunctionsReconcile")
    assert made.one("AWS::Scheduler::ScheduleGroup")["Name"] == "tidegate-dev"


ALARMS = {
    "DeadNotEmpty": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", 0, 1),
    "DeadLooksNotEmpty": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", 0, 1),
    "LooksWait": ("AWS/SQS", "ApproximateAgeOfOldestMessage", 360, 2),
    "NoticesWait": ("AWS/SQS", "ApproximateAgeOfOldestMessage", 360, 2),
    "LookFailed": ("Tidegate", "LookFailed", 0, 2),
    "AgentSilent": ("Tidegate", "DigestAge", 360, 1),
    "LaunchesRefused": ("Tidegate", "RefusedOther", 0, 7),
    "JobsWait": ("Tidegate", "OldestWait", 0, 2),
    "BootFailed": ("Tidegate", "BootFailed", 0, 1),
    "BadEvents": ("Tidegate", "BadEvents", 0, 1),
    "NearLimit": ("Tidegate", "LimitUsed", 89.9, 5),
    "GpusUnused": ("Tidegate", "GpuUse", 10, 6),
    "LostCapacity": ("Tidegate", "LostNodes", 0, 3),
    "BudgetNearlySpent": ("Tidegate", "BudgetUsed", 79.9, 1),
    "HeadHangs": ("AWS/EC2", "StatusCheckFailed_Instance", 0, 3),
    "HeadHostFails": ("AWS/EC2", "StatusCheckFailed_System", 0, 2),
    **{
        f"{function}{metric}": ("AWS/Lambda", metric, 0, 1)
        for function in ("Planner", "Interruption", "Schedule", "Reconcile")
        for metric in ("Errors", "Throttles")
    },
}


REBOOT = ["arn:<AWS::Partition>:automate:us-east-1:ec2:reboot"]


def test_there_are_these_alarms_and_each_reaches_the_topic(dev: Stack):
    found = {alarm["AlarmName"]: alarm for alarm in dev.all("AWS::CloudWatch::Alarm")}
    topic = f"<{dev.logical_id('AlarmsTopic', 'AWS::SNS::Topic')}>"

    assert found.keys() == {f"tidegate-dev-{name}" for name in ALARMS}
    for name, (namespace, metric, above, periods) in ALARMS.items():
        alarm = found[f"tidegate-dev-{name}"]
        assert (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
        assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (above, periods)
        compares = "LessThanThreshold" if name == "GpusUnused" else "GreaterThanThreshold"
        assert alarm["ComparisonOperator"] == compares
        assert namespace != "Tidegate" or metric in MINIMAL  # else it would never fire
        does = REBOOT if name == "HeadHangs" else []
        assert [joined(action) for action in alarm["AlarmActions"]] == [topic, *does]


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("NearLimit", "Minimum"),  # all of the minute, not one look
        ("GpusUnused", "Maximum"),  # not even for a moment
        ("LostCapacity", "Maximum"),
        ("BudgetNearlySpent", "Maximum"),
        ("AgentSilent", "Maximum"),
        ("LookFailed", "Minimum"),  # one that succeeds is enough
        ("JobsWait", "Minimum"),
    ],
)
def test_an_alarm_looks_at_the_right_end_of_its_figure(dev: Stack, name: str, statistic: str):
    assert dev.named(f"Alarms{name}", "AWS::CloudWatch::Alarm")["Statistic"] == statistic


def test_alarms_are_those_of_this_cluster(dev: Stack):
    assert dev.named("AlarmsLookFailed", "AWS::CloudWatch::Alarm")["Dimensions"] == [
        {"Name": "cluster", "Value": "dev"},
        {"Name": "service", "Value": "cluster"},
    ]


def test_a_refusal_rings_until_it_has_been_tried_again(dev: Stack):
    alarm = dev.named("AlarmsLaunchesRefused", "AWS::CloudWatch::Alarm")

    assert alarm["DatapointsToAlarm"] == 1
    assert alarm["EvaluationPeriods"] * alarm["Period"] > Timings().rest_max_s


def test_alarms_are_mailed_to_whom_the_file_names(dev: Stack, tmp_path):
    told = synthesized(tmp_path, dev_file(alarm_email="ops@example.org"))["tidegate-dev"]

    subscription = told.one("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.org")
    assert dev.all("AWS::SNS::Subscription") == []


def test_full_metrics_come_with_a_dashboard_of_figures_that_exist(dev: Stack, tmp_path):
    owners = {"sender": "tidegate@example.org", "address": "{user}@example.org"}
    file = dev_file(metrics="full", notifications={"owners": owners})
    full = synthesized(tmp_path, file)["tidegate-dev"]
    sources = (*(ROOT / "tidegate" / "service").glob("*.py"), *(ROOT / "lambdas").glob("*.py"))
    written = "".join(source.read_text() for source in sources)

    body = full.one("AWS::CloudWatch::Dashboard")["DashboardBody"]
    told = json.loads("".join(p if isinstance(p, str) else "x" for p in body["Fn::Join"][1]))
    graphs = [each["properties"] for each in told["widgets"] if each["type"] == "metric"]
    names = {line[1] for graph in graphs for line in graph["metrics"] if line[0] == "Tidegate"}

    assert names == {name for _, _, of in (*GRAPHS, MAILS) for name in of}
    (boots,) = [each["properties"] for each in told["widgets"] if each["type"] == "log"]
    asked = set(re.findall(r"avg\(boot\.stages\.(\w+)\)", boots["query"]))
    groups = {each["LogGroupName"] for each in full.all("AWS::Logs::LogGroup")}

    assert asked == {name.rpartition("/")[2] for name in NODE_STAGES}
    assert any(f"'{group}'" in boots["query"] for group in groups)
    missing = {name for name in names if f'"{name}"' not in written and f"{name}=" not in written}
    assert not missing
    assert dev.all("AWS::CloudWatch::Dashboard") == []
