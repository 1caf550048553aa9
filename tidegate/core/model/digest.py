"""The digest: what the agent saw, and which of two digests counts."""

from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import OrderResult
from tidegate.core.model.slurm import Reading

# A start of the agent that was not heard for so long is over, whatever its clock said: two
# heartbeats of an empty cluster. The clock of a head that begins may be hours ahead.
SEEN_COUNTS_S = 600.0


@frozen
class Stamp:
    """The order of digests: within one agent start the sequence decides."""

    head_instance_id: str  #: instance id of the head
    agent_started_at_s: float  #: when the head's agent started
    sequence: int  #: number of the digest since then


@frozen
class Digest:
    """Queue, nodes and limits at one moment."""

    cluster: str  #: name of the cluster
    stamp: Stamp  #: the order of digests
    written_at_s: float  #: when the head wrote it, on the head's clock (epoch seconds)
    reading: Reading  #: queue, nodes and limits
    results: tuple[OrderResult, ...] = ()  #: what became of orders to the head


def supersedes(new: Stamp, seen: Stamp | None) -> bool:
    """Whether `new` may replace `seen`; an equal stamp may (the same digest read again).

    Another head, or a later start of the agent, wins: the sequence starts anew there.
    """
    if seen is None or new.head_instance_id != seen.head_instance_id:
        return seen is None or new.agent_started_at_s >= seen.agent_started_at_s
    if new.agent_started_at_s != seen.agent_started_at_s:
        return new.agent_started_at_s > seen.agent_started_at_s
    return new.sequence >= seen.sequence
