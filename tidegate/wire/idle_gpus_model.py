"""The section `idle_gpus` of the cluster file."""

from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.core.model.gpu_use import USE_PERCENT_MAX, IdleAction, IdleGpus, IdleRule
from tidegate.wire import names
from tidegate.wire.section import Section

_RULE = IdleRule()

# What was done about a run has to be gone before the next one can have idled for so long, and what
# is remembered of a job is kept for three hours.
AfterSeconds = Annotated[float, Field(ge=900, le=30 * 86400)]
WarningSeconds = Annotated[float, Field(ge=60, le=7200)]
UsePercent = Annotated[int, Field(ge=1, le=USE_PERCENT_MAX)]


class IdleRuleModel(Section):
    """When the GPUs of a running job count as idle, and what follows."""

    action: IdleAction = Field(
        default=_RULE.action,
        description="tell: its owner alone; requeue or cancel: the job too, after the warning",
    )
    after_s: AfterSeconds = Field(
        default=_RULE.after_s,
        description="for so long every GPU of the job was used for less than use_percent; the first"
        " ten minutes of a run do not count",
    )
    use_percent: UsePercent = Field(
        default=_RULE.use_percent,
        description="percent of the time in which anything computes, copies or encodes on the GPU",
    )
    warning_s: WarningSeconds = Field(
        default=_RULE.warning_s,
        description="between the warning in the job's output and its end, if nothing changes",
    )

    def rule(self) -> IdleRule:
        return IdleRule(self.action, self.after_s, self.use_percent, self.warning_s)


class ExemptModel(Section):
    """Whose jobs may idle. A single one may with `--comment=tidegate:idle-ok`."""

    accounts: Annotated[tuple[names.AccountName, ...], AfterValidator(names.no_repeats)] = Field(
        default=(), description="Slurm accounts"
    )
    partitions: Annotated[tuple[names.PartitionName, ...], AfterValidator(names.no_repeats)] = (
        Field(default=(), description="Slurm partitions, like one for notebooks")
    )
    qos: Annotated[tuple[names.QosName, ...], AfterValidator(names.no_repeats)] = Field(
        default=(), description="QOS"
    )


class IdleGpusModel(IdleRuleModel):
    """Running jobs that hold GPUs and do not use them."""

    by_partition: dict[names.PartitionName, IdleRuleModel] = Field(
        default_factory=dict, description="a rule of their own for jobs of single partitions"
    )
    exempt: ExemptModel = Field(default=ExemptModel(), description="whose jobs are left alone")

    def idle_gpus(self) -> IdleGpus:
        return IdleGpus(
            rule=self.rule(),
            partitions={name: each.rule() for name, each in self.by_partition.items()},
            exempt_accounts=self.exempt.accounts,
            exempt_partitions=self.exempt.partitions,
            exempt_qos=self.exempt.qos,
        )
