"""How far each pool has gone over to the template that is deployed, for people and programs."""

from collections.abc import Iterator

from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.rollout import goes_on, is_made_from
from tidegate.core.fleet.rollout_alarms import held
from tidegate.core.fleet.rollout_told import remedy, why_paused
from tidegate.core.fleet.templates import chosen, rollout_of
from tidegate.core.model.frozen import frozen
from tidegate.core.model.rollout import SHARE_PERCENT, Rollout, RolloutCode, Step
from tidegate.core.model.snapshot import Snapshot

# Of a pool that makes all its nodes from what is deployed.
EVERYWHERE = "everywhere"


@frozen
class RolloutNow:
    """A pool and its templates. `template`: what is deployed, `good`: what all others are made
    from. `state`: everywhere, canary, tenth, or the code of why it does not go on.

    `nodes`: how many of the pool's `of` nodes are made from `template`, and `most`: may be made
    now, None: all. `jobs`, `failed_jobs`: that ended on these during the roll-out.
    """

    pool: str
    template: str
    good: str
    state: str
    nodes: int
    of: int
    most: int | None
    jobs: int
    failed_jobs: int
    sentence: str


def rollouts(snapshot: Snapshot) -> Iterator[RolloutNow]:
    """Each pool of which it is known what its nodes are made from."""
    fleet = members(snapshot)
    for name, template in snapshot.templates:
        ours = [each for each in fleet if each.pool == name and _is_alive(each)]
        found = rollout_of(snapshot, name)
        if found:
            yield _on_its_way(name, found, ours, snapshot)
            continue
        yield RolloutNow(
            pool=name,
            template=template.digest,
            good=template.digest,
            state=EVERYWHERE,
            nodes=sum(each.template == template.digest for each in ours),
            of=len(ours),
            most=None,
            jobs=0,
            failed_jobs=0,
            sentence="all new nodes are made from it",
        )


def _on_its_way(pool: str, rollout: Rollout, ours: list[Member], snapshot: Snapshot) -> RolloutNow:
    good = chosen(snapshot, pool)
    why = "" if rollout.is_stopped else held(rollout, snapshot)
    most = 0 if rollout.is_stopped or why else rollout.most(len(ours))
    paused = RolloutCode.HELD if why else RolloutCode.PAUSED if rollout.is_paused else None
    return RolloutNow(
        pool=pool,
        template=rollout.template.digest,
        good=good.digest if good else "",
        state=str(rollout.given_up or paused or rollout.step),
        nodes=sum(is_made_from(each, rollout) for each in ours),
        of=len(ours),
        most=most,
        jobs=rollout.jobs.ended,
        failed_jobs=rollout.jobs.failed,
        sentence=_sentence(pool, rollout, ours, snapshot),
    )


def _sentence(pool: str, rollout: Rollout, ours: list[Member], snapshot: Snapshot) -> str:
    if rollout.given_up:
        return f"given up: {rollout.said}; {remedy(pool, rollout)}"
    if rollout.is_paused:
        return f"paused by {rollout.by}{why_paused(rollout)}; {remedy(pool, rollout)}"
    step = "its first nodes" if rollout.step is Step.CANARY else f"{SHARE_PERCENT} % of the nodes"
    return f"{step}: {goes_on(rollout, pool, ours, snapshot)}"


def _is_alive(member: Member) -> bool:
    if member.instance is not None:
        return member.instance.is_alive
    return member.record is not None and member.record.phase.is_alive
