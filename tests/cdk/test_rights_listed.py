"""Each statement of each kind of cluster, held against AWS's Service Authorization Reference.

A right on a type that the action is not asked for is none, and a condition on a key that a request
does not carry is never met: both look like rights and deny everything.
"""

from collections.abc import Iterator, Mapping, Sequence

import pytest
import yaml

from local.iam import reference
from tests.cdk.made import Stack
from tests.cdk.policies import Granted, statements_of
from tests.cdk.variants import VARIANTS, stacks_of
from tidegate.cli.probe.rights import CREATES, CREATES_IMAGES, roles_do
from tidegate.wire.config import parse_cluster

# It leaves out a kind of resource without a word where the right is narrower, which the reference
# does not say. Source: CloudWatch API, DescribeAlarms, composite alarms.
WANTS_ALL = frozenset({"cloudwatch:DescribeAlarms"})
FOR_ALL, FOR_ANY = "ForAllValues:", "ForAnyValue:"


@pytest.fixture(scope="module", params=sorted(VARIANTS))
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def made(variant: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stack]:
    return stacks_of(tmp_path_factory, variant)


@pytest.fixture(scope="module")
def statements(made: dict[str, Stack]) -> list[Granted]:
    return list(statements_of(made))


def test_each_kind_of_resource_has_a_right_that_makes_it(made: dict[str, Stack]):
    """What `tidegate probe` asks for, of whoever deploys."""
    resources = [one for each in made.values() for one in each.template["Resources"].values()]

    bakes = any(name.endswith("-images") for name in made)
    listed = CREATES.keys() | (CREATES_IMAGES.keys() if bakes else set())

    assert {each["Type"] for each in resources} - listed == set()


def test_a_boundary_is_held_against_all_that_the_roles_do(
    variant: str, made: dict[str, Stack], statements: list[Granted]
):
    """What `tidegate probe` asks of `permissions_boundary`, which may take any of it away."""
    kinds = ("AWS::IAM::Role", "AWS::IAM::Policy")
    roles = {name for each in made.values() for kind in kinds for name, _ in each.resources(kind)}
    done = {action for each in statements if each.owner in roles for action in each.actions}

    file = parse_cluster(yaml.safe_dump(VARIANTS[variant]), variant)
    assert done - set(roles_do(file)) == set()


def test_no_action_is_granted_on_what_it_is_never_asked_for(statements: list[Granted]):
    assert [said for each in statements for said in _useless_resources(each)] == []


def test_an_action_is_granted_on_all_that_it_is_always_asked_for(statements: list[Granted]):
    granted: dict[tuple[str, str], list[str]] = {}
    for each in statements:
        for action in each.actions if each.is_allow else ():
            granted.setdefault((each.owner, action), []).extend(each.resources)

    missing = {
        (owner, name): left
        for (owner, name), resources in granted.items()
        if "*" not in resources and (left := reference.action(name).missing(resources))
    }
    assert missing == {}


def test_each_condition_is_on_a_key_that_the_request_carries(statements: list[Granted]):
    assert [said for each in statements for said in _absent_keys(each)] == []


def test_a_key_of_many_values_has_an_operator_for_them(statements: list[Granted]):
    assert [said for each in statements for said in _wrong_operators(each)] == []


def _useless_resources(granted: Granted) -> Iterator[str]:
    for name in _named(granted):
        listed = reference.action(name)
        if "*" in granted.resources:
            if any(each.is_required for each in listed.rows) and name not in WANTS_ALL:
                yield f"{granted}: {name} could be bound to a resource, and is not"
            continue
        for resource in granted.resources:
            if not reference.is_asked(name, resource):
                yield f"{granted}: {name} on {resource}"


def _absent_keys(granted: Granted) -> Iterator[str]:
    for key in _keys(granted.conditions):
        if wild := [each for each in granted.actions if "*" in each]:
            services = {f"{each.partition(':')[0]}:" for each in wild}
            if reference.key_name(key) not in reference.GLOBAL and not key.startswith((*services,)):
                yield f"{granted}: {key} with {wild}"
            continue
        for name in granted.actions:
            for resource in granted.resources:
                if not reference.action(name).has_key(key, resource):
                    yield f"{granted}: {key} for {name} on {resource}"


def _wrong_operators(granted: Granted) -> Iterator[str]:
    for operator, by_key in granted.conditions.items():
        for key in by_key:
            is_set = operator.startswith((FOR_ALL, FOR_ANY))
            if operator != "Null" and reference.has_many_values(key) != is_set:
                yield f"{granted}: {operator} on {key}"
            # It also holds for a request that lacks the key.
            if operator.startswith(FOR_ALL) and granted.is_allow:
                nothing = granted.conditions.get("Null", {}).get(key)
                if nothing not in ("false", False):
                    yield f"{granted}: {operator} on {key} without a Null beside it"


def _named(granted: Granted) -> Sequence[str]:
    """The actions of a statement; a Deny of resource policies may say `*` and mean all."""
    wild = [each for each in granted.actions if "*" in each]
    assert not (wild and granted.is_allow), f"{granted} allows {wild}"
    return [each for each in granted.actions if each not in wild]


def _keys(conditions: Mapping[str, Mapping[str, object]]) -> list[str]:
    return [key for by_key in conditions.values() for key in by_key]
