"""People of a directory: real slapd, sssd, PAM and sshd let them in, real Slurm runs their jobs.

directory_world.py runs in namespaces and says what happened; the tests look at that.
"""

from typing import Any

import pytest

from local.namespaces import can_enter
from tests.boot.directory_world import LAYER
from tests.worlds import seen_in

WHY_NOT = can_enter()
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}"),
    pytest.mark.skipif(
        not LAYER.exists(), reason=f"no {LAYER}: scripts/layer.sh directory makes it"
    ),
]

type Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = seen_in("boot.directory_world", timeout_s=300)
    return found


def test_every_machine_knows_them_by_the_directory_s_numbers(seen: Seen) -> None:
    grace = "uid=20001(grace) gid=20000(physics) groups=20000(physics)\n"

    assert seen["known"] == {"head": grace, "login": grace, "node": grace}


def test_a_key_of_the_directory_lets_in_and_makes_a_home_in_the_shared_folder(seen: Seen) -> None:
    assert seen["grace"].split() == ["grace", "/shared/home/grace", "grace"]


def test_whom_the_filter_leaves_out_is_not_let_in(seen: Seen) -> None:
    assert seen["linus"].startswith("255")


def test_their_jobs_run_as_them(seen: Seen) -> None:
    assert seen["job"].splitlines()[1:] == ["grace", seen["node"], "/shared/home/grace"]


def test_the_password_is_root_s_alone_and_nowhere_told(seen: Seen) -> None:
    assert "Permission denied" in seen["password"]
    assert seen["hidden"] == []


def test_a_directory_that_somebody_else_vouches_for_is_not_asked(seen: Seen) -> None:
    assert seen["not_trusted"] == ""
