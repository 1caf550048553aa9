"""Nothing is granted that nobody uses.

What is not granted is denied (local/iam), and the stories want no denial: so a right that is
used here cannot be taken away without a failing test.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack import story
from tests.stack.world import StackWorld, stacked

# Rights of moments that the story does not have.
UNUSED = {
    # Whoever of the functions first meets a new ledger draws its lineage; here the planner.
    ("FunctionsSchedule", "dynamodb:PutItem"),
    ("FunctionsReconcile", "dynamodb:PutItem"),
    ("FunctionsInterruption", "dynamodb:PutItem"),
    # Only one of the two finds the head to be stopped, and the same one starts it.
    ("FunctionsSchedule", "ec2:StopInstances"),
    ("FunctionsSchedule", "dynamodb:UpdateItem"),
    ("FunctionsReconcile", "ec2:StartInstances"),
    # A notice that comes before the first digest.
    ("FunctionsInterruption", "s3:ListBucket"),
    # An event that Scheduler could not deliver.
    ("Hours", "sqs:SendMessage"),
}


@pytest.fixture(scope="module")
def told(assembly: Path) -> Iterator[StackWorld]:
    with stacked(assembly) as world:
        story.whole(world)
        yield world


def test_no_function_has_a_right_that_the_story_does_not_use(told: StackWorld):
    unused = {
        (name.split("Role")[0], grant.action)
        for name, (kind, role) in told.deployment.resources.items()
        if kind == "AWS::IAM::Role" and name.startswith(("Functions", "Hours"))
        for grant in told.cloud.authorizer.unused_grants(f"arn:aws:iam::123456789012:role/{role}")
    }

    assert unused <= UNUSED
    assert list(told.cloud.authorizer.log.denied) == []
    assert list(told.cloud.authorizer.log.not_modelled) == []
