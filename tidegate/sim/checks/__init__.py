"""The invariants of the architecture as named checks, asked whenever something could break them."""

from tidegate.sim.checks.buying import (
    CapsKept,
    NoDoubleBuy,
    NothingWhileBlind,
    RecordedFirst,
)
from tidegate.sim.checks.deadlines import DeadlinesHeeded
from tidegate.sim.checks.early import NothingBeforeItsTime
from tidegate.sim.checks.ending import (
    DrainedInTime,
    HeadGoesLast,
    HintsHeeded,
    IdleNodesGo,
    LeftSlurmFirst,
    NoJobFailed,
    NoJobKilled,
    NoStrayInstances,
    RequeuedOnlyForAReason,
)
from tidegate.sim.checks.flapping import NoFlapping
from tidegate.sim.checks.futile import NoFutileLaunches
from tidegate.sim.checks.hours import HoursOfTheWall, NothingWhileStopped
from tidegate.sim.checks.idle_gpus import IdleJobsEndByTheRule
from tidegate.sim.checks.idle_tests import IdleTestsBounded
from tidegate.sim.checks.leaving import BudgetsHold, OldNodesGo, OneFirstNode
from tidegate.sim.checks.limits import LimitsHold
from tidegate.sim.checks.lossy import NoLossySpot
from tidegate.sim.checks.money import (
    NothingOverBudget,
    PlansPayWhatRuns,
    PricesFollowEc2,
    SpendIsNodeTime,
)
from tidegate.sim.checks.moves import MovesLeadToSpot, NotBackAndForth
from tidegate.sim.checks.orders import (
    GangsWhole,
    HoldsKept,
    OperatorsKeepNodes,
    OrdersGuarded,
    PlannedNodesKept,
    RequiredNodesKept,
    SuspendedNodesKept,
)
from tidegate.sim.checks.plans import (
    BeatenPlansDropped,
    LooksEndInTime,
    NothingOnLeaving,
    OneOrderPerNode,
    OneVerdict,
    SameInAnyOrder,
    TogetherOrNotAtAll,
)
from tidegate.sim.checks.prepaid import BlocksLeftInTime, PrepaidFirst, ReservationsNotOverrun
from tidegate.sim.checks.reboots import RebootsBounded, SickNodesMended
from tidegate.sim.checks.resting import (
    BootFailuresRestTheirPool,
    RefusalsRemembered,
    RestingNotTried,
)
from tidegate.sim.checks.resume import (
    FaultsBounded,
    GoodNodesServe,
    LostNodesReplacedAtOnce,
    LostWorkIsTrue,
)
from tidegate.sim.checks.rollout import BadImagesTouchTwo
from tidegate.sim.checks.sickness import LiarsCostTheirShare, SickNeedsWait, SickPlacesLast
from tidegate.sim.checks.stopped import StartedWhenSettled, StoppedNodesKept
from tidegate.sim.checks.where import NothingForBoundJobs, NothingOnClosed
from tidegate.sim.checks.witness import Broken, Check, Witness

CHECKS: tuple[type[Check], ...] = (
    NoStrayInstances,
    NoDoubleBuy,
    RecordedFirst,
    BeatenPlansDropped,
    NoJobKilled,
    NoJobFailed,
    LeftSlurmFirst,
    RequeuedOnlyForAReason,
    LimitsHold,
    PricesFollowEc2,
    PlansPayWhatRuns,
    SpendIsNodeTime,
    NothingOverBudget,
    CapsKept,
    ReservationsNotOverrun,
    PrepaidFirst,
    GangsWhole,
    DrainedInTime,
    BlocksLeftInTime,
    OneVerdict,
    NothingOnLeaving,
    NothingOnClosed,
    TogetherOrNotAtAll,
    OneOrderPerNode,
    SameInAnyOrder,
    LooksEndInTime,
    RestingNotTried,
    BootFailuresRestTheirPool,
    RefusalsRemembered,
    NoLossySpot,
    DeadlinesHeeded,
    MovesLeadToSpot,
    NotBackAndForth,
    NoFlapping,
    NoFutileLaunches,
    NothingForBoundJobs,
    SickNeedsWait,
    GoodNodesServe,
    LostNodesReplacedAtOnce,
    FaultsBounded,
    LostWorkIsTrue,
    IdleJobsEndByTheRule,
    LiarsCostTheirShare,
    RebootsBounded,
    SickNodesMended,
    IdleTestsBounded,
    SickPlacesLast,
    NothingBeforeItsTime,
    HoursOfTheWall,
    NothingWhileStopped,
    NothingWhileBlind,
    OrdersGuarded,
    PlannedNodesKept,
    SuspendedNodesKept,
    RequiredNodesKept,
    OperatorsKeepNodes,
    HoldsKept,
    IdleNodesGo,
    HintsHeeded,
    BudgetsHold,
    OldNodesGo,
    OneFirstNode,
    BadImagesTouchTwo,
    HeadGoesLast,
    StoppedNodesKept,
    StartedWhenSettled,
)

__all__ = ["CHECKS", "Broken", "Check", "Witness"]
