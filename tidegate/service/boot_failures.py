"""Nodes that ended while they booted: what they are would fail again, so it rests for a while."""

from collections.abc import Iterable, Mapping, Sequence

from tidegate.core.fleet.cures import cure_of_stage
from tidegate.core.fleet.judge import BOOT_FAILED, BOOT_FAILURES, ENDED_WHILE_BOOTING
from tidegate.core.model.cluster import Timings
from tidegate.core.model.ec2 import Offering, Refusal, RefusalKind
from tidegate.core.model.events import BootFailed, News
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.ports import Ledger
from tidegate.service.apply import BROKEN_REST_FACTOR
from tidegate.service.launching import rested


def boot_failures(
    news: Sequence[News], dead: Iterable[str], records: Mapping[str, NodeRecord]
) -> dict[Offering, Refusal]:
    """What each offering's nodes said, or that they just ended. `dead`: ended, by EC2's word.

    Only nodes that never joined and that we did not end ourselves.
    """
    booting = {
        name: record.offering
        for name, record in records.items()
        if record.phase is Phase.LAUNCHED and record.ended_at_s is None
    }
    found: dict[Offering, Refusal] = {}
    for name in dead:
        if on := booting.get(name):
            found[on] = Refusal(on, RefusalKind.OTHER, ENDED_WHILE_BOOTING, "a node ended itself")
    for each in news:
        if isinstance(each, BootFailed) and (on := booting.get(each.instance_id)):
            said = f"stage {each.stage} failed on {each.instance_id}: {each.said}"
            found[on] = Refusal(on, RefusalKind.OTHER, BOOT_FAILED, said, cure_of_stage(each.stage))
    return found


def rest_failed(
    ledger: Ledger, failures: Mapping[Offering, Refusal], now_s: float, timings: Timings
) -> int:
    """How many offerings rest now that did not before.

    The first failure counts for all nodes of an offering until it is tried again.
    """
    known = {each.offering: each for each in ledger.resting(list(failures))} if failures else {}
    new = 0
    for offering, failure in sorted(failures.items()):
        before = known.get(offering)
        is_resting = before and before.until_s > now_s and before.code in BOOT_FAILURES
        if not is_resting:
            made = rested(failure, before, now_s, timings, factor=BROKEN_REST_FACTOR)
            ledger.rest(made)
            new += 1
    return new
