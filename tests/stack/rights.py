"""Whether anybody notices when a function lacks a right that the template grants it.

`python -m tests.stack.rights` (`make rights`) tells the whole story once for each granted
action of each function, with that action taken out of the deployed role; ends with 1 when one
was not missed.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from local.assembly import synthesize
from local.iam.authorizer import Grant
from local.iam.roles import role_arns
from tests.stack import story
from tests.stack.world import CLUSTER_FILE, StackWorld, stacked

# Rights of moments that the story does not have -> which those are.
UNUSED = {
    "FunctionsScheduleRole dynamodb:PutItem": "the planner meets the new ledger first",
    "FunctionsScheduleRole ec2:StopInstances": "reconcile finds the head without nodes",
    "FunctionsScheduleRole dynamodb:UpdateItem": "reconcile finds the head without nodes",
    "FunctionsReconcileRole ec2:StartInstances": "the cron starts the head",
    "FunctionsInterruptionRole s3:ListBucket": "no notice comes before the first digest",
    "HoursRole sqs:SendMessage": "Scheduler could deliver every event",
}

# moto and the functions' processes share two cores well enough.
NUM_PROCESSES = 2

# Of each thing that goes wrong, in the table.
SAID_CHARS = 60


@dataclass(frozen=True, slots=True)
class Right:
    """A role, named as in the template, and one of its grants."""

    role: str
    grant: Grant

    def __str__(self) -> str:
        return f"{self.role} {self.grant.action}"


def function_rights(world: StackWorld) -> list[Right]:
    """Those of the functions, and of the role under which schedules start them."""
    return [
        Right(role, grant)
        for role, arn in role_arns(world.deployment.resources).items()
        if role.startswith(("Functions", "Hours"))
        for grant in world.cloud.authorizer.grants(arn)
    ]


def withdraw(world: StackWorld, right: Right) -> None:
    """Take the action out of its statement in the deployed role."""
    iam = world.cloud.observer("iam")
    policy, sid = right.grant.statement.split("/")
    place = {"RoleName": right.grant.role_arn.rsplit("/", 1)[-1], "PolicyName": policy}
    document = iam.get_role_policy(**place)["PolicyDocument"]
    document["Statement"] = list(_without(document["Statement"], sid, right.grant.action))
    iam.put_role_policy(**place, PolicyDocument=json.dumps(document))


def _without(statements: Sequence[dict[str, Any]], sid: str, action: str) -> Iterator[Any]:
    for each in statements:
        listed = each["Action"] if isinstance(each["Action"], list) else [each["Action"]]
        left = [one for one in listed if each["Sid"] != sid or one != action]
        if left:
            yield {**each, "Action": left}


def told_without(assembly: Path, right: Right) -> list[str]:
    """What goes wrong in the story without this right."""
    with stacked(assembly) as world:
        withdraw(world, right)
        missing = list(story.whole(world))
        return [*missing, *world.trouble()]


def main() -> int:
    console = Console()
    with TemporaryDirectory() as folder:
        assembly = synthesize(CLUSTER_FILE, Path(folder))
        with stacked(assembly) as world:
            rights = function_rights(world)
        table = Table("role and action", "statement", "what goes wrong without it")
        unnoticed = 0
        with ProcessPoolExecutor(NUM_PROCESSES) as pool:
            found = pool.map(told_without, [assembly] * len(rights), rights)
            for right, wrong in zip(rights, found, strict=True):
                why = UNUSED.get(str(right), "")
                unnoticed += not wrong and not why
                said = "; ".join(each[:SAID_CHARS] for each in wrong[:2])
                table.add_row(str(right), right.grant.statement, said or f"NOTHING {why}")
        console.print(table)
    console.print(f"{len(rights)} rights, {unnoticed} that nobody misses")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
