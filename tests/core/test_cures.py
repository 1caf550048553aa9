"""What waiting does not cure: each refusal and each failed boot has an action of its own."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, T4, cluster, job, offering, pool, snapshot
from tidegate.core.explain.answer import answer
from tidegate.core.explain.overview import overview
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.fleet.cures import cure_of_stage, needed, remedy
from tidegate.core.model.ec2 import Cure, Market, Offering
from tidegate.core.model.resting import Resting
from tidegate.core.planner import plan


def resting(cure: Cure, code: str = "Code", message: str = "words") -> Resting:
    return Resting(offering(T4), NOW_S + 60, 2, code, message, cure)


DOES = {
    Cure.DENIED: "Allow ec2:CreateFleet, ec2:RunInstances",
    Cure.QUOTA: "--region us-east-1 --quota-code L-3819A6DF",
    Cure.IMAGE: "`image:` in the cluster file, then npx cdk deploy tidegate-test; where",
    Cure.DISK: "`root_gib` of the pool",
    Cure.KEY: "`kms_key` in the cluster file before its first deployment",
    Cure.TERMS: "accept the image's terms",
    Cure.ACCOUNT: "AWS Support (https://aws.amazon.com/contact-us/)",
    Cure.FREE_PLAN: "aws freetier upgrade-account-plan --account-plan-type PAID",
    Cure.RESERVATION: "take it out of `reservations` or its group, then npx cdk deploy",
    Cure.SPOT_ROLE: "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    Cure.TEMPLATE: "npx cdk deploy tidegate-test",
    Cure.MUNGE: "sudo rm /etc/munge/munge.key",
    Cure.DRIVER: "`image: dlami`",
    Cure.SHARED: "its mount target",
    Cure.HOOK: "mend the script",
    Cure.SHAPE: "`image:` in the cluster file",
    Cure.BOOT: "tidegate node log NODE",
    Cure.START_DENIED: "Allow ec2:StartInstances and ec2:CreateTags",
}


def test_every_cure_but_none_names_an_action() -> None:
    assert set(DOES) == set(Cure) - {Cure.NONE}
    for cure, does in DOES.items():
        assert does in remedy(resting(cure), "test"), cure
    assert remedy(resting(Cure.NONE), "test") == ""


@pytest.mark.parametrize("cure", DOES)
def test_why_and_status_tell_the_action_instead_of_to_wait(cure: Cure) -> None:
    every = [replace(resting(cure), offering=on) for _, on in pool("t4", (T4,)).offerings()]
    seen = snapshot([job(1)], of=cluster(pool("t4", (T4,))), resting=every)
    judged = verdicts_of(plan(seen), seen)

    found, status = answer("1", seen, judged), overview(seen, judged)

    assert any(DOES[cure] in each for each in found.change)
    assert not any("wait for the next try" in each for each in found.change)
    assert "Code: words" in found.headline
    assert "the next try is at" not in found.headline
    assert any("Code: words" in each and DOES[cure] in each for each in status.needs_a_look)


def test_a_refusal_that_passes_needs_nobody() -> None:
    assert list(needed(snapshot(resting=[resting(Cure.NONE)]))) == []


def test_a_rest_that_is_over_needs_nobody() -> None:
    over = replace(resting(Cure.IMAGE), until_s=NOW_S - 1)

    assert list(needed(snapshot(resting=[over]))) == []


def test_offerings_of_one_cause_are_one_line_and_long_words_are_cut() -> None:
    zones = [f"us-east-1{each}" for each in "abcde"]
    every = [
        replace(resting(Cure.DENIED, message="x" * 5000), offering=offering(T4, zone=zone))
        for zone in zones
    ]

    (line,) = needed(snapshot(resting=every))

    assert line.startswith("g4dn.xlarge/us-east-1a/spot, ")
    assert " and 2 more: EC2 refuses it: Code: xxx" in line
    assert len(line) < 1000


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("BootBoundExceeded", "a node did not register within 900 s"),
        ("EndedWhileBooting", "a node ended itself"),
        ("NodeTooSmall", "a node joined with 0 GPUs"),
        ("NodeJoinedDown", "a node joined DOWN"),
    ],
)
def test_a_node_that_did_not_come_up_needs_somebody(code: str, message: str) -> None:
    (line,) = needed(snapshot(resting=[resting(Cure.NONE, code, message)]))

    assert f": the last node of it did not come up: {code}: {message}; " in line


def test_what_rests_for_one_pool_names_it() -> None:
    of_one = replace(resting(Cure.NONE, "NodeTooSmall", "no GPUs"), pool="t4", template="digest-1")

    (line,) = needed(snapshot(resting=[of_one]))

    assert line.startswith("g4dn.xlarge/us-east-1a/spot of pool t4: the last node of it did not")
    assert line.endswith("tidegate retry t4")


@pytest.mark.parametrize(
    ("name", "market", "code"),
    [
        ("g5.xlarge", Market.SPOT, "L-3819A6DF"),
        ("g5.xlarge", Market.ON_DEMAND, "L-DB2E81BA"),
        ("gr6.4xlarge", Market.ON_DEMAND, "L-DB2E81BA"),
        ("p4d.24xlarge", Market.SPOT, "L-7212CCBC"),
        ("p5.48xlarge", Market.SPOT, "L-C4BD4855"),
        ("p5.48xlarge", Market.ON_DEMAND, "L-417A185B"),
        ("c7i.large", Market.ON_DEMAND, "L-1216C47A"),
        ("m6g.large", Market.SPOT, "L-34B43A08"),
        ("trn1.2xlarge", Market.SPOT, "list-service-quotas"),
        ("hpc7a.96xlarge", Market.ON_DEMAND, "list-service-quotas"),
    ],
)
def test_a_quota_has_the_code_that_counts_this_type(name: str, market: Market, code: str) -> None:
    on = Offering(name, "us-east-1a", market)

    assert code in remedy(replace(resting(Cure.QUOTA), offering=on), "test")


@pytest.mark.parametrize(
    ("stage", "cure"),
    [
        ("munge", Cure.MUNGE),
        ("on_node_start", Cure.HOOK),
        ("on_node_configured", Cure.HOOK),
        ("driver", Cure.DRIVER),
        ("shared", Cure.SHARED),
        ("slurmd", Cure.BOOT),
    ],
)
def test_a_stage_of_the_boot_has_its_cure(stage: str, cure: Cure) -> None:
    assert cure_of_stage(stage) is cure
