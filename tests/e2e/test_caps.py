"""GPU limits of accounting, with a real slurmdbd: not one GPU is bought over the cap."""

import pytest

from local.namespaces import can_enter
from tests.worlds import seen_in


def test_no_gpu_is_bought_over_an_accounts_cap() -> None:
    if why_not := can_enter():
        pytest.skip(f"real path: {why_not}")

    seen = seen_in("e2e.caps_world", timeout_s=600)
    assert (seen["most_gpus"], seen["bought_gpus"]) == (2, 2)
    assert seen["completed"] == 5
    assert any("account lab allows 2 GPUs in all" in reason for reason in seen["told"])
    # What makes it necessary: with no node up Slurm does not name the cap.
    assert not any("Assoc" in reason for reason in seen["slurm_said"])
