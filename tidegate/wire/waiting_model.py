"""The section `waiting` of the cluster file."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from tidegate.core.model.waiting import DEFAULT_USD_PER_JOB_HOUR, Waiting
from tidegate.wire import names
from tidegate.wire.section import Section

# More than anybody's hour costs.
WaitUsd = Annotated[float, Field(ge=0, le=10_000)]


class WaitingModel(Section):
    """The price of waiting: every choice between money and time goes by it."""

    usd_per_job_hour: WaitUsd = Field(
        default=DEFAULT_USD_PER_JOB_HOUR,
        description="USD for each hour that a job waits; 0: no node is bought or kept before a job"
        " needs it",
    )
    by_partition: dict[names.PartitionName, WaitUsd] = Field(
        default_factory=dict, description="the same for jobs of single partitions"
    )
    by_qos: names.ByQos[WaitUsd] = Field(
        default_factory=dict, description="the same for single QOS, before that of the partition"
    )
    by_account: names.ByAccount[WaitUsd] = Field(
        default_factory=dict, description="the same for single Slurm accounts, before all others"
    )

    def notes(self) -> Iterator[str]:
        """What the price is where the file does not say it: nodes may idle for it."""
        if "usd_per_job_hour" not in self.model_fields_set:
            yield (
                f"waiting.usd_per_job_hour: {self.usd_per_job_hour:g} when left out: spare nodes"
                " are kept idle where the waiting that they save is worth more; 0 keeps none"
            )

    def waiting(self) -> Waiting:
        return Waiting(
            self.usd_per_job_hour,
            self.by_partition,
            self.by_qos,
            self.by_account,
            is_assumed="usd_per_job_hour" not in self.model_fields_set,
        )
