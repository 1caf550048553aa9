"""Accounting outlives its volume: it is dumped while it is written to, and a blank volume gets it.

accounting_world.py runs in namespaces and says what happened; the tests look at that.
"""

from typing import Any

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.accounting_world", timeout_s=300)
    return found


def test_all_tables_of_slurmdbd_are_such_as_one_transaction_can_dump(seen):
    assert seen["engines"] == "InnoDB"


def test_a_dump_is_of_one_moment_and_holds_nobody_up(seen):
    first, last = seen["counts"]

    assert first == last > 0
    assert seen["dump"]["written_meanwhile"] > 0


def test_a_dump_is_roots_alone(seen):
    assert seen["dump"]["mode"].split("\n") == ["root 600", "root 700"]


def test_a_head_with_a_blank_volume_has_the_accounting_of_the_dump(seen):
    jobs, people = seen["before"]

    assert len(jobs) == 20
    assert seen["after"] == [jobs, people]
    assert "lab" in people


def test_what_came_after_the_dump_is_lost(seen):
    assert len(seen["later"]) == 21


def test_it_goes_on_from_there(seen):
    jobs, _ = seen["before"]

    assert seen["goes_on"][:20] == jobs
    assert len(seen["goes_on"]) == 21
    assert "tidegate-accounting-not-loaded" not in seen["left"]


def test_the_dump_of_the_head_before_is_kept(seen):
    assert [each.rpartition("/")[2] for each in seen["kept"].split()] == [
        "slurm_acct_db.sql.gz",
        "slurm_acct_db.sql.gz.before",
    ]


def test_the_page_s_commands_take_the_dump_of_the_head_before(seen):
    jobs, _ = seen["before"]

    assert seen["by_the_page"] == jobs
