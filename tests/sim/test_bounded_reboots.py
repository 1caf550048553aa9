"""How often a node may be reset or rebooted, by what was found, and what becomes of it."""

from dataclasses import replace

import pytest

from tests.make import snapshot
from tests.sim.test_excuses import SPOT, first_node, witnessed
from tidegate.core.model.events import GpuReset
from tidegate.core.model.finding import Finding, StoppedCheck
from tidegate.core.model.plan import Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.service.control import Looked, Round
from tidegate.service.outcome import Outcome
from tidegate.sim.chaos import NEVER_S, Chaos
from tidegate.sim.checks.reboots import RebootsBounded, SickNodesMended
from tidegate.sim.checks.witness import Broken
from tidegate.sim.draw import draw
from tidegate.sim.repairs import repairs
from tidegate.sim.sickness import GPU_ERRS, GPU_FAILED
from tidegate.sim.slurm_parts import SimNode
from tidegate.sim.slurm_reboots import ISSUED


@pytest.mark.parametrize(
    ("check", "is_lifted", "is_forgotten"),
    [("NHC: eth", True, True), ("NHC: eth", False, False), ("NHC: fs", True, False)],
)
def test_who_was_rebooted_may_be_again_once_a_person_has_said_that_its_check_erred(
    check: str, *, is_lifted: bool, is_forgotten: bool
) -> None:
    world, seen = witnessed()
    bounded = RebootsBounded(seen)
    (one,) = world.compute.create_fleet(first_node(world)).instances
    bounded.asked[one.instance_id] = 2
    stopped = StoppedCheck(check, 0.0, 2, 3, is_lifted=is_lifted)
    found = Finding(one.instance_id, "NHC: eth", SPOT, 0.0, 3, 3)
    history = PoolHistory("t4", findings=(found,), stopped_checks=(stopped,))
    known = replace(snapshot(), pool_history=(history,))

    bounded.looked(Looked([Round(known, Plan((), (), ()), Outcome())]))

    assert bounded.asked == ({} if is_forgotten else {one.instance_id: 2})


def opened(*, is_mended: bool) -> SickNodesMended:
    """A node of which a GPU has failed, as somebody has opened it."""
    world, seen = witnessed()
    world.slurm.nodes["i-1"] = SimNode("i-1", 4, 1000, 1, "t4", ())
    seen.chaos.falls_ill("i-1")
    if is_mended:
        seen.chaos.unwell.discard("i-1")
    return SickNodesMended(seen)


def test_a_node_that_is_opened_as_it_was_is_seen() -> None:
    opened(is_mended=True).passed(1.0)
    with pytest.raises(Broken, match="i-1 takes jobs, and its GPU is as it was"):
        opened(is_mended=False).passed(1.0)


def test_a_node_that_is_off_for_ever_is_seen() -> None:
    bounded = opened(is_mended=True)
    node = bounded.world.slurm.nodes["i-1"]
    node.reboot, node.is_down = ISSUED, True
    bounded.passed(1000.0)

    with pytest.raises(Broken, match="i-1 is off for 2000 s to be mended"):
        bounded.passed(1000.0)


@pytest.mark.parametrize("reason", [GPU_ERRS, GPU_FAILED])
def test_gpus_are_reset_where_the_reason_asks_for_it_and_that_ends_in_each_way(
    reason: str,
) -> None:
    said: list[GpuReset] = []
    for seed in range(100):
        world, _ = witnessed()
        chaos = Chaos(draw(seed), world)
        off = SimNode("i-1", 4, 1000, 1, "t4", (), is_down=True, reason=reason)
        world.slurm.nodes["i-1"] = off
        chaos.falls_ill("i-1")
        world.on_news.append(lambda news: said.extend(n for n in news if isinstance(n, GpuReset)))

        took_s = repairs(chaos)("i-1")
        world.step(1000.0)

        # What registers again has passed its gate.
        assert ("i-1" in chaos.unwell) == (took_s == NEVER_S)

    ends = {each.failed for each in said}
    assert ends == ({"", "refused", "hangs", "sick"} if reason == GPU_ERRS else set())
