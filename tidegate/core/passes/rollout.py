"""What each launch of a plan is made from: a roll-out tries the new template on a few nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidegate.core.fleet import rollout
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.templates import chosen, rollout_of
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Offering, Template
from tidegate.core.model.ledger import Launch
from tidegate.core.model.rollout import Step
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.work import Work


def launches(work: Work) -> tuple[Launch, ...]:
    """What the plan buys. Nodes that a roll-out tries are launches of their own."""
    for pool in work.snapshot.cluster.pools:
        _try_new(work, pool)
    made = work.launch_builder.launches(str(work.snapshot.epoch))
    return tuple(from_templates(made, work.snapshot))


def from_templates(made: Iterable[Launch], snapshot: Snapshot) -> Iterator[Launch]:
    """The launches, with what their nodes are made from where nothing else was said yet."""
    used: dict[str, Template | None] = {}
    for each in made:
        if each.template is None and each.pool not in used:
            used[each.pool] = chosen(snapshot, each.pool)
        yield each if each.template else replace(each, template=used[each.pool])


def share_left(work: Work, pool: Pool) -> int:
    """How many nodes of the pool may go for its roll-out now."""
    found = rollout_of(work.snapshot, pool.name)
    return rollout.share_left(found, work.snapshot, _ours(work, pool)) if found else 0


def resting(work: Work, pool: Pool) -> frozenset[Offering]:
    """What is not made from the template that the pool rolls out."""
    found = rollout_of(work.snapshot, pool.name)
    return rollout.resting(found, pool.name, work.snapshot) if found else frozenset()


def is_tried(work: Work, member: Member) -> bool:
    """It is made from the template that its pool rolls out."""
    found = rollout_of(work.snapshot, member.pool)
    return found is not None and rollout.is_made_from(member, found)


def _try_new(work: Work, pool: Pool) -> None:
    """Make as many nodes from the new template as the pool's roll-out allows."""
    found, builder = rollout_of(work.snapshot, pool.name), work.launch_builder
    buys = builder.num_nodes(pool.name)
    if found is None or not buys:
        return
    left = rollout.room(found, work.snapshot, _ours(work, pool), buys)
    has_gangs = found.step is not Step.CANARY
    builder.make_from(found.template, pool.name, left, but=resting(work, pool), has_gangs=has_gangs)


def _ours(work: Work, pool: Pool) -> list[Member]:
    return [each for each in work.fleet.members if each.pool == pool.name]
