"""What speaks against nodes that boot: the launches before them in their pool gave no good one."""

from collections.abc import Sequence

from tidegate.core.fleet.cures import remedy, words
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.frozen import frozen
from tidegate.core.model.resting import BOOT_FAILURES
from tidegate.core.model.snapshot import Snapshot


@frozen
class Doubt:
    """`sentence`: how many failed and what the last of them said; `remedy`: what to do."""

    sentence: str
    remedy: str


def doubt(ours: Sequence[Member], snapshot: Snapshot) -> Doubt | None:
    """Whether the nodes that boot for a job will come up; None: nothing speaks against it."""
    if not ours or any(each.node is not None for each in ours):
        return None
    for name in sorted({each.pool for each in ours}):
        failures = len(history_of(snapshot, name).recent(snapshot.now_s))
        pool = snapshot.cluster.pool(name)
        if not failures or pool is None:
            continue
        types = {each.name for each in pool.instance_types}
        broken = [
            each
            for each in snapshot.resting
            if each.code in BOOT_FAILURES
            and each.stops(name)
            and each.offering.instance_type in types
        ]
        many = f"the last {failures} launches" if failures > 1 else "the last launch"
        said = f"{many} of pool {name} gave no good node"
        if not broken:
            return Doubt(said, "")
        last = max(broken, key=lambda each: (each.until_s, each.key))
        return Doubt(f"{said}: {words(last)}", remedy(last, snapshot.cluster.name, name))
    return None
