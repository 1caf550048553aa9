"""What is odd about the reservations that the cluster file names by id, and what to do about it.

Source: EC2 user guide, "Split off capacity from an existing Capacity Reservation", "Move capacity
between Capacity Reservations", "Cancel a Capacity Reservation".
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from tidegate.core.model.capacity import BlockState, Holding
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market

REMOVE = "take it out of reservations and deploy"


def odd_named(
    named: Sequence[Reservation], held: Sequence[Holding], grouped: Collection[str], now_s: float
) -> Iterator[str]:
    """Of each of these at most a sentence. `held`: all that the account has; `grouped`: the ids of
    what is in the cluster's groups.
    """
    known = {each.reservation.id: each for each in held}
    taken = {*grouped, *(each.id for each in named)}
    for each in named:
        holding = known.get(each.id)
        is_meant_to_end = each.ends_at_s is not None and each.ends_at_s <= now_s
        if is_meant_to_end and (holding is None or holding.is_over):
            continue
        beside = [
            other.reservation.id
            for other in held
            if other.reservation.id not in taken and is_alike(each, other)
        ]
        if said := _odd(each, holding, beside, now_s):
            yield said


def is_alike(named: Reservation, other: Holding) -> bool:
    """Whether it may hold what was split off or moved: of the same type, zone and kind. EC2 does
    not say what came from where.
    """
    of = other.reservation
    is_kind = of.market is named.market is Market.RESERVED and of.offering == named.offering
    return is_kind and not other.is_over and not other.unusable


def _odd(named: Reservation, holding: Holding | None, beside: Sequence[str], now_s: float) -> str:
    """What is wrong with a reservation of the file, and what becomes of it; "": nothing."""
    name = named.id
    if holding is None:
        return f"EC2 shows no {name} here: it gives no node; {REMOVE}, or mend its id"
    if holding.is_over:
        nodes = "its nodes run on and are billed on demand"
        if named.market is Market.CAPACITY_BLOCK:
            nodes = "it gives no node, and jobs on those that EC2 ends are requeued"
        elif beside:
            nodes = "its nodes run on, billed on demand where no other reservation holds them"
        said = f"EC2 says that {name} is {holding.state}: {nodes}; {REMOVE}"
        return f"{said}{_elsewhere(beside)}"
    if (market := holding.reservation.market) is not named.market:
        kind = f"it is {market} by EC2, not {named.market}; mend its kind and deploy"
        return f"{name} gives no node: {kind}"
    if holding.unusable:
        return f"{name} gives no node: {holding.unusable}; {REMOVE}"
    if holding.reservation.is_targeted and not named.is_targeted:
        return (
            f"{name} takes only what names it (targeted), so EC2 refuses what is launched for it; "
            "set its `targeted: true` and deploy"
        )
    if holding.state is BlockState.DELAYED or (
        named.starts_at_s <= now_s and not holding.state.gives_nodes
    ):
        begins = datetime.fromtimestamp(named.starts_at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return (
            f"EC2 says that {name} is {holding.state}, which begins {begins} by the file: it is"
            " tried again by itself, nodes come when it is active"
        )
    if holding.state.gives_nodes and not holding.is_launchable:
        return f"EC2 takes no launches into {name} now (unlaunchable): it is tried again by itself"
    has = holding.reservation.count
    if holding.state.gives_nodes and has < named.count:
        many = "1 instance" if has == 1 else f"{has} instances"
        said = f"{name} has {many} by EC2, not {named.count} as the file says"
        return f"{said}: it is used for {has}{_elsewhere(beside)}"
    return ""


def _elsewhere(beside: Sequence[str]) -> str:
    """Where the rest may be."""
    if not beside:
        return ""
    one = "is" if len(beside) == 1 else "are"
    it = "it stands" if len(beside) == 1 else "they stand"
    return (
        f"; {', '.join(beside)} {one} of its type and zone and in no file: if what was split off or"
        f" moved is there, it is used once {it} in reservations, or in a group"
    )
