"""People of Active Directory: sssd, with what the product writes, asks Samba's domain controller.

ad_world.py runs in namespaces and says what happened; the tests look at that.
"""

from typing import Any

import pytest

from local.namespaces import can_enter
from tests.boot.ad_world import LAYER
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}"),
    pytest.mark.skipif(
        not LAYER.exists(), reason=f"no {LAYER}: scripts/layer.sh active-directory makes it"
    ),
]

type Seen = dict[str, Any]
# Of PAM: taken, a wrong password, and not let in.
YES, NO_PASSWORD, DENIED = "0", "7", "6"


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.ad_world", timeout_s=300)
    return found


def test_a_name_in_any_case_is_one_person_with_a_number_of_the_directory_s(seen: Seen) -> None:
    lower, as_written = seen["people"].values()

    assert lower == as_written
    name, _, number, _, _, home, shell = lower.split(":")
    assert (name, home, shell) == ("ada.lovelace", "/shared/home/ada.lovelace", "/bin/bash")
    assert number == seen["number"]
    assert int(number) > 200_000


def test_groups_of_groups_count(seen: Seen) -> None:
    assert seen["groups"].startswith("domain users ")
    assert {"hpc", "gpu users"} == {each for each in ("hpc", "gpu users") if each in seen["groups"]}


def test_the_key_that_the_directory_has_is_told_to_sshd(seen: Seen) -> None:
    assert seen["key"] == seen["pub"]


def test_a_member_is_let_in_and_nobody_with_a_wrong_password(seen: Seen) -> None:
    assert seen["ada"] == f"{YES} {YES}"
    assert seen["wrong"].split()[0] == NO_PASSWORD


def test_whom_the_filter_leaves_out_is_not_let_in(seen: Seen) -> None:
    assert seen["linus"] == f"{YES} {DENIED}"


def test_a_disabled_account_is_not_let_in_by_a_key_either(seen: Seen) -> None:
    """sshd asks PAM for the account alone then."""
    assert seen["known"] == "grace"
    assert seen["grace"].split()[1] == DENIED
