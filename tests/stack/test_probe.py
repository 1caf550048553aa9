"""`tidegate probe` on the deployed template, and what it knows of the templates by heart."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.iam import reference
from tests.stack.person import needed
from tests.stack.world import CLUSTER_FILE
from tidegate.cli.probe.rights import ALSO, ASKS, CREATES, LAUNCHES, ROLES_DO, roles_do
from tidegate.wire.config import load_cluster


def resources(*folders: Path) -> Iterator[dict[str, Any]]:
    for folder in folders:
        for file in folder.glob("*.template.json"):
            yield from json.loads(file.read_text())["Resources"].values()


@pytest.fixture(scope="module")
def made(assembly: Path, broken: Path) -> list[dict[str, Any]]:
    return list(resources(assembly, broken))


def role_actions(made: Iterable[dict[str, Any]]) -> set[str]:
    """What the roles of a template may do by their own policies."""
    documents = [
        policy["PolicyDocument"]
        for each in made
        if each["Type"] == "AWS::IAM::Role"
        for policy in each["Properties"].get("Policies", ())
    ]
    listed = [one["Action"] for each in documents for one in each["Statement"]]
    return {one for each in listed for one in (each if isinstance(each, list) else [each])}


def test_what_a_boundary_must_allow_is_what_the_roles_may_do(made: list[dict[str, Any]]) -> None:
    assert role_actions(made) == set(roles_do(load_cluster(CLUSTER_FILE)))


def test_the_rights_of_the_commands_are_those_of_the_page() -> None:
    assert set(ASKS) == needed()


def test_aws_knows_each_action() -> None:
    for action in {*CREATES.values(), *ALSO, *ASKS, *LAUNCHES, *ROLES_DO}:
        assert reference.action(action), action
