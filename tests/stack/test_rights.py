"""Nothing is granted that nobody uses, and what is granted is missed when it is taken away.

`make rights` tries the second with every right of every function.
"""

from collections.abc import Callable

import pytest

from local.iam.roles import role_arns
from tests.stack import story
from tests.stack.rights import UNUSED, function_rights, withdraw
from tests.stack.world import StackWorld

type Chapter = Callable[[StackWorld], story.Missing]


def test_no_function_has_a_right_that_the_story_does_not_use(world: StackWorld):
    assert list(story.whole(world)) == []

    roles = role_arns(world.deployment.resources)
    unused = {
        f"{role} {grant.action}"
        for role, arn in roles.items()
        if role.startswith(("Functions", "Hours"))
        for grant in world.cloud.authorizer.unused_grants(arn)
    }

    assert unused == UNUSED.keys()
    assert world.trouble() == []


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
