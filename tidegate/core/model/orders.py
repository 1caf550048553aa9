"""Orders to the head: what it is asked to do to a node or job, and what it answered."""

import re
from enum import StrEnum

from tidegate.core.model.frozen import frozen

_OF_PLAN = re.compile(r"(\w+-\d+)-o?\d+")


class OrderKind(StrEnum):
    """The closed vocabulary of the head's agent."""

    DRAIN = "drain"
    UNDRAIN = "undrain"
    RELEASE = "release"  # drain, see IDLE+DRAIN, delete: one guarded order
    REQUEUE = "requeue"  # and without Slurm's two minutes before the next start
    HOLD = "hold"  # a job that waits stays so until somebody releases it; one that runs ends first
    SIGNAL = "signal"
    CANCEL = "cancel"  # a job that runs
    TELL = "tell"  # a job that runs: a line in its output, and a comment
    COMMENT = "comment"
    CONSTRAIN = "constrain"  # one feature more that the nodes of a pending job must have
    WEIGHT = "weight"  # a hint: where Slurm starts jobs first
    REBOOT = "reboot"  # of a drained node: by Slurm, once nothing runs there, and open then
    CHECK = "check"  # submit the site's check of a template on these nodes, once
    DELETE = "delete"  # of a dead node: DOWN, so that Slurm gives up what ran there; delete

    @property
    def is_urgent(self) -> bool:
        return self in URGENT


URGENT = frozenset(
    {OrderKind.DRAIN, OrderKind.SIGNAL, OrderKind.REQUEUE, OrderKind.HOLD, OrderKind.DELETE}
)


def plan_of(own_id: str) -> str:
    """The plan that a launch ("1f0c9a3e-412-0") or an order ("1f0c9a3e-412-o3") is of.

    "": it is of none, like orders after a notice of EC2.
    """
    found = _OF_PLAN.fullmatch(own_id)
    return found[1] if found else ""


@frozen
class Order:
    """An instruction to the head's agent: data, never a command line."""

    order_id: str
    kind: OrderKind
    names: tuple[str, ...]  #: nodes, or job ids for orders about jobs
    not_after_s: float  #: dropped after that
    #: words, one of which a node's state must hold (IDLE), or a job's (RUNNING); a delete without
    #: them is of a node whose instance is gone
    only_if: tuple[str, ...] = ()
    #: the reason of a drain or delete, the signal's name, the comment, the feature, the weight or
    #: the name of the check's job; of an undrain, the one drain reason that it lifts besides a
    #: gate, which has none
    text: str = ""
    delay_s: int = 0  #: how long the queue keeps it back
    #: requeue and signal touch only jobs that still run on one of these nodes, so that a late
    #: repeat cannot hit a job that has long started elsewhere
    on_nodes: tuple[str, ...] = ()
    #: what another hand said as it drained (`drains.told_by`): no reason to keep a node
    despite: str = ""
    #: an order about jobs touches only runs that so many requeues came before; null: any
    restarts: int | None = None


class OrderOutcome(StrEnum):
    DONE = "done"
    KEPT = "kept"  # the guard said no: a job slipped in, or the state had changed
    EXPIRED = "expired"
    FAILED = "failed"


@frozen
class OrderResult:
    """What became of an order, per name; travels back in the next digest."""

    order_id: str  #: the order
    kind: OrderKind  #: what was ordered
    name: str  #: node or job
    outcome: OrderOutcome  #: what became of it
    detail: str = ""  #: more about it


@frozen
class PendingOrder:
    """An order on its way; not repeated before it expires or its result is seen."""

    order_id: str  #: the order
    kind: OrderKind  #: what was ordered
    not_after_s: float  #: when it expires
    code: str = ""  #: of the drain reason that it gives; empty: it gives none
    opens_for: str = ""  #: the job, or gang, that an undrain opens the node for; empty: none
