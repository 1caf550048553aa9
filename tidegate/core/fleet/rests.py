"""What rests since nodes of it were no good, and what so few failures do not stop."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tidegate.core.fleet.judge import Judged
from tidegate.core.fleet.templates import chosen, is_to_blame
from tidegate.core.interruption.save import after_loss
from tidegate.core.model.cluster import Timings
from tidegate.core.model.ec2 import Cure, Refusal, RefusalKind
from tidegate.core.model.ledger import NodeRecord
from tidegate.core.model.plan import Rest
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import (
    BOOT_FAILURES,
    BROKEN_REST_FACTOR,
    TAKEN_BACK,
    BootFailure,
    Resting,
    RestKey,
    rested,
)
from tidegate.core.model.snapshot import Snapshot

# Against these tell the nodes that joined; one that joined DOWN or too small joined as well.
_NEVER_JOINED = frozenset({BootFailure.STAGE, BootFailure.ENDED, BootFailure.BOUND})
_JOINED_WITHIN_S = 1800.0


def outweighed(
    resting: Collection[Resting], nodes: Iterable[NodeRecord], histories: Iterable[PoolHistory]
) -> frozenset[RestKey]:
    """What rests nothing: within half an hour before it failed, or since, more nodes of the same
    offering, pool and template joined than failed in a row; or it failed once, and its pool's
    template has brought good nodes.

    Of many nodes one is always broken, and its job, or all others of its gang, paid for, would wait
    until its place may be bought again.
    """
    failed = {r.key: r for r in resting if r.code in BOOT_FAILURES and r.since_s}
    if not failed:
        return frozenset()
    joined = dict.fromkeys(failed, 0)
    for node in nodes:
        key = node.offering, node.pool, node.template, "", ""
        of = failed.get(key)
        if of and node.joined_at_s and node.joined_at_s > of.since_s - _JOINED_WITHIN_S:
            joined[key] += 1
    good = {(each.pool, each.good.digest) for each in histories if each.good}
    return frozenset(
        key
        for key, each in failed.items()
        if (each.code in _NEVER_JOINED and joined[key] > each.failures)
        or (each.failures == 1 and each.template and (each.pool, each.template) in good)
    )


def rests_of(
    rests: Iterable[Rest], before: Mapping[RestKey, Resting], now_s: float, timings: Timings
) -> dict[RestKey, Resting]:
    """What rests by these from now on, and until when. `before`: what rested, which stays where it
    tells more of a node already than that it ended, or was no good.
    """
    found: dict[RestKey, Resting] = {}
    for each in rests:
        known = before.get(each.key)
        is_plain = not each.is_refusal and each.cure is Cure.NONE
        if is_plain and known and each.is_told(known, now_s):
            continue
        if each.code == TAKEN_BACK:
            if lost := after_loss(each.offering, known, now_s, timings):
                found[each.key] = lost
            continue
        refusal = Refusal(
            *(each.offering, RefusalKind.OTHER, each.code, each.reason, each.cure),
            pool=each.pool,
            template=each.template,
            reservation=each.reservation,
        )
        factor = 1.0 if each.is_refusal else BROKEN_REST_FACTOR
        made = rested(refusal, _counted_once(each, known, now_s), now_s, timings, factor=factor)
        found[each.key] = replace(made, instance_id=each.instance_id)
    return found


def _counted_once(rest: Rest, known: Resting | None, now_s: float) -> Resting | None:
    """What rested, without this very failure: an end that its event told counts once, with why EC2
    says that it came.
    """
    if known is None or rest.cure is Cure.NONE or known.code != rest.code:
        return known
    is_told = rest.is_told(known, now_s)
    return replace(known, failures=known.failures - 1) if is_told else known


def with_rests(snapshot: Snapshot, judged: Iterable[Judged]) -> Snapshot:
    """The snapshot as if it had been noted before what its nodes say of their offerings: a plan
    buys nothing of what it lets rest.
    """
    rests = [
        action
        for each in judged
        for action in each.actions
        if isinstance(action, Rest) and not is_to_blame(each, snapshot)
    ]
    if not rests:
        return snapshot
    known = {each.key: each for each in (*snapshot.resting, *snapshot.outweighed)}
    now_s, timings = snapshot.now_s, snapshot.cluster.timings
    found = rests_of((r for r in rests if _is_used(r, snapshot)), known, now_s, timings)
    spared = outweighed(found.values(), snapshot.nodes, snapshot.pool_history)
    new = tuple(found[key] for key in sorted(found.keys() - spared))
    kept = (each for each in snapshot.resting if each.key not in found)
    return replace(snapshot, resting=(*kept, *new))


def _is_used(rest: Rest, snapshot: Snapshot) -> bool:
    """New nodes of its pool are made from the same."""
    template = chosen(snapshot, rest.pool) if rest.pool else None
    return template is None or rest.template in ("", template.digest)
