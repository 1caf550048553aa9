"""Everything the planner may know, as one value."""

from dataclasses import dataclass

from tidegate.core.actions import LaunchRecord, NodeRecord, Resting
from tidegate.core.digest import Digest
from tidegate.core.ec2 import Instance
from tidegate.core.pool import Cluster


@dataclass(frozen=True, slots=True)
class Epoch:
    """The fence of the control loop: a plan counts only for the epoch it was made in.

    `lineage` is drawn once per ledger, so that ids never repeat after a redeployment.
    """

    lineage: str
    number: int

    def __str__(self) -> str:
        return f"{self.lineage}-{self.number}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One observation. `digest_age_s` is measured on the receiver's clock."""

    now_s: float
    cluster: Cluster
    epoch: Epoch
    digest: Digest | None
    digest_age_s: float
    instances: tuple[Instance, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    launches: tuple[LaunchRecord, ...] = ()
    resting: tuple[Resting, ...] = ()
