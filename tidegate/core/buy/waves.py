"""Which launches of a plan EC2 is asked for side by side, and which wait for an answer."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from tidegate.core.model.ec2 import Offering
from tidegate.core.model.ledger import LaunchRecord


def waves(
    records: Sequence[LaunchRecord],
    in_doubt: Sequence[LaunchRecord] = (),
    failures: Mapping[Offering, int] | None = None,
) -> tuple[tuple[LaunchRecord, ...], ...]:
    """Each to be asked for at once when the one before is answered.

    First what is in doubt and what is paid for in advance: EC2 takes any node that it fits into
    an open reservation. Of launches that want the same offering before all others the first in
    the plan is asked for before the rest: it has the first claim on what is left, and when there
    is nothing the rest is not asked for in vain.

    A gang of several launches is asked for one by one, the scarcest first, so that nothing is
    bought for it when a part cannot be had. `failures`: how often each offering was refused.
    """
    firsts, later = _one_by_one(records, failures or {})
    prepaid = [each for each in firsts if each.launch.offerings[0].market.is_prepaid]
    heads: dict[object, LaunchRecord] = {}
    rest: list[LaunchRecord] = []
    for each in firsts:
        first = each.launch.offerings[0]
        if not first.market.is_prepaid and heads.setdefault(first, each) is not each:
            rest.append(each)
    found = ((*in_doubt, *prepaid), tuple(heads.values()), tuple(rest), *later)
    return tuple(each for each in found if each)


def _one_by_one(
    records: Sequence[LaunchRecord], failures: Mapping[Offering, int]
) -> tuple[list[LaunchRecord], Iterator[tuple[LaunchRecord, ...]]]:
    """What is asked for first of each gang, and all that needs no other; then the others of each
    gang, one after the other.
    """
    gangs: dict[str, list[LaunchRecord]] = {}
    for each in records:
        gangs.setdefault(each.launch.gated_for or each.launch.launch_id, []).append(each)
    for parts in gangs.values():
        parts.sort(key=lambda each: _scarcest_first(each, failures))
    firsts = {parts[0].launch.launch_id for parts in gangs.values()}
    columns = zip_longest(*(parts[1:] for parts in gangs.values()))
    later = (tuple(each for each in column if each) for column in columns)
    return [each for each in records if each.launch.launch_id in firsts], later


def _scarcest_first(record: LaunchRecord, failures: Mapping[Offering, int]) -> tuple[object, ...]:
    """What is paid for in advance costs nothing when the rest cannot be had. Then what EC2 has
    refused most often in all its offerings, what has the fewest of them, and where nothing is
    known, what costs least: so much is lost when the next part cannot be had.
    """
    launch = record.launch
    return (
        not launch.offerings[0].market.is_prepaid,
        -min(failures.get(each, 0) for each in launch.offerings),
        len(launch.offerings),
        launch.count * launch.usd_per_hour_each,
        launch.launch_id,
    )
