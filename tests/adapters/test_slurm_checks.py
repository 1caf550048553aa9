"""What squeue prints of a site's checks: what 22.05, 24.11 and 26.05 printed, and what it might."""

from collections.abc import Sequence

import pytest

from tidegate.adapters.slurm_checks import KEPT_MAX, Checks, parse
from tidegate.core.model.site_check import REFUSED, CheckJob

NAME = "tidegate:check:t4:new-2:1800000000-"
PRINTED = (
    f"2|{NAME}1|FAILED|nobody|3328|\n3|{NAME}2|COMPLETED|ci|0|\n4|{NAME}3|PENDING|ci|0|\n"
    f"5|{NAME}4|FAILED|ci|9|\n"
)


def test_each_row_is_a_job_with_the_exit_code_of_its_end():
    assert parse(PRINTED) == (
        CheckJob(f"{NAME}1", "FAILED", "2", "nobody", 13),
        CheckJob(f"{NAME}2", "COMPLETED", "3", "ci", 0),
        CheckJob(f"{NAME}3", "PENDING", "4", "ci", None),
        CheckJob(f"{NAME}4", "FAILED", "5", "ci", 137),
    )


def test_newer_releases_write_code_and_signal():
    newer = PRINTED.replace("|3328|", "|13:0|").replace("|0|", "|0:0|").replace("|9|", "|0:9|")

    assert parse(newer) == parse(PRINTED)


STRANGE = (
    "",
    "x",
    f"2|{NAME}1|FAILED",
    "2|other|FAILED|ci|0|",
    f"2|{NAME}1|FAILED|ci|x|",
    f"2|{NAME}1|FAILED|ci|7:|",
)


@pytest.mark.parametrize("line", STRANGE)
def test_what_cannot_be_read_is_left_out(line):
    assert parse(f"{line}\n{PRINTED}") == parse(PRINTED)


def test_nobody_is_asked_while_there_is_no_check():
    def ask(argv: Sequence[str]) -> str:
        raise AssertionError(argv)

    assert Checks().jobs(ask) == ()


def test_a_refusal_counts_until_slurm_knows_the_job():
    checks = Checks()
    checks.note(f"{NAME}1", "Invalid account")

    assert checks.jobs(lambda argv: "") == (CheckJob(f"{NAME}1", REFUSED, said="Invalid account"),)
    assert next(each.state for each in checks.jobs(lambda argv: PRINTED)) == "FAILED"


def test_old_checks_are_forgotten():
    checks, asked = Checks(), list[Sequence[str]]()
    for number in range(KEPT_MAX + 5):
        checks.note(f"{NAME}{number}", "")

    def ask(argv: Sequence[str]) -> str:
        asked.append(argv)
        return ""

    checks.jobs(ask)
    names = asked[0][asked[0].index("-n") + 1].split(",")
    assert (len(names), names[-1]) == (KEPT_MAX, f"{NAME}{KEPT_MAX + 4}")
