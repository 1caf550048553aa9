"""`tidegate explain`: every code that is shown has its words in one place."""

import json
import re

import pytest
from typer.testing import CliRunner

from tests.cdk.made import ROOT
from tidegate.adapters.aws_codes import CURES
from tidegate.cli.codes import FAMILIES, every
from tidegate.cli.main import app
from tidegate.core.model.why import Why
from tidegate.wire.compat_rules import Rule


def explained(*codes: str) -> list[str]:
    done = CliRunner().invoke(app, ["explain", *codes])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_a_code_of_validate_is_said_with_what_to_do():
    (line,) = explained("R21")

    assert line == (
        "R21 (check of a cluster file; `validate`, `cdk synth`): this release or patch of Slurm has"
        " a fault in what Tidegate uses. What to do: do what the sentence says, or take the newer"
        " patch that it names"
    )


def test_one_that_is_used_for_two_things_is_told_for_both_whatever_its_case():
    lines = explained("Held")

    assert [line.split(" (")[1].split(";")[0] for line in lines] == [
        "why a job gets no node",
        "why a node is drained",
    ]


def test_ec2_s_own_codes_are_told_with_what_they_need():
    short, full, denied = explained(
        "InsufficientInstanceCapacity", "InsufficientFreeAddressesInSubnet", "InvalidAMIID.NotFound"
    )

    assert "rests for minutes" in short
    assert "pool's subnets" in full
    assert "npx cdk deploy tidegate-NAME" in denied


def test_without_a_code_all_are_told():
    done = CliRunner().invoke(app, ["explain", "-o", "json"])

    told = {each["code"] for each in json.loads(done.stdout)}
    assert {*Rule, *Why, *CURES} <= told
    assert len(explained()) == len(every())


def test_what_is_no_code_is_a_usage_error_with_what_comes_near():
    done = CliRunner().invoke(app, ["explain", "restin"])

    assert done.exit_code == 2
    assert "is no code of Tidegate's; did you mean resting?" in " ".join(done.output.split())


def test_every_code_has_a_meaning_without_its_end_and_no_family_has_two_of_a_name():
    for family in FAMILIES:
        codes = [code for code, *_ in family.codes]
        assert len(codes) == len(set(codes)), family.name
    for each in every():
        assert each.meaning, each
        assert not each.meaning.endswith("."), each
        assert not each.remedy.endswith("."), each


def test_every_rule_that_a_check_names_is_among_them_and_no_other():
    code = "".join(
        each.read_text()
        for folder in ("tidegate/wire", "cdk")
        for each in (ROOT / folder).glob("*.py")
        if each.name != "compat_rules.py"
    )
    named = set(re.findall(r'Finding\(\s*"(R\d\d)"|\((R\d\d)\)', code))

    assert {one or other for one, other in named} == set(Rule)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`tidegate ([a-z-]+)", str(every())))))
def test_a_remedy_names_commands_that_are_there(command: str):
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
