"""What waiting costs: the one price by which money is traded for time."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from tidegate.core.model.frozen import frozen

# What a cluster file has that says nothing of it: on public histories the price at which a cluster
# costs less than its peers and jobs wait no longer, see `docs/waiting.md`.
DEFAULT_USD_PER_JOB_HOUR = 50.0


@frozen
class Waiting:
    """USD for each hour that a job waits: by account, else by QOS, else by partition, else for all.

    0: nobody's time is paid for, so that nothing is bought or kept before a job needs it.
    `is_assumed`: nobody has said the price for all. Who gives a job a deadline has said how long it
    may wait, which goes before what is assumed.
    """

    usd_per_job_hour: float = 0.0
    partitions: Mapping[str, float] = field(default_factory=dict)
    qos: Mapping[str, float] = field(default_factory=dict)
    accounts: Mapping[str, float] = field(default_factory=dict)
    is_assumed: bool = False

    def usd(
        self, partitions: Sequence[str], qos: str, account: str, *, has_deadline: bool = False
    ) -> float:
        """What an hour of this job's waiting costs; of several partitions the dearest counts."""
        if account in self.accounts:
            return self.accounts[account]
        if qos in self.qos:
            return self.qos[qos]
        for_all = 0.0 if self.is_assumed and has_deadline else self.usd_per_job_hour
        return max((self.partitions.get(each, for_all) for each in partitions), default=for_all)

    @property
    def most_usd(self) -> float:
        """The highest price that any job has."""
        each = (self.partitions, self.qos, self.accounts)
        return max(self.usd_per_job_hour, *(usd for named in each for usd in named.values()), 0.0)
