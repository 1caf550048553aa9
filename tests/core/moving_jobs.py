"""A job on demand that may be moved to spot, and what a planner sees of it."""

from collections.abc import Sequence

from tests.core.reading import orders
from tests.make import (
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.job_files import Progress
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.due import MARGIN_S
from tidegate.core.passes.moving import SEEN_S

HOUR_S = 3600.0
BOOT_S = 300.0
GRACE_S = 20.0
FILE = "tidegate:progress=/shared/ada/progress"
SAYS = f"tidegate:ckpt=USR1@20 {FILE} tidegate:move"
LIMIT_S = 10 * HOUR_S
# Two boots, the time to save and the next look: with less to spare a job stays on demand.
NET_S = 2 * BOOT_S + MARGIN_S + GRACE_S
# What a move takes until its job is told: it begins only with so much more.
BEGINS_S = BOOT_S + 2 * SEEN_S
# By the prices of these nodes: on demand costs 0.526, spot 0.2.
LASTING_S = 2 * 0.526 / 0.2 * BOOT_S / (0.526 / 0.2 - 1)
STEADY = offering(market=Market.ON_DEMAND)
ONE_TYPE = cluster(pool(types=(T4,)))
IDLE = "IDLE+DYNAMIC_NORM"
SHUT = "ALLOCATED+DRAIN+DYNAMIC_NORM"


def running(left_s: float = 20 * HOUR_S, **more: object) -> Job:
    """An hour ago it started on demand, and has saved nothing yet."""
    made: dict[str, object] = {
        "on": ("i-1",),
        "time_limit_s": LIMIT_S,
        "comment": f"{SAYS} tidegate:deadline={NOW_S + left_s:.0f}",
        "started_at_s": NOW_S - HOUR_S,
        "progress": Progress(0.0),
    }
    return job(**{**made, **more})  # type: ignore[arg-type]


def seen(
    one: Job | None = None,
    *,
    of: Cluster = ONE_TYPE,
    resting: Sequence[Resting] = (),
    closed: str = "",
    spot: str = "",
    others: Sequence[Job] = (),
) -> Snapshot:
    """Its node on demand, with the reason with which that is closed; and its spot node's state:
    "" for none, "boots", or as Slurm shows it; IDLE: it is there for everybody.
    """
    state = SHUT if closed else "ALLOCATED+DYNAMIC_NORM"
    gated_for = "1" if spot != IDLE else ""
    nodes = [node("i-1", state=state, reason=closed, gpus_alloc=1)]
    records = [record("i-1", on=STEADY, age_s=7200)]
    instances = [instance("i-1", on=STEADY, age_s=7200)]
    if spot:
        phase = Phase.LAUNCHED if spot == "boots" else Phase.JOINED
        records.append(record("i-2", phase=phase, gated_for=gated_for))
        instances.append(instance("i-2"))
        nodes += [node("i-2", state=spot)] if spot != "boots" else []
    found = snapshot(
        [one or running(), *others],
        nodes,
        of=of,
        instances=instances,
        records=records,
        resting=resting,
    )
    return found


GATE = "IDLE+DRAIN+DYNAMIC_NORM"


def closing(made: Plan) -> str:
    (order,) = orders(made, OrderKind.DRAIN)
    assert order.names == ("i-1",)
    return order.text
