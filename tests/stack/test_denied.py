"""Launches that no policy allows: the rights that are missing, and whose role lacks them.

A file of its own: a process delivers the events of one local cloud at a time.
"""

from pathlib import Path

from tests.stack.broken import CLUSTER_FILE, of
from tests.stack.person import terminal
from tests.stack.test_silence import Desk, denied
from tests.stack.world import stacked


def test_a_launch_that_no_policy_allows(broken: Path) -> None:
    with stacked(broken, CLUSTER_FILE, starts=None) as world, denied(world, "ec2:CreateFleet"):
        desk = Desk(world, terminal(world, CLUSTER_FILE))
        for _ in range(2):
            world.report([of(2, "rich", gpu_type="a10g")])
        (code, first, why), status = desk.asked("why", "2"), desk.asked("status")

    assert code == status[0] == 3
    assert "waiting does not help: NotAuthorized: UnauthorizedOperation: " in first
    for said in (why, status[2]):
        assert "Allow ec2:CreateFleet, ec2:RunInstances" in said
        assert "function tidegate-stacked-planner" in said
    assert (
        "! g5.xlarge/us-east-1a/on-demand of pool rich: EC2 refuses it: NotAuthorized" in status[2]
    )
