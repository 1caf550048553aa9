"""Reports: who may write what in the bucket, and that nothing is there where nobody asks."""

from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, joined, synthesized
from tests.cdk.policies import Granted, statements_of
from tests.cdk.variants import cluster_stack, stacks_of
from tidegate.core.model.errors import BadConfig


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return stacks_of(tmp_path_factory, "everything told")


@pytest.fixture(scope="module")
def told(stacks: Any) -> Stack:
    return cluster_stack(stacks)


def on_bucket(stacks: Any, owner: str) -> set[tuple[str, str]]:
    """Actions on the bucket and where in it, of roles and policies that begin like this."""
    return {
        (action, arn.partition("/")[2])
        for each in of(stacks, owner)
        if each.sid != "ClusterFile"
        for action in each.actions
        if action.startswith("s3:")
        for arn in each.resources
    }


def of(stacks: Any, owner: str) -> list[Granted]:
    return [each for each in statements_of(stacks) if each.owner.startswith(owner)]


def test_the_function_writes_pages_and_reads_what_was_handed_in(stacks: Any) -> None:
    assert on_bucket(stacks, "FunctionsReportRole") == {
        ("s3:GetObject", "accounting/dev/*"),
        ("s3:ListBucket", ""),
        ("s3:PutObject", "reports/dev/*"),
    }
    (listed,) = (each for each in of(stacks, "FunctionsReportRole") if each.sid == "Listed")
    assert listed.conditions == {"StringEquals": {"s3:prefix": ["accounting/dev/", "reports/dev/"]}}
    ledger = {a for each in of(stacks, "FunctionsReportRole") for a in each.actions}
    assert {each for each in ledger if each.startswith("dynamodb:")} == {
        "dynamodb:GetItem",
        "dynamodb:Query",
    }


def test_the_head_hands_in_and_reads_nothing_of_it(stacks: Any) -> None:
    found = on_bucket(stacks, "HeadRole")

    assert ("s3:PutObject", "accounting/dev/*") in found
    assert not {each for each in found if each[0] == "s3:GetObject" and "account" in each[1]}
    assert not {each for each in found if "reports" in each[1]}


def test_readers_read_pages_alone(stacks: Any, told: Stack) -> None:
    assert on_bucket(stacks, "ReportsReaders") == {
        ("s3:GetObject", "reports/dev/*"),
        ("s3:ListBucket", ""),
    }
    policy = told.one("AWS::IAM::ManagedPolicy")
    assert not {"Users", "Groups", "Roles"} & policy.keys(), "nobody has it by itself"
    assert "ReportReadersPolicyArn" in told.template["Outputs"]


def test_it_comes_every_half_hour(told: Stack) -> None:
    (schedule,) = (
        each
        for each in told.all("AWS::Scheduler::Schedule")
        if joined(each["Target"]["Arn"]).startswith("<FunctionsReport")
    )

    assert schedule["ScheduleExpression"] == "rate(30 minutes)"


def test_pages_are_kept_as_long_as_the_bill_and_all_else_is_not(data: Stack) -> None:
    rules = data.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]

    days = {each["Prefix"]: each["ExpirationInDays"] for each in rules if "Prefix" in each}
    assert days == {"digest/": 7, "decisions/": 7, "accounting/": 35, "reports/": 400}
    assert [each for each in rules if "Prefix" not in each and "ExpirationInDays" in each] == []


def test_without_it_there_is_no_function_no_right_and_no_word(dev: Stack) -> None:
    assert "report" not in str(dev.template).lower().replace("reportbatchitemfailures", "")


def test_it_needs_slurm_s_accounting(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="add accounting: true to slurm"):
        synthesized(tmp_path, dev_file(report={"every": "day"}))
