"""How many nodes a pool may keep without a job; written without the planner."""

from collections.abc import Iterable

from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.rollout import Rollout, Step
from tidegate.core.model.slurm import Job, Node
from tidegate.core.offers.reservations import drains_at_s
from tidegate.sim.world import SimWorld


def most_kept(world: SimWorld, pool: Pool) -> int:
    """Its minimum, or what it keeps free."""
    return max(pool.min_nodes - pool.headroom_nodes, 0) + most_free(world, pool)


def most_free(world: SimWorld, pool: Pool) -> int:
    """Its headroom and its spare nodes, which it keeps beside nodes that work: the planner counts
    the free part of each node alone as spare, however long jobs run on others.
    """
    headroom = pool.headroom_nodes + sum(each.most_nodes for each in pool.headroom)
    return headroom + _most_spare(world)


def of_another_kind(world: SimWorld, pool: Pool, jobs: Iterable[Job]) -> int:
    """Where a pool keeps several kinds of nodes free: a job for which one kind was to be had may
    have taken the other, which is bought anew beside what is too much of the first.
    """
    if len(pool.headroom) < 2:
        return 0
    used = {name for job in jobs if job.is_running for name in job.node_names}
    found = (world.compute.everything.get(name) for name in used)
    bought = (world.ledger.all_launches.get(one.launch_id) for one in found if one)
    launches = (each.launch for each in bought if each)
    return sum(each.pool == pool.name and not each.for_jobs for each in launches)


def _most_spare(world: SimWorld) -> int:
    """Spare nodes of a pool: no more than would take every job so far at once."""
    if not world.cluster.waiting.most_usd:
        return 0
    return sum(job.submit.nodes for job in world.slurm.table.jobs.values())


def most_to_check(world: SimWorld, pool: Pool, seen: Iterable[Node]) -> int:
    """What the site's check of a new version still lacks of the nodes that it needs at one time.

    `seen`: the nodes of Slurm as the planner knew them.
    """
    check, history = world.cluster.check, world.ledger.all_pool_history.get(pool.name)
    rollout = history.rollout.obeying() if history and history.rollout else None
    if check is None or rollout is None or (check.pools and pool.name not in check.pools):
        return 0
    if rollout.step is not Step.CANARY or rollout.is_stopped or rollout.checked.is_passed:
        return 0
    ready = [each for each in seen if each.state.takes_jobs and _is_good(rollout, each.name, world)]
    return max(check.nodes - len(ready), 0)


def _is_good(rollout: Rollout, name: str, world: SimWorld) -> bool:
    one, known = world.compute.everything.get(name), world.ledger.all_nodes.get(name)
    is_made_from = one is not None and one.template == rollout.template.digest
    is_leaving = known is not None and bool(known.cordon or known.reclaim_at_s)
    is_tried = name in rollout.tried and name not in rollout.bad
    return is_made_from and is_tried and not (is_leaving or is_block_ending(world, name))


def is_block_ending(world: SimWorld, name: str) -> bool:
    """Its capacity block's end stands in the cluster file: that is notice enough."""
    block = world.compute.prepaid.held.get(name)
    if block is None or block.market is not Market.CAPACITY_BLOCK or not block.ends_at_s:
        return False
    return world.clock.now_s() >= (drains_at_s(block) or 0.0)


def stopped_of(world: SimWorld) -> set[str]:
    """What stands still as its pool wants it: no more of a pool than it keeps so."""
    found: set[str] = set()
    for pool in world.cluster.pools:
        nodes = (world.ledger.all_nodes.get(name) for name in world.compute.stopped)
        told = (node for node in nodes if node and node.stopped_at_s is not None)
        ours = [node.instance_id for node in told if node.pool == pool.name]
        found.update(ours if len(ours) <= pool.stopped_nodes else ())
    return found
