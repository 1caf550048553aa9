"""Nothing is granted that nobody uses, and what is granted is missed when it is taken away.

`make rights` tries the second with every right.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from local.stack_world import StackWorld
from tests.assemblies import assembled
from tests.stack import machines, story
from tests.stack.rights import (
    UNUSED,
    UNUSED_OF_STRICT,
    function_rights,
    strict_rights,
    unused,
    withdraw,
)
from tests.stack.test_probe import resources, role_actions
from tests.stack.world import stacked, strict_file
from tidegate.cli.probe.rights import roles_do
from tidegate.wire.config import load_cluster

type Chapter = Callable[[StackWorld], story.Missing]


def test_no_function_has_a_right_that_the_story_does_not_use(world: StackWorld):
    assert list(story.whole(world)) == []

    assert unused(world, function_rights(world)) == UNUSED.keys()
    assert world.trouble() == []


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strict")
    return assembled(strict_file(folder), folder / "cdk.out")


def test_no_machine_and_no_key_has_a_right_that_their_story_does_not_use(strict: Path):
    with stacked(strict) as world:
        assert list(machines.whole(world)) == []

        assert unused(world, strict_rights(world)) == UNUSED_OF_STRICT.keys()
        assert world.trouble() == []


def test_a_probe_asks_a_boundary_for_a_stricter_account_s_rights_too(strict: Path, tmp_path: Path):
    file = load_cluster(strict_file(tmp_path))

    assert role_actions(resources(strict)) == set(roles_do(file))


WITHOUT = {
    "FunctionsScheduleRole kms:CreateGrant": "the head is stopped in the morning",
    # Its look may come before the story's and make up for the cron.
    "FunctionsReconcileRole kms:CreateGrant": "the head is stopped in the morning",
    "NodesRole kms:Decrypt": "NodesRole: no Munge key",
    "HeadRole s3:ListBucket own/VerdictsIfAny": "no word that nothing is decided yet",
    "HeadRole s3:ListBucket own/PackagesListed": "HeadRole: no list of packages",
    "HeadRole s3:GetObject own/Packages": "HeadRole: no key of packages",
    "NodesRole s3:ListBucket": "NodesRole: no list of packages",
    "NodesRole s3:GetObject own/Packages": "NodesRole: no packages",
    "HeadRole elasticfilesystem:ClientRootAccess": "HeadRole: no ClientRootAccess",
    "NodesRole logs:CreateLogStream": "node logs: no stream",
    "NodesRole logs:DescribeLogStreams": "node logs: no list of streams",
    "NodesRole logs:PutLogEvents": "node logs: no records",
    "NetworkOwnFlowRole logs:DescribeLogGroups": "flow logs: no groups",
}


def test_each_right_of_a_machine_and_of_a_key_is_missed(strict: Path):
    """Several at once: each is missed at another place."""
    with stacked(strict) as world:
        found = strict_rights(world)
        rights = {f"{each} {each.grant.statement}": each for each in found}
        rights |= {str(each): each for each in found}
        for name in WITHOUT:
            withdraw(world, rights[name])

        told = "\n".join(machines.whole(world))

        assert [missing for missing in WITHOUT.values() if missing not in told] == []
        denied = {name: f"denied: {name.split()[1]}" for name in WITHOUT}
        assert set(denied.values()) <= set(world.trouble())


def test_without_its_right_on_the_key_the_planner_buys_nothing(strict: Path):
    with stacked(strict) as world:
        (found,) = [
            each
            for each in strict_rights(world)
            if str(each) == "FunctionsPlannerRole kms:CreateGrant"
        ]
        withdraw(world, found)

        assert story.buy(world) == []
        assert "denied: kms:CreateGrant" in world.trouble()


@pytest.mark.parametrize(
    ("right", "chapter", "missing"),
    [
        ("HoursRole lambda:InvokeFunction", story.opening, "no look"),
        ("FunctionsReconcileRole sqs:SendMessage", story.opening, "no look"),
        ("FunctionsPlannerRole dynamodb:Query", story.day, "no node for a waiting job"),
        ("FunctionsPlannerRole iam:PassRole", story.day, "no node for a waiting job"),
        ("FunctionsInterruptionRole sqs:SendMessage", story.day, "no drain after a notice"),
        ("FunctionsPlannerRole ec2:TerminateInstances", story.day, "2 idle nodes stay"),
    ],
)
def test_a_right_taken_away_is_missed(
    world: StackWorld, right: str, chapter: Chapter, missing: str
):
    (found,) = [each for each in function_rights(world) if str(each) == right]
    withdraw(world, found)

    assert missing in list(chapter(world))
    assert f"denied: {found.grant.action}" in world.trouble()
