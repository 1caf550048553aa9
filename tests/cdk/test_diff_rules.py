"""`tidegate diff`: rules of security groups that change their names."""

from typing import Any

from tests.cdk.made import dev_file, synthesized
from tests.cdk.variants import VARIANTS
from tidegate.cli.diff import Effect, changes


def rule(name: str, **more: Any) -> dict[str, Any]:
    properties = {"GroupId": "sg-1", "FromPort": 2049, "Description": name, **more}
    return {
        "Resources": {name: {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": properties}}
    }


def test_a_rule_that_goes_and_comes_under_another_name_is_grave():
    """CloudFormation makes it first, which EC2 refuses; or deletes it with the old one."""
    added, removed = changes(rule("Old"), rule("New"))[::-1]

    assert (removed.logical_id, removed.is_grave) == ("Old", False)
    assert (added.logical_id, added.is_grave) == ("New", True)
    assert "EC2 has this rule as Old already" in added.sentence
    assert "Deploy first without" in added.sentence


def test_another_rule_of_the_group_is_none_of_it():
    found = changes(rule("Old"), rule("New", FromPort=988))

    assert not any(each.is_grave for each in found)


def test_a_file_system_that_moves_within_the_file_has_such_rules(tmp_path):
    """From `existing` to `file_systems`, by the same group."""
    network = VARIANTS["own network"]["network"]
    group = "sg-0a1b2c3d"
    existing = {"file_system": "fs-0a1b2c3d", "file_security_group": group}
    more = [{"directory": "/more", "efs": "fs-0a1b2c3d", "security_group": group}]
    both = synthesized(tmp_path, dev_file(network=network, existing=existing))
    after = synthesized(tmp_path, dev_file(network=network, file_systems=more))

    found = changes(both["tidegate-dev"].template, after["tidegate-dev"].template)

    told = [each for each in found if "EC2 has this rule" in each.loss]
    assert [each.effect for each in told] == [Effect.ADDED] * 2, found
