"""What arrives at the functions, as plain values: each may come late, twice, or never."""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.frozen import frozen


@frozen
class Look:
    """Look now. It carries no orders, so a late or repeated one is harmless."""

    why: str


@frozen
class SpotInterruption:
    """EC2 will reclaim this spot instance about two minutes after `at_s`.

    `at_s`: the event's own time, epoch seconds.
    """

    instance_id: str
    at_s: float


@frozen
class ReservationInterruption:
    """The owner of an interruptible Capacity Reservation takes this instance's place back.

    `ends_at_s`: when EC2 terminates it; None where the event does not say: two minutes later.
    """

    instance_id: str
    at_s: float
    ends_at_s: float | None = None


@frozen
class RebalanceRecommendation:
    """This spot instance is at a higher risk than others; often nothing follows."""

    instance_id: str


@frozen
class StateChange:
    """An instance of the account has moved to another state; most are not ours.

    `at_s`: the event's own time; None: nobody knows.
    """

    instance_id: str
    state: InstanceState
    at_s: float | None = None


class HealthCategory(StrEnum):
    """The categories of AWS Health's events, in its own words."""

    SCHEDULED_CHANGE = "scheduledChange"
    ISSUE = "issue"
    ACCOUNT_NOTIFICATION = "accountNotification"
    INVESTIGATION = "investigation"


@frozen
class HealthNotice:
    """AWS Health has something to say of instances: maintenance, retirement, trouble.

    `code`: like AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED. `is_over`: it tells the end of it.
    `said_at_s`: when AWS said so, if that is known.
    """

    instance_ids: tuple[str, ...]
    category: HealthCategory
    code: str
    starts_at_s: float | None = None
    is_over: bool = False
    said_at_s: float | None = None


@frozen
class BootFailed:
    """A node gave up in this stage of its boot; `said`: the end of the stage's log.

    It powers itself off next. A hint: whoever is root on a node can send it.
    """

    instance_id: str
    stage: str
    said: str
    plan_id: str = ""


@frozen
class NodeOrphaned:
    """A node has heard nothing of its head for `silent_s`, runs no step, and powers itself off.

    A hint: whoever is root on a node can send it. Its end is an event of EC2's.
    """

    instance_id: str
    silent_s: float
    plan_id: str = ""


@frozen
class GpuReset:
    """A node that Slurm was to reboot has reset its GPUs instead, and takes jobs again after
    `took_s`. `failed`: why that did not mend it, and it reboots after all; "": it did.

    A hint: whoever is root on a node can send it.
    """

    instance_id: str
    took_s: float = 0.0
    failed: str = ""
    plan_id: str = ""

    @property
    def sentence(self) -> str:
        """What became of it, as the ledger notes it."""
        if self.failed:
            return f"a reset has not mended its GPUs, and it reboots: {self.failed}"
        return f"its GPUs were reset in {self.took_s:.0f} s, and it takes jobs again"


@frozen
class NodeReady:
    """A node has booted, all in all in `took_s`; `stages`: seconds of each. For the log only."""

    instance_id: str
    plan_id: str
    stages: Mapping[str, float]
    took_s: float


@frozen
class UnknownEvent:
    """A whole event of a kind that nothing here reads."""

    detail_type: str
    source: str


type News = (
    SpotInterruption
    | ReservationInterruption
    | RebalanceRecommendation
    | StateChange
    | HealthNotice
    | BootFailed
    | NodeOrphaned
    | GpuReset
)
type Event = Look | News | NodeReady | UnknownEvent


def said_at_s(news: News) -> float | None:
    """When AWS said so, epoch seconds; None: nobody knows."""
    match news:
        case (
            HealthNotice(said_at_s=at_s)
            | SpotInterruption(at_s=at_s)
            | ReservationInterruption(at_s=at_s)
            | StateChange(at_s=at_s)
        ):
            return at_s
        case RebalanceRecommendation() | BootFailed() | NodeOrphaned() | GpuReset():
            return None
        case _:
            assert_never(news)


def subjects(news: News) -> tuple[str, ...]:
    """The instances that this is about."""
    match news:
        case HealthNotice(instance_ids=instance_ids):
            return instance_ids
        case (
            SpotInterruption(instance_id=instance_id)
            | ReservationInterruption(instance_id=instance_id)
            | RebalanceRecommendation(instance_id=instance_id)
            | StateChange(instance_id=instance_id)
            | BootFailed(instance_id=instance_id)
            | NodeOrphaned(instance_id=instance_id)
            | GpuReset(instance_id=instance_id)
        ):
            return (instance_id,)
        case _:
            assert_never(news)
