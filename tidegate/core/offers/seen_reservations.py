"""The cluster with the reservations that EC2 shows: groups change, blocks are extended, and others
are split, moved, cancelled or end at another time than the file says.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tidegate.core.model.capacity import (
    Extension,
    ExtensionState,
    Holding,
    paid_until_s,
    unpaid,
)
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.seen_reservations import SeenReservations

# It is read every few minutes: what is older than this was not read a dozen times.
TOLD_AFTER_S = 3600.0


def with_seen(cluster: Cluster, seen: SeenReservations) -> Cluster:
    """The cluster with what is in its groups, and with EC2's word for what its file names.

    However old it is, it counts: a launch into what is there no more is refused, and nothing is
    bought instead. Reservations that the file names too are launched into by their own id.
    """
    if not seen.found and not seen.lost:
        return cluster
    shown = {each.id: each for each in seen.found}
    own = tuple(_followed(each, shown.get(each.id), seen.lost) for each in cluster.reservations)
    named = {each.id for each in own}
    members = tuple(each for each in seen.found if each.id not in named and is_used(cluster, each))
    if not members and own == cluster.reservations:
        return cluster
    prices = {**cluster.prices, **{each.offering: 0.0 for each in members}}
    return replace(cluster, reservations=(*own, *members), prices=prices)


def is_used(cluster: Cluster, member: Reservation) -> bool:
    """Whether a reservation of a group is one that some pool launches into."""
    is_of_ours = member.group in cluster.reservation_groups
    return is_of_ours and any(pool.may_have(member.offering) for pool in cluster.pools)


def is_read(cluster: Cluster) -> bool:
    """Whether EC2 is asked about the cluster's reservations."""
    return bool(cluster.reservation_groups or cluster.reservations)


def seen_now(
    cluster: Cluster,
    held: Sequence[Holding],
    members: Mapping[str, Sequence[str]],
    extensions: Sequence[Extension],
) -> tuple[Reservation, ...]:
    """What EC2 shows of the cluster's groups, and of what its file names, as the ledger keeps it.

    `members`: by the ARN of a group, the ids in it. One that is in two groups counts in the first.
    """
    group_of = {name: arn for arn, names in reversed([*members.items()]) for name in names}
    named = {each.id: each for each in cluster.reservations}
    found = list[Reservation]()
    for each in sorted(held, key=lambda one: one.reservation.id):
        of = each.reservation
        if of.id in named:
            if _gives(each, named[of.id]):
                # EC2 does not say what it counts before it delivers.
                count = of.count if each.state.gives_nodes else max(of.count, named[of.id].count)
                found.append(replace(of, count=count, ends_at_s=paid_until_s(each, extensions)))
        elif of.id in group_of and not _no_place(each):
            found.append(replace(of, group=group_of[of.id]))
    return tuple(found)


def lost_now(cluster: Cluster, held: Sequence[Holding], before: Collection[str]) -> tuple[str, ...]:
    """The ids of the file from which no instance comes any more.

    What EC2 does not show is as it was: a new block is shown late, a cancelled one not for ever.
    """
    named = {each.id: each for each in cluster.reservations}
    shown = {each.reservation.id: each for each in held}
    return tuple(
        name
        for name in sorted(named)
        if not (_gives(shown[name], named[name]) if name in shown else name not in before)
    )


def odd_members(
    cluster: Cluster, held: Sequence[Holding], members: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What of the groups no node can be taken from, and what to do about it."""
    known = {each.reservation.id: each for each in held}
    for arn, names in members.items():
        group = f"the reservation group {short(arn)}"
        if not names:
            yield f"{group} is empty: what it is for is not bought; add reservations to it"
        for name in names:
            holding = known.get(name)
            if holding is None:
                yield f"{name} in {group}: EC2 does not show it here, so it gives no node"
            elif why := _no_place(holding):
                yield f"{name} in {group} gives no node: {why}"
            elif not is_used(cluster, replace(holding.reservation, group=arn)):
                of = holding.reservation
                yield (
                    f"{name} in {group} is of {of.instance_type} in {of.zone}, which no pool has"
                    " with capacity type reserved: it is paid for and never used"
                )


def odd_extensions(
    cluster: Cluster, held: Sequence[Holding], extensions: Sequence[Extension], now_s: float
) -> Iterator[str]:
    """Extensions of the cluster's blocks that are not paid for."""
    blocks = {each.id for each in _blocks(cluster)}
    for each in held:
        of = each.reservation
        if of.id not in blocks or each.is_over:
            continue
        for one in unpaid(each, extensions):
            if one.starts_at_s <= now_s:
                continue
            until, end = _at(one.ends_at_s), _at(one.starts_at_s)
            if one.state is ExtensionState.PAYMENT_FAILED:
                yield (
                    f"the extension of {of.id} until {until} was not paid for: the block ends"
                    f" {end}; mend the account's payment and buy it again: tidegate capacity"
                )
            else:
                yield (
                    f"the extension of {of.id} until {until} is {one.state}: it counts once it is"
                    f" paid for, and until then the block ends {end}"
                )


def reservation_troubles(cluster: Cluster, seen: SeenReservations, now_s: float) -> Iterator[str]:
    """What a person should know of the groups and blocks that are planned with."""
    if not is_read(cluster):
        return
    yield from seen.troubles
    if seen.at_s is not None and now_s - seen.at_s >= TOLD_AFTER_S:
        yield (
            f"the account's reservations were last read {span(now_s - seen.at_s)} ago: what came"
            " into a group since, or was extended, split or cancelled, does not count yet"
        )


def short(arn: str) -> str:
    """A group as people call it."""
    return arn.rpartition("/")[2]


def _followed(each: Reservation, shown: Reservation | None, lost: Collection[str]) -> Reservation:
    """What the file names as EC2 has it. The file's `count` is the most that is taken: the others
    may be somebody else's. An end that EC2 does not show is the file's own word.
    """
    if each.id in lost:
        return replace(each, count=0)
    if shown is None:
        return each
    ends_at_s = each.ends_at_s if shown.ends_at_s is None else shown.ends_at_s
    count = min(each.count, shown.count)
    return replace(each, count=count, ends_at_s=ends_at_s, block=shown.block)


def _gives(holding: Holding, named: Reservation) -> bool:
    """Whether instances of ours may come from what the file names, now or later."""
    is_as_named = holding.reservation.market is named.market
    return is_as_named and not holding.is_over and not holding.unusable


def _blocks(cluster: Cluster) -> list[Reservation]:
    return [each for each in cluster.reservations if each.market is Market.CAPACITY_BLOCK]


def _no_place(holding: Holding) -> str:
    """Why no launch that names a group goes into this reservation; "": one may."""
    if holding.is_over:
        return f"EC2 says that it is {holding.state}; take it out of the group"
    if holding.reservation.market is Market.CAPACITY_BLOCK:
        return "it is a Capacity Block; name it in reservations by its id"
    if holding.reservation.market is Market.INTERRUPTIBLE:
        return "it is interruptible; name it in reservations by its id"
    return holding.unusable


def _at(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
