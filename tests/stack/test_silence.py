"""A planner that cannot judge: `status` says so first, `why` says that nobody has, and since when.

Told with the rights of docs/commands.md, while the planner can write nothing.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import Result

from local.stack_world import StackWorld
from local.trouble import Fault, Trouble
from tests.stack.broken import CLUSTER_FILE, of
from tests.stack.person import terminal
from tests.stack.world import stacked

LOG = "aws logs tail /tidegate/stacked/planner"


type Fails = Callable[[StackWorld, str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Desk:
    """A deployed cluster, and somebody who asks about it."""

    world: StackWorld
    ask: Callable[..., Result]

    def asked(self, *words: str) -> tuple[int, str, str]:
        """Exit code, the first line, and all."""
        result = self.ask(*words)
        return result.exit_code, result.output.splitlines()[0], result.output


@pytest.fixture(scope="module")
def desk(broken: Path) -> Iterator[Desk]:
    with stacked(broken, CLUSTER_FILE, starts=None) as world:
        yield Desk(world, terminal(world, CLUSTER_FILE))


@contextmanager
def denied(world: StackWorld, action: str) -> Iterator[None]:
    """The planner's role may not do this."""
    iam = world.cloud.observer("iam")
    name = f"tidegate-{world.file.cluster.name}-planner"
    role = world.router.deployed.function(name).role_arn.rsplit("/", 1)[-1]
    no = {"Effect": "Deny", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [no]})
    iam.put_role_policy(RoleName=role, PolicyName="fault", PolicyDocument=policy)
    yield
    iam.delete_role_policy(RoleName=role, PolicyName="fault")


@contextmanager
def throttled(world: StackWorld, action: str) -> Iterator[None]:
    trouble = world.cloud.trouble(Trouble(action, Fault.THROTTLED, times=1000))
    yield
    trouble.left = 0


@contextmanager
def cannot_start(world: StackWorld, _: str) -> Iterator[None]:
    """The function fails before it can write a word: the file that it is composed of is gone."""
    name = f"tidegate-{world.file.cluster.name}-planner"
    settings = dict(world.router.deployed.function(name).environment)
    bucket, key = (settings[f"TIDEGATE_CLUSTER_{each}"] for each in ("BUCKET", "KEY"))
    s3 = world.cloud.observer("s3")
    kept = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    s3.delete_object(Bucket=bucket, Key=key)
    environment = {**settings, "COLD": "again"}
    world.cloud.observer("lambda").update_function_configuration(
        FunctionName=name, Environment={"Variables": environment}
    )
    yield
    s3.put_object(Bucket=bucket, Key=key, Body=kept)


@pytest.mark.parametrize(
    ("fault", "action", "says"),
    [
        (denied, "dynamodb:Query", "looks fail: NotAuthorized: AccessDenied"),
        (denied, "dynamodb:PutItem", "looks fail: NotAuthorized: AccessDenied"),
        (throttled, "dynamodb:Query", "looks fail: Throttled: "),
        (throttled, "s3:GetObject", "looks fail: Throttled: "),
        (denied, "s3:PutObject", "no look comes to its end"),
        (cannot_start, "", "no look comes to its end"),
    ],
    ids=["ledger denied", "launches denied", "ledger throttled", "S3 throttled", "mute", "broken"],
)
def test_a_planner_that_cannot_judge_is_told_first(
    desk: Desk, fault: Fails, action: str, says: str
) -> None:
    world = desk.world
    world.report()
    assert desk.asked("status")[0] == 0, desk.asked("status")[2]

    with fault(world, action):
        world.report([of(1, "small")])
        world.age_digest(by_s=100)
    status, why = desk.asked("status"), desk.asked("why", "1")

    assert status[0] == 3
    assert status[1].startswith("! nobody has judged the queue since "), status[2]
    assert says in status[1]
    assert LOG in status[1]
    assert why[0] == 3
    assert why[1].startswith("job 1 waits: nobody has judged the queue since ")
    assert LOG in why[2]
