"""What a cluster file says of nodes that are let go of our own accord, as pydantic models.

Cron and time zones are the library's work (cronsim, zoneinfo), daylight saving included.
"""

import re
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from cronsim import CronSimError
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from tidegate.core.model.budgets import (
    DEFAULT_BUDGETS,
    Budget,
    Disruption,
    DisruptionReason,
    with_unhealthy,
)
from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.cron import covers_always, firings_after
from tidegate.wire.problems import shown
from tidegate.wire.section import (
    LEAST_S,
    MAX_KEPT_NODES,
    YEAR_S,
    Count,
    PositiveCount,
    Seconds,
    Section,
)

_DISRUPTION = Disruption()
_SHARE = re.compile(r"(\d{1,5})(%?)")


@frozen
class CronWindow:
    """Open for `duration_s` from each time that the cron expression fires."""

    schedule: str
    duration_s: float
    time_zone: str

    def is_open(self, now_s: float) -> bool:
        """Errors: ValueError, when expression or zone cannot be read here."""
        try:
            zone = ZoneInfo(self.time_zone)
            opens = next(iter(firings_after(self.schedule, now_s - self.duration_s, zone)))
        except (CronSimError, StopIteration, LookupError, OSError) as error:
            raise ValueError(f"nobody can tell when {self.schedule} is") from error
        return opens.timestamp() <= now_s


def _share(value: object) -> str:
    found = _SHARE.fullmatch(str(value))
    if found is None or (found[2] and int(found[1]) > 100):
        expected = "a number of nodes like 3, or a part of them like 10%"
        raise ValueError(f"must be {expected}, is {shown(value)}")
    return found[0]


AUTO_S = 0.0
"""What `auto` is among seconds."""


def _or_auto(value: object, read: ValidatorFunctionWrapHandler) -> object:
    return AUTO_S if value == "auto" else read(value)


SecondsOrAuto = Annotated[
    Seconds,
    WrapValidator(_or_auto),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": LEAST_S, "maximum": YEAR_S},
                {"const": "auto"},
            ],
        }
    ),
]


AUTO_COUNT = -1
"""What `auto` is among counts."""


def _count_or_auto(value: object, read: ValidatorFunctionWrapHandler) -> object:
    if value == "auto":
        return AUTO_COUNT
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        raise ValueError(f"must be a whole number or auto, is {shown(value)}")
    return read(value)


CountOrAuto = Annotated[
    Count,
    WrapValidator(_count_or_auto),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_KEPT_NODES},
                {"const": "auto"},
            ],
        }
    ),
]


class BudgetModel(Section):
    """How many nodes of the pool may leave at once; of several budgets the tightest decides."""

    nodes: Annotated[str, BeforeValidator(_share)] = Field(
        description="a number like 3, or a part of the pool's nodes like 10%, rounded up"
    )
    reasons: Annotated[tuple[DisruptionReason, ...], AfterValidator(names.no_repeats)] = Field(
        default=(),
        description="unhealthy, expired, drifted, empty, consolidatable; all when left out",
    )
    schedule: names.Cron | None = Field(
        default=None, description='when it begins to count, like "0 9 * * MON-FRI"; always if not'
    )
    duration_s: Seconds | None = Field(
        default=None, description="seconds that it counts from then on"
    )
    time_zone: names.TimeZone = Field(
        default="UTC", description="of the schedule: an IANA name, like Asia/Tokyo"
    )

    @model_validator(mode="after")
    def _window(self) -> Self:
        if (self.schedule is None) != (self.duration_s is None):
            missing = "schedule" if self.schedule is None else "duration_s"
            raise ValueError(f"schedule and duration_s belong together: {missing} is missing")
        if int(self.nodes.rstrip("%")) == 0 and self._holds_idle and self._is_always:
            ends = "reasons without empty, like [drifted, expired, consolidatable]"
            if self.schedule is None:
                raise ValueError(
                    f"nodes: {self.nodes} without a schedule lets no idle node ever go, and each is"
                    f" paid for; add schedule and duration_s, or {ends}"
                )
            raise ValueError(
                f"nodes: {self.nodes} for {self.duration_s:g} s from each {self.schedule} on lets"
                f" no idle node ever go, and each is paid for; shorten duration_s, or add {ends}"
            )
        return self

    @property
    def _holds_idle(self) -> bool:
        return not self.reasons or DisruptionReason.EMPTY in self.reasons

    @property
    def _is_always(self) -> bool:
        if self.schedule is None or self.duration_s is None:
            return True
        return covers_always(self.schedule, self.duration_s)

    def budget(self) -> Budget:
        number, percent = self.nodes.rstrip("%"), self.nodes.endswith("%")
        window = None
        if self.schedule is not None and self.duration_s is not None:
            window = CronWindow(self.schedule, self.duration_s, self.time_zone)
        return Budget(
            nodes=None if percent else int(number),
            percent=float(number) if percent else None,
            reasons=frozenset(self.reasons),
            window=window,
        )


class DisruptionModel(Section):
    """When nodes of the pool are let go of our own accord, and how many at once."""

    budgets: tuple[BudgetModel, ...] | None = Field(
        default=None,
        description="10% at once for expired, drifted and consolidatable nodes when left out, and"
        " 20% for unhealthy ones when none is about these",
    )
    expire_after_s: Seconds | None = Field(
        default=_DISRUPTION.expire_after_s,
        description="age in seconds after which a node is replaced; never when left out",
    )
    keep_max_s: Seconds = Field(
        default=_DISRUPTION.keep_max_s,
        description="for how long a job's comment or a node's feature tidegate:keep counts at most",
    )

    roll_back_after: PositiveCount = Field(
        default=_DISRUPTION.roll_back_after,
        description="nodes of a new template that are no good before it is given up",
    )

    hold_max_nodes: Count = Field(
        default=_DISRUPTION.hold_max_nodes,
        description="nodes that people may hold at once with tidegate node hold; 0: none",
    )
    hold_max_s: Seconds = Field(
        default=_DISRUPTION.hold_max_s,
        description="for how long a node may be held at most",
    )

    def disruption(self) -> Disruption:
        budgets = DEFAULT_BUDGETS
        if self.budgets is not None:
            budgets = tuple(each.budget() for each in self.budgets)
            budgets = with_unhealthy(budgets) if budgets else ()
        return Disruption(
            budgets,
            self.expire_after_s,
            self.keep_max_s,
            self.roll_back_after,
            self.hold_max_nodes,
            self.hold_max_s,
        )
