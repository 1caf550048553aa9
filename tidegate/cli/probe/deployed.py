"""What can be asked of a deployed cluster without a launch."""

from collections.abc import Iterator, Mapping, Sequence

from tidegate.adapters.account import Account
from tidegate.adapters.functions import answer_of, read_environment
from tidegate.cli.deployable import Answer, Found, Needless, Unasked, answer
from tidegate.wire.config import ClusterFile
from tidegate.wire.problems import Problem

type Asked = Mapping[str, str | None]


def planner_name(file: ClusterFile) -> str:
    return f"tidegate-{file.cluster.name}-planner"


def answers(file: ClusterFile, account: Account) -> Iterator[Answer]:
    """One question after another."""
    for check in (planner_fleets, planner_instances):
        yield answer(check, file, account)


def planner_fleets(file: ClusterFile, account: Account) -> Found:
    """The planner's role may create a fleet for each pool (CreateFleet with DryRun)."""
    yield from _tried(file, account, "fleet", "ec2:CreateFleet")


def planner_instances(file: ClusterFile, account: Account) -> Found:
    """It may launch from each pool's template (RunInstances with DryRun), with the nodes' role."""
    yield from _tried(file, account, "instance", "ec2:RunInstances and iam:PassRole")


def _tried(file: ClusterFile, account: Account, call: str, needs: str) -> Found:
    client, name = account.clients("lambda"), planner_name(file)
    if read_environment(client, name) is None:
        yield Needless("the cluster is not deployed")
        return
    answered = answer_of(client, name, {"dry_runs": True})
    if "dry_runs" not in answered:
        older = "the function that is deployed is older than this command: npx cdk deploy, then ask"
        yield Unasked(answered.get("trouble", older))
        return
    told: Sequence[Asked] = answered["dry_runs"]
    for each in told:
        if each[call] is None:
            text = f"pool {each['pool']}, {each['market']}: RunInstances takes no subnet beside the"
            yield Unasked(f"{text} interfaces of its template, a fleet does")
        elif each[call]:
            text = f"{each['market']}: {each[call]}; its role needs {needs} (docs/operations.md)"
            yield Problem(("pools", str(each["pool"])), text)
