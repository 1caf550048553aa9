"""Whether anybody notices when a role lacks a right that the template grants it.

`python -m tests.stack.rights` (`make rights`) tells a whole story once for each granted
action, with that action taken out of the deployed role: that of the functions, and for the roles
of machines and for a KMS key of one's own that of `machines`. Ends with 1 when one was not missed.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from botocore.exceptions import ClientError
from rich.console import Console
from rich.table import Table

from local.iam.authorizer import Grant
from local.iam.roles import role_arns
from local.stack_world import StackWorld
from tests.assemblies import assembled
from tests.stack import machines, story
from tests.stack.world import CLUSTER_FILE, stacked, strict_file
from tidegate.core.model.errors import TidegateError

# Rights of moments that the story does not have -> which those are.
UNUSED = {
    "FunctionsScheduleRole dynamodb:PutItem": "the planner meets the new ledger first",
    "FunctionsScheduleRole ec2:StopInstances": "reconcile finds the head without nodes",
    "FunctionsScheduleRole dynamodb:UpdateItem": "reconcile finds the head without nodes",
    "FunctionsReconcileRole ec2:StartInstances": "the cron starts the head",
    "FunctionsInterruptionRole s3:ListBucket": "no notice comes before the first digest",
    "FunctionsReportRole sqs:SendMessage": "no run of it fails",
    "HoursRole sqs:SendMessage": "Scheduler could deliver every event",
}

# The same in the cluster of a stricter account, whose story is `machines`.
UNUSED_OF_STRICT = {
    "FunctionsReconcileRole kms:CreateGrant": "the cron starts the head",
    **{
        f"{role} {action}": "the SSM agent does not run here"
        for role in ("HeadRole", "NodesRole")
        for action in (
            "ssm:UpdateInstanceInformation",
            "ssmmessages:CreateControlChannel",
            "ssmmessages:CreateDataChannel",
            "ssmmessages:OpenControlChannel",
            "ssmmessages:OpenDataChannel",
        )
    },
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
    return [each for each in _rights(world) if is_of_functions(each.role)]


def strict_rights(world: StackWorld) -> list[Right]:
    """Those that come with a stricter account's cluster, and those of machines."""
    return [
        each
        for each in _rights(world)
        if not is_of_functions(each.role) or each.grant.action.startswith("kms:")
    ]


def is_of_functions(role: str) -> bool:
    return role.startswith(("Functions", "Hours"))


def _rights(world: StackWorld) -> list[Right]:
    """All but those of AWS's own managed policies, which nobody here can change."""
    return [
        Right(role, grant)
        for role, arn in role_arns(world.deployment.resources).items()
        for grant in world.cloud.authorizer.grants(arn)
        if not grant.statement.startswith(("AWS", "Amazon"))
    ]


def unused(world: StackWorld, rights: Sequence[Right]) -> set[str]:
    """Those of the rights that no request has needed so far."""
    arns = {each.grant.role_arn for each in rights}
    idle = {grant for arn in arns for grant in world.cloud.authorizer.unused_grants(arn)}
    return {str(each) for each in rights if each.grant in idle}


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


def told_without(told: "Told", right: Right) -> list[str]:
    """What goes wrong in the story without this right."""
    with stacked(told.assembly) as world:
        withdraw(world, right)
        try:
            missing = list(told.story(world))
        except (ClientError, TidegateError) as error:
            missing = [f"the story ends: {error}"]
        return [*missing, *world.trouble()]


@dataclass(frozen=True, slots=True)
class Told:
    """A cluster, which rights of it are tried, and the story that needs them.

    `unused`: rights of moments that the story does not have.
    """

    assembly: Path
    rights: Callable[[StackWorld], list[Right]]
    story: Callable[[StackWorld], story.Missing]
    unused: Mapping[str, str]

    def unnoticed(self, table: Table) -> int:
        """Try each right and add it to the table; how many nobody missed."""
        with stacked(self.assembly) as world:
            rights = self.rights(world)
        found = 0
        with ProcessPoolExecutor(NUM_PROCESSES) as pool:
            wrongs = pool.map(told_without, [self] * len(rights), rights)
            for right, wrong in zip(rights, wrongs, strict=True):
                why = self.unused.get(str(right), "")
                found += not wrong and not why
                said = "; ".join(each[:SAID_CHARS] for each in wrong[:2])
                table.add_row(str(right), right.grant.statement, said or f"NOTHING {why}")
        return found


def main() -> int:
    console = Console()
    table = Table("role and action", "statement", "what goes wrong without it")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        strict = assembled(strict_file(place), place / "strict")
        stories = (
            Told(assembled(CLUSTER_FILE, place / "all"), function_rights, story.whole, UNUSED),
            Told(strict, strict_rights, machines.whole, UNUSED_OF_STRICT),
        )
        unnoticed = sum(each.unnoticed(table) for each in stories)
    console.print(table)
    console.print(f"{table.row_count} rights, {unnoticed} that nobody misses")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
