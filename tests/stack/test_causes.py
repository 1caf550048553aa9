"""A new user in front of a broken cluster: `why` or `status` names the cause.

The stack's own template is deployed, its functions run under their own roles, the head and the
nodes speak under theirs, and who asks has the rights of docs/commands.md.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import Result

from local.deploy import AMI_PARAMETERS
from local.stack_world import StackWorld
from tests import make
from tests.stack.broken import CLUSTER_FILE, ends_as_it_starts, gives_up, of
from tests.stack.person import ROLE, needed, terminal
from tests.stack.world import stacked
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.slurm import Job


@dataclass(frozen=True)
class Desk:
    """A deployed cluster, and somebody who asks about it."""

    world: StackWorld
    ask: Callable[..., Result]

    def asked(self, *words: str) -> tuple[int, str]:
        """The exit code of a command, and what it says in one line."""
        result = self.ask(*words)
        return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def desk(broken: Path) -> Iterator[Desk]:
    """One deployment for all: a partition for each thing that is broken."""
    with stacked(broken, CLUSTER_FILE, starts=None) as world:
        yield Desk(world, terminal(world, CLUSTER_FILE))


@pytest.fixture(autouse=True)
def as_it_should(desk: Desk) -> Iterator[None]:
    """Whatever is broken, nothing of ours fails, and nobody lacks a right."""
    yield
    assert desk.world.trouble() == []


def keeps_failing(world: StackWorld, wanted: Job, stage: str, tail: str) -> None:
    """Every node that is bought for the job gives up, until none is left to buy."""
    before = set(world.nodes())
    for _ in range(4):
        world.report([wanted])
        if not (found := set(world.nodes()) - before):
            return
        for name in found:
            gives_up(world, name, stage, tail)
    raise AssertionError("the planner goes on to buy nodes that fail")


@pytest.mark.parametrize(
    ("wanted", "stage", "tail", "does"),
    [
        (
            of(11, "driver"),
            "driver",
            "nvidia-smi: driver 470 is older than the 535 that CUDA 12 needs",
            "`image: dlami`",
        ),
        (
            of(12, "efs"),
            "shared",
            "mount.nfs4: Connection timed out: fs-0a1b is not reachable",
            "its mount target in the node's zone",
        ),
        (
            of(10, "munge"),
            "munge",
            "this is the Munge key 0a1b2c3d4e5f6071, the cluster's is f1e2d3c4b5a69788",
            "sudo rm /etc/munge/munge.key",
        ),
    ],
    ids=["driver", "efs", "munge"],
)
def test_a_wrong_driver_or_a_file_system_that_cannot_be_mounted(
    desk: Desk, wanted: Job, stage: str, tail: str, does: str
) -> None:
    keeps_failing(desk.world, wanted, stage, tail)

    code, said = desk.asked("why", wanted.job_id)

    assert code == 3, said
    assert said.startswith(f"job {wanted.job_id} waits: ")
    assert f"stage {stage} failed on i-" in said
    assert tail in said
    assert does in said
    code, status = desk.asked("status")
    assert code == 3
    assert tail in status
    assert does in status
    assert "taken back by AWS" not in status


def test_a_limit_that_is_too_low(desk: Desk) -> None:
    desk.world.report([of(13, "small", nodes=9)])

    code, said = desk.asked("why", "13")

    assert code == 3, said
    assert said.startswith(
        "job 13 waits: pool small is limited to 8 GPUs, which allows 8 such nodes;"
    )


def test_no_capacity_anywhere(desk: Desk) -> None:
    dry = {Offering("g5.xlarge", zone, Market.SPOT) for zone in ("us-east-1a", "us-east-1b")}
    desk.world.cloud.capacity.dry.update(dry)
    wanted = of(14, "dry", gpu_type="a10g")
    for _ in range(2):  # the first look ends while there is more to try, and asks for another
        desk.world.report([wanted])

    code, said = desk.asked("why", "14")

    assert code == 3, said
    assert "rest after EC2 refused them, the next try is at " in said
    assert "InsufficientInstanceCapacity" in said


@pytest.mark.parametrize(
    ("job_id", "name", "code", "does"),
    [
        (
            21,
            "g6.xlarge",
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        (
            22,
            "g6.2xlarge",
            "MaxSpotInstanceCountExceeded",
            "aws service-quotas request-service-quota-increase --service-code ec2 "
            "--region us-east-1 --quota-code L-3819A6DF",
        ),
        (23, "g6.4xlarge", "InvalidAMIID.NotFound", "`image:` in the cluster file, then npx cdk"),
        (
            24,
            "g6.8xlarge",
            "InvalidLaunchTemplateId.VersionNotFound",
            "npx cdk deploy tidegate-stacked",
        ),
    ],
    ids=["no spot role", "quota 0", "image gone", "template gone"],
)
def test_a_refusal_that_waiting_does_not_cure(
    desk: Desk, job_id: int, name: str, code: str, does: str
) -> None:
    offering = Offering(name, "us-east-1a", Market.SPOT)
    desk.world.cloud.capacity.refused[offering] = (code, "words of EC2.")
    wanted = of(job_id, "refused", gpu_type="l4", constraint=name)
    for _ in range(2):
        desk.world.report([wanted])

    told, status = desk.asked("why", str(job_id)), desk.asked("status")

    assert told[0] == status[0] == 3
    assert told[1].startswith(
        f"job {job_id} waits: EC2 refuses spot of pool refused, and waiting does not help: "
        f"{code}: words of EC2"
    )
    assert does in told[1]
    assert "wait for the next try" not in told[1]
    whose = " of pool refused" if code.startswith("Invalid") else ""  # another pool's may be good
    assert f"! {offering}{whose}: EC2 refuses it: {code}: words of EC2; " in status[1]
    assert does in status[1]


def test_an_image_that_is_larger_than_the_nodes_root_disk(desk: Desk) -> None:
    images = AMI_PARAMETERS.values()
    desk.world.cloud.capacity.snapshot_gib.update(dict.fromkeys(images, 120))
    try:
        for _ in range(2):
            desk.world.report([of(25, "disk", gpu_type="a10g")])
    finally:
        desk.world.cloud.capacity.snapshot_gib.clear()

    code, said = desk.asked("why", "25")

    assert code == 3, said
    assert "InvalidBlockDeviceMapping: Volume of size 100GB is smaller than snapshot" in said
    assert "expect size >= 120GB" in said
    assert "`root_gib` of the pool" in said


def test_a_disk_whose_key_the_planner_may_not_use(desk: Desk) -> None:
    """EC2 takes the launch, and ends the instance as it starts."""
    wanted, before = of(26, "key", gpu_type="a10g"), set(desk.world.nodes())
    desk.world.report([wanted])
    (name,) = set(desk.world.nodes()) - before
    ends_as_it_starts(desk.world, name, "Client.InternalError", "Client error on launch")
    desk.world.report([wanted])

    told, status = desk.asked("why", "26"), desk.asked("status")

    assert told[0] == status[0] == 3
    for _, said in (told, status):
        assert f"EC2 ended {name} as it started: Client.InternalError" in said
        assert "`kms_key` in the cluster file" in said


def test_an_agent_that_is_dead(desk: Desk) -> None:
    desk.world.report([of(15, "small")])
    desk.world.age_digest(by_s=3600)

    code, said = desk.asked("status")

    assert code == 3, said
    assert "! the head was last heard 36" in said
    assert "the head was last heard 36" in desk.asked("why", "15")[1]


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (of(16, "small", gpus=64), "job 16 waits: g4dn.12xlarge has 4 GPUs, the job asks 64"),
        (of(17, "small", reason="JobHeldUser"), "release it: scontrol release 17"),
    ],
    ids=["impossible", "held"],
)
def test_a_job_that_can_never_run_and_one_that_is_held(desk: Desk, wanted: Job, says: str) -> None:
    desk.world.report([wanted])

    code, said = desk.asked("why", wanted.job_id)

    assert code == 3, said
    assert says in said


def test_a_budget_that_is_spent(desk: Desk) -> None:
    first = of(18, "rich", gpu_type="a10g", account="broke")
    desk.world.report([first])
    time.sleep(0.1)  # its node costs more than that
    desk.world.report([first, of(19, "rich", gpu_type="a10g", account="broke", nodes=2)])

    code, said = desk.asked("why", "19")

    assert code == 3, said
    assert said.startswith("job 19 waits: the budget of account broke, 0.00 USD per day, is spent")
    assert "! the budget of account broke" in desk.asked("status")[1]


@pytest.fixture
def busy(desk: Desk) -> str:
    """A node with an array's first task, beside jobs of every kind that wait."""
    desk.world.report([of(30, "small")])
    every = json.loads(desk.ask("nodes", "--pool", "small", "--output", "json").output)
    node = str(every[0]["name"])
    task = replace(of(40, "small", on=[node], array_job_id="40"), job_id="40_1")
    rest = of(40, "small", array_job_id="40", count=3, gpus=64)
    parts = [of(n, "small", het_job_id="50", gpus=64) for n in (50, 51)]
    requeued = of(60, "small", reason="NodeDown")
    jobs = [task, rest, *parts, requeued, of(70, "efs")]
    desk.world.report(jobs, [make.node(node, gpus_alloc=1, state="MIXED")])
    return node


def without_seconds(said: str) -> str:
    """A countdown differs between two askings."""
    return re.sub(r"\b\d+ s\b", "N s", said)


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        ("40_1", 0, "job 40_1 runs on NODE"),
        ("40_2", 3, "3 tasks of the array wait like this one"),
        ("40", 3, "other tasks, RUNNING: 40_1"),
        ("50+1", 3, "other components, PENDING: 51"),
        ("60", 0, "its node went away, so it was requeued"),
        ("99", 4, "job 99 is not in the queue"),
    ],
)
def test_every_kind_of_job_hears_of_itself(
    desk: Desk, busy: str, asked: str, code: int, says: str
) -> None:
    told = desk.asked("why", asked)
    found = json.loads(desk.ask("why", asked, "--output", "json").output)

    assert told[0] == code, told[1]
    assert says.replace("NODE", busy) in told[1]
    assert without_seconds(told[1]).startswith(without_seconds(found["headline"]))


def test_nobody_needs_more_rights_than_the_page_says(desk: Desk) -> None:
    desk.world.report([of(20, "small")])
    for words in (("why", "20"), ("status",), ("nodes",), ("events",)):
        assert desk.asked(*words)[0] in (0, 3)

    used = {each.action for each in desk.world.cloud.authorizer.log.used if ROLE in each.principal}
    assert used == needed()
