"""What checks make of nodes that the site's check of a roll-out needs or waits for."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, node, pool
from tidegate.core.model.ec2 import Template
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.rollout import Rollout, RolloutCode, Step
from tidegate.core.model.site_check import Checked, SiteCheck
from tidegate.core.model.slurm import SetBy, Shape
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.orders import OperatorsKeepNodes
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.happenings import OPERATORS
from tidegate.sim.kept import most_to_check
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld


def with_node(check: SiteCheck | None = None) -> tuple[SimWorld, str]:
    """A world with one node, which runs a job."""
    world = SimWorld(replace(cluster(pool(types=(T4,))), check=check), lambda instance: 60.0)
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))
    world.step(600.0)
    (name,) = world.slurm.nodes
    return world, name


def test_a_check_may_be_submitted_for_a_node_that_a_person_has_drained_since() -> None:
    """It waits there until the node is open; nothing else may come to the node."""
    world, name = with_node()
    drained = world.slurm.nodes[name]
    drained.is_drain, drained.reason, drained.set_by = True, OPERATORS[0], SetBy.ROOT
    check = OperatorsKeepNodes(Witness(world, Chaos(draw(0), world)))

    check.commanded("check", (name,))
    for verb in ("undrain", "drain", "delete"):
        with pytest.raises(Broken, match="which a person has drained"):
            check.commanded(verb, (name,))


def rolling(of: str, *tried: str) -> Rollout:
    return Rollout(Template("lt", "2", of), 0.0, step_since_s=0.0, tried=tried)


def lacking(
    rollout: Rollout | None,
    *,
    nodes: int = 2,
    state: str = "IDLE",
    pools: str = "",
    is_leaving: bool = False,
) -> int:
    """`state`: of the only node, "" for none."""
    wanted = (pools,) if pools else ()
    world, name = with_node(SiteCheck("ci", nodes, pools=wanted))
    template = world.compute.everything[name].template
    if is_leaving:
        world.ledger.cordon_node(name, Cordon("AWS Health: retirement", 0.0))
    (held,) = world.cluster.pools
    if rollout:
        of = replace(rollout.template, digest=rollout.template.digest or template)
        tried = (name,) if rollout.tried else ()
        rollout = replace(rollout, template=of, tried=tried, bad=tuple(name for _ in rollout.bad))
    world.ledger.all_pool_history[held.name] = PoolHistory(held.name, rollout=rollout)
    return most_to_check(world, held, [node(name, T4, state=state)] if state else [])


FIRST = rolling("", "it")


def test_a_check_lacks_the_nodes_that_it_needs_beside_the_good_ones_that_are_open() -> None:
    assert [lacking(FIRST, nodes=each) for each in (1, 2)] == [0, 1]
    assert lacking(FIRST, state="IDLE+DRAIN") == 2
    assert lacking(FIRST, state="") == 2
    assert lacking(FIRST, is_leaving=True) == 2
    assert lacking(replace(FIRST, bad=("it",))) == 2
    assert lacking(replace(FIRST, tried=())) == 2
    assert lacking(rolling("another", "it")) == 2


def test_where_nothing_is_to_be_checked_no_node_is_lacking() -> None:
    done = Checked(is_passed=True)

    assert lacking(None) == 0
    assert lacking(FIRST, pools="another") == 0
    assert lacking(replace(FIRST, checked=done)) == 0
    assert lacking(replace(FIRST, step=Step.TENTH)) == 0
    assert lacking(replace(FIRST, is_paused=True)) == 0
    assert lacking(FIRST.giving_up(RolloutCode.BAD_CHECK, "it failed")) == 0
    assert lacking(replace(FIRST, is_paused=True, asked=RolloutCode.RESUMED)) == 1
