"""What jobs may ask instead by themselves: whose classes opt in, and the table of what was advised.

`tidegate advise --write` makes the table. A deployment brings those of its lines that a class opts
in to onto the head, where userdata/head/submit_advice.lua holds each submission against them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from tidegate.wire import names
from tidegate.wire.problems import Problem, problems_of, refusal
from tidegate.wire.section import Section, at_most

DAY_S = 86400
MAX_AGE_DAYS = 60
# Each submission reads all lines: 500 of them take slurmctld 0.3 ms (22.05).
ROWS_MAX = 500
CLASSES_MAX = 100


class Change(StrEnum):
    """What a request of a class may have less of."""

    TIME = "time"
    MEMORY = "memory"
    CPUS = "cpus"
    GPUS = "gpus"


Word = Annotated[
    str,
    Field(
        pattern=r"^[^\x00-\x1f\x7f]{0,200}$",
        json_schema_extra={"x-expected": "text of a line, at most 200 characters"},
    ),
]
Count = Annotated[int, Field(ge=0, le=100_000_000)]


class AdviceClassModel(Section):
    """Jobs that opt in. What is left out may be anything."""

    user: names.UserName | None = Field(default=None, description="whose jobs")
    account: names.AccountName | None = Field(default=None, description="of which Slurm account")
    partition: names.PartitionName | None = Field(default=None, description="in which partition")
    name: Word | None = Field(
        default=None,
        description="called so, with # for each number: train-#, as `tidegate advise` says it",
    )
    change: Annotated[tuple[Change, ...], Field(min_length=1), AfterValidator(names.no_repeats)] = (
        Field(description="what their requests may have less of: time, memory, cpus, gpus")
    )

    @model_validator(mode="after")
    def _is_somebody(self) -> Self:
        if not (self.user or self.account or self.partition or self.name):
            raise ValueError("needs user, account, partition or name: whose jobs opt in")
        return self

    def may_have(self, row: "AdviceRowModel") -> bool:
        """Whether jobs of the row may be of this class, if the account is; only they know that."""
        said = ((self.user, row.user), (self.partition, row.partition), (self.name, row.name))
        return all(wanted in (None, has) for wanted, has in said)


class AdviceModel(Section):
    """What was advised is asked instead, by batch jobs of classes that opt in."""

    table: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$",
            json_schema_extra={"x-expected": "a file beside this one, like dev-advice.yaml"},
        ),
    ] = Field(description="what `tidegate advise --write` wrote, beside this file")
    max_age_days: Annotated[int, Field(ge=1, le=366)] = Field(
        default=MAX_AGE_DAYS, description="advice that was proved longer ago is not followed"
    )
    classes: Annotated[tuple[AdviceClassModel, ...], Field(min_length=1), at_most(CLASSES_MAX)] = (
        Field(description="the jobs that opt in; the first class that a job is of counts")
    )

    def lines(self, rows: Sequence["AdviceRowModel"]) -> tuple[str, ...]:
        """Those that somebody opts in to, as the head reads them."""
        return tuple(
            row.line(of, self.max_age_days)
            for row in rows
            for of in self.classes
            if of.may_have(row)
        )


class AsksModel(Section):
    """What each node of a job is asked for."""

    nodes: Annotated[int, Field(ge=1, le=100_000)]
    gpus: Count
    gpu_type: Word = ""
    cpus: Count
    memory_mib: Count
    constraint: Word = ""


class InsteadModel(Section):
    """The same, where less would do; what is left out stays."""

    gpus: Count | None = None
    gpu_type: Word | None = None
    cpus: Count | None = None
    memory_mib: Count | None = None
    time_limit_s: Annotated[int, Field(ge=60, le=366 * DAY_S)] | None = None


class AdviceRowModel(Section):
    """A class of jobs that could ask less, as it was when that was replayed."""

    user: names.UserName
    name: Word
    partition: Annotated[Word, Field(min_length=1)]
    asks: AsksModel
    instead: InsteadModel
    why: Annotated[tuple[names.PartitionName, ...], Field(min_length=1), at_most(4)]
    proved_at: names.Instant
    runs: Count
    saves_usd: float
    between_usd: tuple[float, float]

    @property
    def family(self) -> tuple[str, str, str]:
        """The same work, whatever it asks."""
        return self.user, self.name, self.partition

    def ends_at_s(self, max_age_days: int) -> float:
        return self.proved_at.timestamp() + max_age_days * DAY_S

    def line(self, of: AdviceClassModel, max_age_days: int) -> str:
        """For the head. A size that the class does not let change is empty."""
        asks, new, may = self.asks, self.instead, set(of.change)
        minutes = None if new.time_limit_s is None else -(-new.time_limit_s // 60)
        sizes = (
            new.gpus if Change.GPUS in may else None,
            new.gpu_type if Change.GPUS in may else None,
            new.cpus if Change.CPUS in may else None,
            new.memory_mib if Change.MEMORY in may else None,
            minutes if Change.TIME in may else None,
        )
        values = (
            *(self.user, self.name, self.partition, of.account),
            *(asks.nodes, asks.gpus, asks.gpu_type, asks.cpus, asks.memory_mib, asks.constraint),
            *sizes,
            self.proved_at.astimezone(UTC).date(),
            int(self.ends_at_s(max_age_days)),
            ",".join(self.why),
        )
        return "\t".join("" if value is None else str(value) for value in values)


class AdviceTableModel(Section):
    """The file that `tidegate advise --write` writes."""

    cluster: names.ClusterName
    classes: Annotated[tuple[AdviceRowModel, ...], at_most(ROWS_MAX)] = ()


def read_table(path: Path, cluster: str) -> tuple[AdviceRowModel, ...]:
    """Its rows; none: there is no such file yet. Errors: BadConfig, with all that is wrong."""
    from tidegate.wire.yaml_file import read_yaml  # functions start without it

    if not path.exists():
        return ()
    data, problems = read_yaml(path)
    table = None
    try:
        table = AdviceTableModel.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, AdviceTableModel)
    if table and table.cluster != cluster:
        text = f"is {table.cluster}, and the cluster is {cluster}: its jobs say nothing of these"
        problems.append(Problem(("cluster",), text))
    if problems or table is None:
        raise refusal(path, problems)
    return table.classes


def notes(model: AdviceModel, rows: Sequence[AdviceRowModel], now_s: float) -> Iterator[str]:
    """What of a table does nothing, and why."""
    if not rows:
        yield (
            f"slurm.advice: {model.table} holds no advice, so no job is changed; `tidegate advise"
            " --write` makes it"
        )
        return
    old = sum(row.ends_at_s(model.max_age_days) <= now_s for row in rows)
    if old:
        yield (
            f"slurm.advice: {old} of {len(rows)} classes in {model.table} were proved more than"
            f" {model.max_age_days} days ago and are not followed; write it again"
        )
    for number, each in enumerate(model.classes):
        if not any(map(each.may_have, rows)):
            yield f"slurm.advice.classes[{number}]: {model.table} advises nothing of its jobs"
