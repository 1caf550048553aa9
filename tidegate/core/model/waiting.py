"""What waiting costs: the one price by which money is traded for time."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from tidegate.core.model.frozen import frozen


@frozen
class Waiting:
    """USD for each hour that a job waits: by account, else by QOS, else by partition, else for all.

    0: nobody's time is paid for, so that nothing is bought or kept before a job needs it.
    """

    usd_per_job_hour: float = 0.0
    partitions: Mapping[str, float] = field(default_factory=dict)
    qos: Mapping[str, float] = field(default_factory=dict)
    accounts: Mapping[str, float] = field(default_factory=dict)

    def usd(self, partitions: Sequence[str], qos: str, account: str) -> float:
        """What an hour of this job's waiting costs; of several partitions the dearest counts."""
        if account in self.accounts:
            return self.accounts[account]
        if qos in self.qos:
            return self.qos[qos]
        known = [self.partitions.get(each, self.usd_per_job_hour) for each in partitions]
        return max(known, default=self.usd_per_job_hour)

    @property
    def most_usd(self) -> float:
        """The highest price that any job has."""
        each = (self.partitions, self.qos, self.accounts)
        return max(self.usd_per_job_hour, *(usd for named in each for usd in named.values()), 0.0)
