"""`status`, `nodes` and `events`, of a cluster in the local cloud that has looked."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from tests.cli.conftest import Town
from tests.make import job, node
from tidegate.adapters.aws_errors import translate
from tidegate.cli.main import app
from tidegate.core.model.ec2 import Market, Offering, Template
from tidegate.core.model.events import NodeOrphaned
from tidegate.core.model.ledger import InterruptionLoss
from tidegate.core.model.resting import Resting


def bought(town: Town) -> str:
    """One node for job 1, after EC2 refused the first offering; job 2 fits nowhere."""
    town.cloud.capacity.dry.add(Offering("g4dn.xlarge", "us-east-1a", Market.SPOT))
    town.report([job(1), job(2, gpus=64)])
    town.look()
    (found,) = town.ask_json("nodes")
    return str(found["name"])


def test_status_tells_queue_pools_and_what_rests(town: Town) -> None:
    bought(town)

    result = town.ask("status")

    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == f"{town.names.cluster}: up: the cluster file has no schedules"
    assert lines[1].startswith("head heard ")
    assert lines[2] == "jobs: 0 run, 1 start soon, 1 wait"
    assert "1 of 8 GPUs" in result.output
    assert (
        "g4dn.xlarge/us-east-1a/spot, EC2 said InsufficientInstanceCapacity (1x)" in result.output
    )
    (rests,) = (line for line in lines if line.startswith("rests until "))
    assert rests.endswith("EC2 said InsufficientInstanceCapacity (1x)")


def test_status_tells_what_a_node_said_whose_failure_stops_nothing(town: Town) -> None:
    bought(town)
    ledger, now_s = town.planner.work.control.ledger, time.time()
    (record,) = ledger.view().nodes
    (history,) = ledger.view().pool_history
    assert ledger.learn(replace(history, good=Template("lt-1", "1", record.template)))
    failed = Resting(record.offering, now_s + 1440, 1, "BootstrapFailed", "stage gpu failed on i-1")
    ours = replace(failed, pool=record.pool, template=record.template, since_s=now_s)

    ledger.rest(ours)
    (once,) = (line for line in town.ask("status").output.splitlines() if "stage gpu" in line)
    ledger.rest(replace(ours, failures=2))
    twice = town.ask("status").output.splitlines()

    words = f"{record.offering} of pool {record.pool}, BootstrapFailed: stage gpu failed on i-1"
    assert once == f"a node failed, another may be bought: {words} (1x)"
    (rests,) = (line for line in twice if line.startswith("rests until ") and "stage gpu" in line)
    assert rests.endswith(f"{words} (2x)")


def test_status_tells_of_jobs_that_wait_for_more_reasons_than_it_shows(town: Town) -> None:
    town.report([job(number, gpus=60 + number) for number in range(1, 8)])
    town.look()

    lines = town.ask("status").output.splitlines()

    assert sum(" wait: " in line for line in lines) == 5
    assert "  2 wait for other reasons: tidegate why JOBID" in lines


def test_status_has_an_exit_code_for_what_needs_a_look(town: Town) -> None:
    name = bought(town)
    town.report(nodes=[node(name, state="DOWN", reason="Not responding")])

    result = town.ask("status")

    assert result.exit_code == 3
    assert f"! node {name} is DOWN: Not responding" in result.output
    assert town.ask_json("status")["needs_a_look"] == [f"node {name} is DOWN: Not responding"]


def test_status_tells_what_aws_took_back_this_month(town: Town) -> None:
    name = bought(town)
    assert "taken back" not in town.ask("status").output

    ledger = town.planner.work.control.ledger
    ledger.interrupt_nodes({name: time.time() + 120}, {name: InterruptionLoss(2.54, 3)})

    jobs = "3 jobs signalled or requeued in time, 2.5 GPU-hours lost"
    said = f"taken back by AWS this month: 1 node; {jobs}"
    assert said in town.ask("status").output


def test_status_counts_nodes_that_ended_themselves_apart(town: Town) -> None:
    name = bought(town)
    ledger = town.planner.work.control.ledger
    ledger.interrupt_nodes({name: time.time()}, {name: InterruptionLoss()})

    ledger.note_told(NodeOrphaned(name, 1860.0))

    shown = town.ask("status").output
    assert "ended themselves this month, having heard nothing of their head: 1 node" in shown
    assert "taken back" not in shown
    assert town.ask_json("status")["losses"]["orphans"] == 1


def test_a_head_that_never_reported_needs_a_look(town: Town) -> None:
    result = town.ask("status")

    assert result.exit_code == 3
    assert "head heard never, last look never" in result.output


def test_a_report_that_cannot_be_read_is_not_called_a_missing_one(town: Town) -> None:
    town.report()
    key = f"digest/{town.names.cluster}.json.gz"
    town.cloud.client("s3").put_object(Bucket=town.names.bucket, Key=key, Body=b"?")

    result = town.ask("status")

    assert result.exit_code == 3
    assert "! dropped a digest that cannot be read" in result.output


def test_alarms_that_fire_are_told_with_what_they_mean(town: Town) -> None:
    bought(town)
    prefix = f"tidegate-{town.names.cluster}"
    cloudwatch = town.cloud.client("cloudwatch")
    for name in (f"{prefix}-LostCapacity", f"{prefix}-AgentSilent", f"{prefix}x-LostCapacity"):
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            AlarmDescription="nodes are paid for and nobody can use them.",
            Namespace="Tidegate",
            MetricName="LostNodes",
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
        )
    for name in (f"{prefix}-LostCapacity", f"{prefix}x-LostCapacity"):
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="test")

    (firing,) = town.ask_json("status")["alarms"]

    assert firing["name"] == "LostCapacity"
    result = town.ask("status")
    assert result.exit_code == 3
    assert "! alarm LostCapacity since " in result.output


def test_spent_budgets_and_gpus_are_told(town: Town) -> None:
    town.file.write_text(f"{town.file.read_text()}\nbudget: {{usd_per_month: 100}}\n")
    bought(town)

    words = town.ask("status").output

    assert "GPUs: 1 paid for, 0 usable, 0 busy" in words
    assert "spent by cluster this month: 0.00 of 100.00 USD" in words


def test_nodes_tell_their_stage_cost_and_end(town: Town) -> None:
    name = bought(town)

    words = town.ask("nodes").output

    assert name in words
    assert "given up 960 s after its launch" in town.ask_json("nodes")[0]["ends"]
    (line,) = (line for line in words.splitlines() if name in line)
    assert "t4, g4dn.xlarge/us-east-1b/spot" in line
    assert line.count("given up 960 s after its launch") == 1
    assert town.ask("nodes", "--pool", "a10g").output == "no nodes\n"
    assert town.ask("nodes", "--pool", "x").exit_code == 2


def test_events_tell_what_looks_did_by_job_node_and_pool(town: Town) -> None:
    name = bought(town)

    def kinds(*words: str) -> list[str]:
        return [each["kind"] for each in town.ask_json("events", *words)]

    assert kinds() == ["decision", "launched", "refused"]
    assert kinds("--job", "1") == ["decision", "launched"]
    assert kinds("--job", "2") == []
    assert kinds("--node", name) == ["launched"]
    assert kinds("--pool", "t4") == ["decision", "launched", "refused"]
    assert kinds("--pool", "a10g") == []


def test_events_of_people_are_a_line_each_and_end_with_their_time(town: Town) -> None:
    name = bought(town)

    lines = town.ask("events").output

    assert f"launched  EC2 gave {name} g4dn.xlarge/us-east-1b/spot" in lines
    assert json.loads(town.ask("events", "--since", "0s", "--output", "json").output) == []


@pytest.mark.parametrize("code", ["ExpiredTokenException", "InvalidClientTokenId"])
def test_who_is_unknown_to_aws_hears_what_to_do(town: Town, code: str) -> None:
    def clients(_: str) -> Any:
        refused: Any = {"Error": {"Code": code, "Message": "The security token is expired"}}
        raise translate(ClientError(refused, "GetFunctionConfiguration"))

    done = CliRunner().invoke(app, ["status", "--cluster", str(town.file)], obj=clients)

    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"AWS does not know who asks: {code}: GetFunctionConfiguration: The")
    assert "tidegate --profile NAME" in line


def test_watching_looks_again_until_it_is_interrupted(town: Town) -> None:
    town.report([job(1)])
    looks = 0

    def clients(service: str) -> Any:
        nonlocal looks
        looks += service == "lambda"
        if looks == 2:
            raise KeyboardInterrupt
        return town.client(service)

    words = ["status", "--watch", "--cluster", str(town.file)]
    done = CliRunner().invoke(app, words, obj=clients)

    assert (done.exit_code, looks) == (0, 2)
    assert "jobs: 0 run, 0 start soon, 0 wait, 1 " in done.output


@pytest.mark.parametrize(
    "words", [["events", "--since", "soon"], ["status", "--watch", "--output", "json"]]
)
def test_what_cannot_be_meant_has_the_exit_code_of_usage(town: Town, words: list[str]) -> None:
    assert town.ask(*words).exit_code == 2


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_head_that_is_silent_is_told_with_what_ec2_says_of_it(
    town: Town, *, is_stopped: bool
) -> None:
    ec2 = town.cloud.client("ec2")
    tags = {"tidegate:cluster": town.names.cluster, "tidegate:role": "head"}
    made = ec2.run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    )
    name = made["Instances"][0]["InstanceId"]
    if is_stopped:
        ec2.stop_instances(InstanceIds=[name])

    result = town.ask("status")

    assert result.exit_code == 3
    said = f"! EC2 says that the head {name} is "
    start = f"stopped; start it: aws ec2 start-instances --instance-ids {name}\n"
    assert said in result.output
    assert (said + start in result.output) is is_stopped


def test_a_head_that_ec2_does_not_show_is_told(town: Town) -> None:
    assert f"! EC2 shows no head: make it again: npx cdk deploy tidegate-{town.names.cluster}" in (
        town.ask("status").output
    )
