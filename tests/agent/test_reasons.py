"""Why a node drains is read by its own watcher: a lesser reason must not hide a reclaim."""

from pathlib import Path

import pytest

from tests.agent.fakes import NOW_S, FakeSlurm, order
from tidegate.agent.node_orders import Lasting
from tidegate.agent.orders import Worker
from tidegate.core.interruption.policy import Reclaim, action_for
from tidegate.core.interruption.save import NODE_SAVES, NODE_WATCHES, SERVICE_SAVES
from tidegate.core.model.cluster import Rebalance, Timings
from tidegate.core.model.events import SpotInterruption
from tidegate.core.model.orders import OrderKind

RECLAIM = order(OrderKind.DRAIN, "n1", text="tidegate: EC2 reclaims this", order_id="reclaim")
RISK = order(OrderKind.DRAIN, "n1", text="tidegate: EC2 recommends to leave", order_id="risk")


@pytest.mark.parametrize("first_to_last", [(RECLAIM, RISK), (RISK, RECLAIM)])
def test_a_reclaim_is_the_reason_whichever_order_comes_last(
    slurm: FakeSlurm, worker: Worker, first_to_last
) -> None:
    slurm.put("n1", "MIXED")
    for each in first_to_last:
        worker.carry_out([each], NOW_S)

    assert slurm.nodes["n1"].reason == RECLAIM.text


@pytest.mark.parametrize("first_to_last", [(RECLAIM, RISK), (RISK, RECLAIM)])
def test_the_watcher_is_answered_with_the_reclaim(slurm: FakeSlurm, first_to_last) -> None:
    lasting = Lasting()
    for each in first_to_last:
        lasting.add([each], NOW_S)
    slurm.put("n1", "MIXED", "DRAIN", reason=f"{NODE_WATCHES} 2026-01-06T00:00:00Z")

    lasting.renew(slurm.read(), slurm, read_at_s=NOW_S + 1, now_s=NOW_S + 1)

    assert slurm.nodes["n1"].reason == RECLAIM.text


def test_watcher_service_and_agent_mean_the_same_words() -> None:
    script = Path("userdata/node/spot-watch.sh").read_text()
    said = action_for(SpotInterruption("n1", NOW_S), Rebalance.IGNORE, NOW_S, Timings())

    assert f"OURS='{NODE_WATCHES}' SERVICE='{SERVICE_SAVES}'" in script
    assert f"SAVING='{NODE_SAVES}'" in script
    assert isinstance(said, Reclaim)
    assert f"tidegate: {said.reason}".startswith(SERVICE_SAVES)
