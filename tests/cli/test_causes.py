"""A new user in front of a broken cluster: `why` or `status` names the cause.

The local cloud's real EC2, DynamoDB and S3 stand behind the functions and the commands; the head
and the nodes' last words are the test's.
"""

import time

import pytest

from lambdas.interruption import on_events
from tests.cli.conftest import Town
from tests.lambdas.conftest import messages
from tests.make import job
from tidegate.core.ec2 import Market, Offering
from tidegate.core.slurm import Job
from tidegate.wiring.function import function
from tidegate.wiring.interruption import interruptions

TYPES = ("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge")


def asked(town: Town, *words: str) -> tuple[int, str]:
    """The exit code of a command, and what it says in one line."""
    result = town.ask(*words)
    assert max(map(len, result.output.splitlines())) <= 100
    return result.exit_code, " ".join(result.output.split())


def nodes(town: Town) -> list[str]:
    filters = [
        {"Name": "tag:tidegate:cluster", "Values": [town.names.cluster]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    found = town.cloud.client("ec2").describe_instances(Filters=filters)["Reservations"]
    return [one["InstanceId"] for each in found for one in each["Instances"]]


def gives_up(town: Town, name: str, stage: str, tail: str) -> None:
    """What a node says on its way out (`put_event` in userdata/lib.sh), and EC2 of its end."""
    detail = {"instance-id": name, "role": "node", "stage": stage, "tail": tail}
    event = {"detail-type": "BootstrapFailed", "source": "tidegate.node", "detail": detail}
    ended = {
        "detail-type": "EC2 Instance State-change Notification",
        "source": "aws.ec2",
        "detail": {"instance-id": name, "state": "shutting-down"},
    }
    made = function(interruptions, town.variables, town.cloud.client)
    town.cloud.client("ec2").terminate_instances(InstanceIds=[name])
    assert on_events(made, messages(event, ended)) == {"batchItemFailures": []}


def keeps_failing(town: Town, stage: str, tail: str) -> None:
    """Every kind of node that is bought for job 1 gives up, until none is left to buy."""
    text = town.file.read_text().replace("[us-east-1a, us-east-1b]", "[us-east-1a]")
    town.use(text.replace("[spot, on-demand]", "[spot]"))
    for _ in range(4):
        town.report([job(1)])
        town.look()
        if not (found := nodes(town)):
            return
        for name in found:
            gives_up(town, name, stage, tail)
    raise AssertionError("the planner goes on to buy nodes that fail")


@pytest.mark.parametrize(
    ("stage", "tail"),
    [
        ("driver", "nvidia-smi: driver 470 is older than the 535 that CUDA 12 needs"),
        ("shared", "mount.nfs4: Connection timed out: fs-0a1b is not reachable"),
    ],
)
def test_a_wrong_driver_or_a_file_system_that_cannot_be_mounted(
    town: Town, stage: str, tail: str
) -> None:
    keeps_failing(town, stage, tail)

    code, said = asked(town, "why", "1")

    assert code == 3, said
    assert said.startswith("job 1 waits: ")
    assert f"stage {stage} failed on i-" in said
    assert tail in said
    assert tail in asked(town, "status")[1]


def test_a_limit_that_is_too_low(town: Town) -> None:
    town.report([job(1, nodes=9)])
    town.look()

    code, said = asked(town, "why", "1")

    assert code == 3, said
    assert said.startswith("job 1 waits: pool t4 is limited to 8 GPUs, 0 are used and 9 more")


def test_no_capacity_anywhere(town: Town) -> None:
    for zone in ("us-east-1a", "us-east-1b"):
        markets = (Market.SPOT, Market.ON_DEMAND)
        town.cloud.capacity.dry.update(Offering(t, zone, m) for t in TYPES for m in markets)
    town.report([job(1)])
    for _ in range(2):  # the first one ends while there is more to try, and asks for another
        town.look()

    code, said = asked(town, "why", "1")

    assert code == 3, said
    assert "rest after EC2 refused them, the next try is at " in said
    assert "InsufficientInstanceCapacity" in said


def test_an_agent_that_is_dead(town: Town) -> None:
    """The file that asks calls a head silent after a second; a test cannot wait for minutes."""
    town.report([job(1)])
    town.file.write_text(f"{town.file.read_text()}\ntimings: {{digest_stale_s: 1}}\n")
    time.sleep(2.1)

    code, said = asked(town, "status")

    assert code == 3, said
    assert "! the head was last heard " in said
    assert "the head was last heard " in asked(town, "why", "1")[1]


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (job(1, gpus=64), "job 1 waits: g4dn.12xlarge has 4 GPUs, the job asks 64"),
        (job(1, reason="JobHeldUser"), "release it: scontrol release 1"),
    ],
)
def test_a_job_that_can_never_run_and_one_that_is_held(town: Town, of: Job, says: str) -> None:
    town.report([of])
    town.look()

    code, said = asked(town, "why", "1")

    assert code == 3, said
    assert says in said


def test_a_budget_that_is_spent(town: Town) -> None:
    text = f"{town.file.read_text()}\nbudget_by_account: {{broke: {{usd_per_day: 0.0001}}}}\n"
    town.use(text)
    town.report([job(1, account="broke")])
    town.look()  # its node costs as much in two seconds
    time.sleep(2.1)
    town.report([job(1, account="broke"), job(2, account="broke", nodes=2)])
    town.look()

    code, said = asked(town, "why", "2")

    assert code == 3, said
    assert said.startswith("job 2 waits: the budget of account broke, 0.00 USD per day, is spent")
    assert "! the budget of account broke" in asked(town, "status")[1]
