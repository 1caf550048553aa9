"""Nodes that are not Tidegate's, in the same slurm.conf: nothing is ever done to them."""

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in


def test_a_node_of_the_users_own_is_left_alone() -> None:
    if why_not := can_enter():
        pytest.skip(f"real path: {why_not}")

    seen = seen_in("e2e.static_world", timeout_s=600)
    assert seen == {"bought": 2, "idle": "idle none", "drained": "drained new disk"}
