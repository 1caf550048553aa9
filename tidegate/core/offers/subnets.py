"""Which pools a full subnet stops: those that have no other one in its zone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.resting import Resting

type SubnetsOf = Callable[[str, str], tuple[str, ...]]
"""The subnets of a pool in a zone, by both names; (): not known."""


def stopped_by(
    full: Iterable[Resting], pools: Sequence[Pool], subnets_of: SubnetsOf
) -> tuple[Resting, ...]:
    """Rests in single subnets as rests of what is sold: for all pools, or for some by name."""
    by_what: dict[tuple[Offering, str], dict[str, Resting]] = {}
    for each in full:
        by_what.setdefault((each.offering, each.reservation), {})[each.subnet] = each
    return tuple(
        rest
        for (offering, _), rests in sorted(by_what.items())
        for rest in _of_offering(offering, rests, pools, subnets_of)
    )


def _of_offering(
    offering: Offering,
    rests: Mapping[str, Resting],
    pools: Sequence[Pool],
    subnets_of: SubnetsOf,
) -> Iterator[Resting]:
    sellers = [pool.name for pool in pools if pool.may_have(offering)]
    stopped = {
        name: rest
        for name in sellers
        if (rest := _soonest(subnets_of(name, offering.zone), rests)) is not None
    }
    if len(stopped) == len(sellers) and len(set(stopped.values())) == 1:
        yield from set(stopped.values())
        return
    for name, rest in stopped.items():
        yield replace(rest, pool=name)


def _soonest(there: Sequence[str], rests: Mapping[str, Resting]) -> Resting | None:
    """Of a pool with these subnets, the one that is tried again first; None: one may have room."""
    theirs = [rests[each] for each in there if each in rests]
    if len(theirs) < len(there):
        return None
    return min(theirs or rests.values(), key=lambda each: (each.until_s, each.subnet))
