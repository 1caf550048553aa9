"""What to do about news of a node of ours: one total function from event to answer."""

from dataclasses import replace
from typing import assert_never

from tidegate.core.model.cluster import Rebalance, Timings
from tidegate.core.model.drain_reason import REBALANCE, DrainCode, DrainReason
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import (
    BootFailed,
    GpuReset,
    HealthCategory,
    HealthNotice,
    News,
    NodeOrphaned,
    RebalanceRecommendation,
    ReservationInterruption,
    SpotInterruption,
    StateChange,
)
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Cordon

# EC2 never says that an elevated risk is over: a node that is there so much later has outlived
# it, and the room beside its jobs is of use again.
REBALANCE_HOLDS_S = 3600.0


@frozen
class Reclaim:
    """The node goes at `at_s`: drain it, save its jobs, buy another."""

    at_s: float
    reason: DrainReason


@frozen
class Dead:
    """The node is gone or going: nothing runs there any more."""

    reason: DrainReason


@frozen
class Lift:
    """AWS takes back what it said until then; `over`: the cordon as it is from then on."""

    over: Cordon


@frozen
class Nothing:
    """Not worth an action."""


type NewsAction = Reclaim | Cordon | Dead | Lift | Nothing


def action_for(news: News, rebalance: Rebalance, now_s: float, timings: Timings) -> NewsAction:
    """What this news asks for. `rebalance`: the policy of the node's pool.

    A time in the future counts as now, so that no broken clock puts a reclaim off.
    """
    match news:
        case SpotInterruption(at_s=at_s):
            at_s = min(at_s, now_s) + timings.spot_notice_s
            reason = DrainReason(DrainCode.RECLAIM, "EC2 reclaims this spot instance")
            return Reclaim(at_s, reason)
        case ReservationInterruption(at_s=at_s, ends_at_s=ends_at_s):
            notice_ends_at_s = min(at_s, now_s) + timings.spot_notice_s
            at_s = min(ends_at_s or notice_ends_at_s, notice_ends_at_s)
            reason = DrainReason(DrainCode.TAKEN, "its Capacity Reservation is taken back")
            return Reclaim(at_s, reason)
        case RebalanceRecommendation():
            return _on_rebalance(rebalance, now_s, timings)
        case StateChange(state=state):
            return _on_state(state)
        case HealthNotice():
            return _on_health(news, now_s)
        case BootFailed() | NodeOrphaned() | GpuReset():
            return Nothing()  # its end is an event of its own; what it said is written down
        case _:
            assert_never(news)


def _on_rebalance(rebalance: Rebalance, now_s: float, timings: Timings) -> NewsAction:
    reason = "EC2 recommends to leave this spot instance"
    match rebalance:
        case Rebalance.IGNORE:
            return Nothing()
        case Rebalance.CORDON:
            return Cordon(reason, now_s, lifts_at_s=now_s + REBALANCE_HOLDS_S, code=REBALANCE)
        case Rebalance.DRAIN:
            taken = DrainReason(DrainCode.TAKEN, reason)
            return Reclaim(now_s + timings.spot_notice_s, taken)
        case _:
            assert_never(rebalance)


def _on_state(state: InstanceState) -> NewsAction:
    match state:
        case InstanceState.PENDING | InstanceState.RUNNING:
            return Nothing()
        case (
            InstanceState.SHUTTING_DOWN
            | InstanceState.TERMINATED
            | InstanceState.STOPPING
            | InstanceState.STOPPED
        ):
            said = f"EC2 says that its instance is {state.value}"
            return Dead(DrainReason(DrainCode.GONE, said))
        case _:
            assert_never(state)


def _on_health(notice: HealthNotice, now_s: float) -> NewsAction:
    """A cordon; near its end the planner saves the jobs, see `interruption.reclaim_at_s`."""
    reason = f"AWS Health: {notice.code}"
    said_at_s = now_s if notice.said_at_s is None else min(notice.said_at_s, now_s)
    match notice.category:
        case HealthCategory.SCHEDULED_CHANGE | HealthCategory.ISSUE if notice.is_over:
            return Lift(Cordon(reason, said_at_s, lifts_at_s=said_at_s, code=notice.code))
        case HealthCategory.SCHEDULED_CHANGE:
            return Cordon(reason, said_at_s, notice.starts_at_s, code=notice.code)
        case HealthCategory.ISSUE:
            return Cordon(reason, said_at_s, code=notice.code)
        case HealthCategory.ACCOUNT_NOTIFICATION | HealthCategory.INVESTIGATION:
            return Nothing()
        case _:
            assert_never(notice.category)


def when_it_goes_already(
    answer: NewsAction, reclaim_at_s: float | None, now_s: float
) -> NewsAction:
    """What is left of an answer about a node whose end was announced before: the first end counts.

    A cordon would give its drain another reason, by which the node's own watcher would take the
    service for silent, and signal its jobs once more.
    """
    match answer:
        case Reclaim(at_s=at_s) if reclaim_at_s is not None and now_s < reclaim_at_s:
            return replace(answer, at_s=min(at_s, reclaim_at_s))
        case Cordon():
            return Nothing()
        case _:
            return answer


def strongest(first: NewsAction, second: NewsAction) -> NewsAction:
    """Of two answers about one node the one that also does what the other asks."""
    match first, second:
        case (Dead(), _) | (_, Nothing()):
            return first
        case (_, Dead()) | (Nothing(), _):
            return second
        case Reclaim(), Reclaim():
            return min(first, second, key=lambda reclaim: reclaim.at_s)
        case Reclaim(), _:
            return first
        case _, Reclaim():
            return second
        case Lift(over=over), Cordon() as cordon:
            return first if cordon.about == over.about else second
        case Cordon() as cordon, Lift(over=over):
            return second if cordon.about == over.about else first
        case Cordon(), Cordon():
            return tighter(first, second)
        case _:
            return first


def tighter(first: Cordon, second: Cordon) -> Cordon:
    """Of two cordons the one that ends first; of those that do not, the one that holds longer."""
    return max(first, second, key=_tightness)


def _tightness(cordon: Cordon) -> tuple[float, float]:
    never = float("inf")
    ends_at_s = never if cordon.ends_at_s is None else cordon.ends_at_s
    lifts_at_s = never if cordon.lifts_at_s is None else cordon.lifts_at_s
    return -ends_at_s, lifts_at_s
