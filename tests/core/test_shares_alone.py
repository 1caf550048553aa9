"""Jobs that ask for a part of a GPU, and for a node of their own."""

from dataclasses import replace

import pytest

from tests.core.reading import why
from tests.core.shared_gpus import SERVED_T4_BIG, SHARED_T4_BIG, cut, mps, shards, waiting
from tests.core.test_shares import SERVED, SHARED, bought, t4, there
from tidegate.core.model.slurm import NodeState
from tidegate.core.planner import plan


@pytest.mark.parametrize("make", [shards, mps])
def test_a_job_with_shares_and_a_node_for_itself_gets_one_with_one_gpu(make) -> None:
    """Slurm gives it all shares of the node, which of several GPUs it gives to nobody."""
    alone = replace(make(1, 1), shape=replace(make(1, 1).shape, is_exclusive=True))
    of = SHARED if make is shards else SERVED
    big = cut(SHARED_T4_BIG) if make is shards else cut(SERVED_T4_BIG)
    kind = alone.shape.gres
    there_ = replace(t4(), state=NodeState.parse("IDLE+DYNAMIC_NORM"), shared_gres=kind)

    refused = plan(waiting(alone, of=big))

    assert bought(plan(waiting(alone, of=of))) == [("g4dn.xlarge", 1, "")]
    assert bought(there(alone, node_=there_, of=of)) == [("g4dn.xlarge", 1, "")]
    assert bought(refused) == []
    assert f"has 4 GPUs, and Slurm gives {kind}" in why(refused)
