"""Why a node drains is read by its own watcher: a lesser reason must not hide a reclaim."""

import re
from pathlib import Path

import pytest

from tests.agent.fakes import NOW_S, FakeSlurm, order
from tests.make import NOTICED
from tidegate.agent.node_orders import Lasting
from tidegate.agent.orders import Worker
from tidegate.core.interruption.policy import Reclaim, action_for
from tidegate.core.model.cluster import Rebalance, Timings
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of, read
from tidegate.core.model.events import SpotInterruption
from tidegate.core.model.orders import OrderKind

RECLAIM = order(
    OrderKind.DRAIN,
    "n1",
    text=str(DrainReason(DrainCode.RECLAIM, "EC2 reclaims this")),
    order_id="reclaim",
)
RISK = order(
    OrderKind.DRAIN,
    "n1",
    text=str(DrainReason(DrainCode.TAKEN, "EC2 recommends to leave")),
    order_id="risk",
)


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
    slurm.put("n1", "MIXED", "DRAIN", reason=NOTICED)

    lasting.renew(slurm.read(), slurm, read_at_s=NOW_S + 1, now_s=NOW_S + 1)

    assert slurm.nodes["n1"].reason == RECLAIM.text


def test_what_the_watcher_writes_is_read_as_such() -> None:
    """The shell's own words, as it puts them together."""
    ours, saving = said_by_the_script("OURS"), said_by_the_script("SAVING")
    noticed = read(f"{ours} 2026-01-06T00:00:00Z)")

    assert noticed is not None
    assert (noticed.code, noticed.until_s) == (DrainCode.NOTICED, 1_767_657_600.0)
    assert code_of(saving) is DrainCode.SAVING


def test_the_watcher_knows_the_services_reason_and_no_other() -> None:
    pattern = said_by_the_script("SERVICE").replace("(", "\\(").replace(")", "\\)")
    said = action_for(SpotInterruption("n1", NOW_S), Rebalance.IGNORE, NOW_S, Timings())
    assert isinstance(said, Reclaim)
    noticed, reclaim = NOTICED, str(said.reason)

    assert re.match(pattern, f"{reclaim} [slurm@2026-01-06T00:00:00] Comment={reclaim}")
    # The comment is what the agent said last; the reason has another by now.
    assert not re.match(pattern, f"{noticed} [root@2026-01-06T00:00:00] Comment={reclaim}")


def said_by_the_script(name: str) -> str:
    script = Path("userdata/node/spot-watch.sh").read_text()
    found = re.search(rf"^readonly {name}='([^']*)'$", script, re.MULTILINE)
    assert found
    return found[1]
