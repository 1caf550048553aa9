"""The four functions and what starts them."""

import json
import re
from fnmatch import fnmatch

import pytest

from tests.cdk.made import Properties, Stack, dev_file, joined, synthesized
from tidegate.wire.settings import FunctionSettings

NAMES = ("planner", "interruption", "schedule", "reconcile")


def function(stack: Stack, name: str) -> Properties:
    (found,) = [
        each
        for each in stack.all("AWS::Lambda::Function")
        if each["FunctionName"] == f"tidegate-dev-{name}"
    ]
    return found


def environment(stack: Stack, name: str) -> dict[str, str]:
    variables = function(stack, name)["Environment"]["Variables"]
    return {variable: joined(value) for variable, value in variables.items()}


def test_there_are_four_and_the_cdk_adds_none_of_its_own(dev: Stack):
    assert len(dev.all("AWS::Lambda::Function")) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_function_runs_on_arm_without_tracing(dev: Stack, name):
    found = function(dev, name)

    assert found["Architectures"] == ["arm64"]
    assert found["Runtime"] == "python3.13"
    assert (found["MemorySize"], found["Timeout"]) == (512, 45)
    assert found["Handler"] == f"lambdas.{name}.handler"
    assert "TracingConfig" not in found


@pytest.mark.parametrize("name", NAMES)
def test_function_s_own_log_is_kept_for_a_month(dev: Stack, name):
    group = joined(function(dev, name)["LoggingConfig"]["LogGroup"]).strip("<>")
    log = dev.template["Resources"][group]["Properties"]

    assert log["LogGroupName"] == f"/tidegate/dev/{name}"
    assert log["RetentionInDays"] == 30


@pytest.mark.parametrize("name", NAMES)
def test_function_can_read_its_settings(dev: Stack, name):
    settings = FunctionSettings.from_environment(environment(dev, name))

    assert settings.cluster_key.endswith(".tidegate-dev")
    assert settings.table.startswith("<StorageLedger")
    assert settings.bucket.startswith("<StorageDigests")
    assert settings.bus.startswith("<EventsBus")
    assert settings.look_queue_url.startswith("<QueuesLooks")
    assert settings.dead_look_queue_url.startswith("<QueuesDeadLooks")
    assert settings.urgent_queue_url.startswith("<QueuesUrgent")
    assert settings.routine_queue_url.startswith("<QueuesRoutine")
    assert list(settings.subnets) == ["us-east-1a", "us-east-1b"]
    for pool, (template_id, version, digest) in settings.templates.items():
        assert template_id.startswith(f"<NodesPool{pool}")
        assert version == f"{template_id[:-1]}.LatestVersionNumber>"
        assert re.fullmatch(r"[0-9a-f]{8}-" + re.escape(version), digest)


@pytest.mark.parametrize("name", NAMES)
def test_function_names_itself_in_logs_and_metrics(dev: Stack, name):
    found = environment(dev, name)

    assert found["POWERTOOLS_SERVICE_NAME"] == name
    assert found["POWERTOOLS_METRICS_NAMESPACE"] == "Tidegate"
    assert found["POWERTOOLS_LOG_LEVEL"] == "INFO"


@pytest.mark.parametrize(
    ("name", "queue"), [("planner", "Looks"), ("interruption", "Interruptions")]
)
def test_queue_feeds_its_function_in_batches_of_which_parts_may_fail(dev: Stack, name, queue):
    feed = dev.named(f"Functions{name.capitalize()}Feed", "AWS::Lambda::EventSourceMapping")

    assert feed["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert joined(feed["EventSourceArn"]).startswith(f"<Queues{queue}")
    assert joined(feed["FunctionName"]).startswith(f"<Functions{name.capitalize()}")


def test_storm_of_notices_is_a_few_large_batches_two_at_a_time(dev: Stack):
    storm = dev.named("FunctionsInterruptionFeed", "AWS::Lambda::EventSourceMapping")
    looks = dev.named("FunctionsPlannerFeed", "AWS::Lambda::EventSourceMapping")

    assert (storm["BatchSize"], storm["MaximumBatchingWindowInSeconds"]) == (100, 1)
    assert storm["ScalingConfig"] == {"MaximumConcurrency": 2}
    assert looks["BatchSize"] == 10
    assert "ScalingConfig" not in looks
    assert "MaximumBatchingWindowInSeconds" not in looks


def test_planner_alone_may_be_woken_by_its_own_messages_any_number_of_times(dev: Stack):
    """Lambda stops the 17th look of a chain by default, and SQS then blocks the queue's one group
    until the message has died. Source: Lambda guide, "recursive loop detection".
    """
    by_name = {name: function(dev, name).get("RecursiveLoop", "Terminate") for name in NAMES}

    assert by_name == dict.fromkeys(NAMES, "Terminate") | {"planner": "Allow"}


@pytest.mark.parametrize("name", ["schedule", "reconcile"])
def test_scheduled_event_that_keeps_failing_ends_with_the_dead(dev: Stack, name):
    dead = joined(function(dev, name)["DeadLetterConfig"]["TargetArn"])

    assert dead.startswith("<QueuesDead")
    assert not dead.startswith("<QueuesDeadLooks")


def test_rights_of_a_deployment_let_functions_of_the_one_before_start(tmp_path):
    """CloudFormation changes the role first and the function that has the file's new name behind
    it; and what IAM was told counts some seconds later.
    """
    made = [
        synthesized(tmp_path / str(number), dev_file(limits={"nodes": str(number)}))["tidegate-dev"]
        for number in (3, 4)
    ]
    before, after = (environment(each, "interruption") for each in made)
    role = made[1].named("FunctionsInterruptionRole", "AWS::IAM::Role")
    (may,) = [
        joined(each["Resource"])
        for each in role["Policies"][0]["PolicyDocument"]["Statement"]
        if each["Sid"] == "ClusterFile"
    ]

    keys = [each["TIDEGATE_CLUSTER_KEY"] for each in (before, after)]
    bucket = before["TIDEGATE_CLUSTER_BUCKET"]
    assert keys[0] != keys[1]
    assert [fnmatch(f"arn:aws:s3:::{bucket}/{key}", may) for key in keys] == [True, True]


def test_cluster_file_goes_up_and_a_change_of_it_reaches_the_functions(tmp_path):
    before, after = dev_file(), dev_file(limits={"nodes": "3"})

    keys: set[str] = set()
    for described in (before, after):
        stack = synthesized(tmp_path / str(len(keys)), described)["tidegate-dev"]
        key = environment(stack, "planner")["TIDEGATE_CLUSTER_KEY"]
        keys.add(key)

        deployed = (stack.folder / f"asset.{key}").read_text()
        assert json.loads(deployed) == described
    assert len(keys) == 2
