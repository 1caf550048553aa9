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
    bought for it when a part cannot be had. Of those that start stopped nodes of one offering the
    first is asked for before the others, which need no turn each. `failures`: how often each
    offering was refused.
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
    gangs: dict[str, dict[object, list[LaunchRecord]]] = {}
    for each in records:
        launch = each.launch
        steps = gangs.setdefault(launch.gated_for or launch.launch_id, {})
        steps.setdefault(launch.offerings if launch.starts else launch.launch_id, []).append(each)
    in_turn = [
        sorted(steps.values(), key=lambda step: _scarcest_first(step[0], failures))
        for steps in gangs.values()
    ]
    firsts = {each.launch.launch_id for steps in in_turn for each in steps[0]}
    columns = zip_longest(*(steps[1:] for steps in in_turn), fillvalue=())
    later = (tuple(each for step in column for each in step) for column in columns)
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
