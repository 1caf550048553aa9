"""What a replay knows of nodes that are stopped as they leave."""

from dataclasses import replace

from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Instance, InstanceState
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NodeRecord, Phase


@frozen
class Stopped:
    """A node that stands still since `since_s`."""

    record: NodeRecord
    pool: Pool
    since_s: float

    @property
    def known(self) -> NodeRecord:
        """As the ledger has it."""
        return replace(
            self.record,
            phase=Phase.RELEASED,
            stopped_at_s=self.since_s,
            launched_at_s=self.since_s,
            usd_per_hour=self.pool.stopped_usd_per_hour,
        )

    @property
    def instance(self) -> Instance:
        of = self.record
        state = InstanceState.STOPPED
        return Instance(of.instance_id, of.offering, state, self.since_s, of.launch_id, of.pool)

    def usd(self, until_s: float) -> float:
        """What its disk has cost."""
        return (until_s - self.since_s) / 3600 * self.pool.stopped_usd_per_hour
