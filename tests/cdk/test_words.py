"""Words in templates that AWS refuses, whatever CloudFormation's schema takes."""

import re
from collections.abc import Iterator, Mapping

import pytest

from tests.cdk.made import Stack, joined
from tests.cdk.variants import VARIANTS, stacks_of

# Sources: EC2 API reference, CreateSecurityGroup and IpRange, `Description`; cfn-lint knows the
# characters of a group's description alone (aws-cloudformation/cfn-lint#173, #1471).
OF_GROUPS = re.compile(r"[A-Za-z0-9. _\-:/()#,@\[\]+=&;{}!$*]{1,255}")
DESCRIBED = {
    "AWS::EC2::SecurityGroup": "GroupDescription",
    "AWS::EC2::SecurityGroupEgress": "Description",
    "AWS::EC2::SecurityGroupIngress": "Description",
}


@pytest.fixture(scope="module", params=sorted(VARIANTS))
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Stack]:
    return stacks_of(tmp_path_factory, request.param)


def test_descriptions_of_groups_and_their_rules_have_letters_that_ec2_takes(
    made: Mapping[str, Stack],
) -> None:
    assert [said for said in _descriptions(made) if not OF_GROUPS.fullmatch(said)] == []


def test_people_s_ssh_is_among_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It was refused (InvalidParameterValue) for its apostrophe, and the whole deployment."""
    assert "SSH of people" in _descriptions(stacks_of(tmp_path_factory, "own network"))


def _descriptions(made: Mapping[str, Stack]) -> Iterator[str]:
    for stack in made.values():
        for kind, name in DESCRIBED.items():
            for resource in stack.all(kind):
                yield joined(resource[name])
                for rules in ("SecurityGroupIngress", "SecurityGroupEgress"):
                    yield from (each["Description"] for each in resource.get(rules, ()))
