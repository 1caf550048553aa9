"""Which launches of a plan EC2 is asked for side by side, and which wait for an answer."""

from collections.abc import Sequence

from tidegate.core.actions import LaunchRecord


def waves(
    records: Sequence[LaunchRecord], in_doubt: Sequence[LaunchRecord] = ()
) -> tuple[tuple[LaunchRecord, ...], ...]:
    """At most three, each to be asked for at once when the one before is answered.

    First what is in doubt and what is paid for in advance: EC2 takes any node that it fits into
    an open reservation. Of launches that want the same offering before all others the first in
    the plan is asked for before the rest: it has the first claim on what is left, and when there
    is nothing the rest is not asked for in vain.
    """
    prepaid = [each for each in records if each.launch.offerings[0].market.is_prepaid]
    heads: dict[object, LaunchRecord] = {}
    rest: list[LaunchRecord] = []
    for each in records:
        first = each.launch.offerings[0]
        if not first.market.is_prepaid and heads.setdefault(first, each) is not each:
            rest.append(each)
    found = ((*in_doubt, *prepaid), tuple(heads.values()), tuple(rest))
    return tuple(each for each in found if each)
