"""The section `idle_check` of the cluster file."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from tidegate.core.model.cluster import Pool
from tidegate.core.model.idle_check import DAY_S, IdleCheck, PairCheck
from tidegate.wire import names
from tidegate.wire.rollout_model import person, script_text
from tidegate.wire.section import Section

_CHECK = IdleCheck("", (), 0.0)
_PAIR = PairCheck()

Script = Annotated[str, StringConstraints(min_length=1), AfterValidator(script_text)]


class PairCheckModel(Section):
    """A batch job of your own that tests two idle nodes together, such as a collective."""

    script: Script = Field(
        description="what sbatch runs on two nodes of one type and zone: the script itself, which"
        " begins with #!, or its absolute path on shared storage; exit code 0: both are good, 75,"
        " 126, 127: they could not be tested"
    )
    every_s: Annotated[float, Field(ge=3600, le=90 * DAY_S)] = Field(
        default=_PAIR.every_s,
        description="how long after its launch or its last such check a node is due",
    )
    time_limit_s: Annotated[float, Field(ge=60, le=14_400)] = Field(
        default=_PAIR.time_limit_s,
        description="its time limit, rounded up to minutes; what runs into it has failed",
    )


class IdleCheckModel(Section):
    """A batch job of your own that tests idle nodes, within a budget."""

    script: Script = Field(
        description="what sbatch runs on one node: the script itself, which begins with #!, or its"
        " absolute path on shared storage; exit code 0: the node is good, 75, 126, 127: it could"
        " not be tested"
    )
    user: Annotated[names.UserName, AfterValidator(person)] = Field(
        description="who runs it: a user of the cluster, never root"
    )
    gpu_hours_per_day: Annotated[float, Field(gt=0, le=100_000)] = Field(
        description="what all checks may use in a day (UTC), in hours of one GPU"
    )
    every_s: Annotated[float, Field(ge=3600, le=90 * DAY_S)] = Field(
        default=_CHECK.every_s,
        description="how long after its launch or its last check a node is due",
    )
    time_limit_s: Annotated[float, Field(ge=60, le=14_400)] = Field(
        default=_CHECK.time_limit_s,
        description="its time limit, rounded up to minutes; what runs into it has failed",
    )
    wait_s: Annotated[float, Field(ge=60, le=86_400)] = Field(
        default=_CHECK.wait_s,
        description="how long it may wait behind other jobs; then another time",
    )
    pools: Annotated[tuple[names.PoolName, ...], AfterValidator(names.no_repeats)] = Field(
        default=(), description="whose nodes it tests; those of all pools with GPUs when left out"
    )

    pair: PairCheckModel | None = Field(
        default=None, description="what two idle nodes have to pass together; nothing when left out"
    )

    def check(self, pools: tuple[Pool, ...]) -> IdleCheck:
        """`pools`: those of the cluster."""
        with_gpus = (each.name for each in pools if any(t.gpus for t in each.instance_types))
        return IdleCheck(
            self.user,
            self.pools or tuple(with_gpus),
            self.gpu_hours_per_day,
            self.every_s,
            self.time_limit_s,
            self.wait_s,
            PairCheck(self.pair.every_s, self.pair.time_limit_s) if self.pair else None,
        )
