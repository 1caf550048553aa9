"""What a seed decides: a whole world, its users and everything that goes wrong in it."""

from collections.abc import Collection
from dataclasses import fields

from tidegate.core.model.calendar import (
    NOTICE_S,
    OnRunningJobs,
    ScheduleOverride,
    Wanted,
    jobs_end_at_s,
    overridden,
)
from tidegate.core.model.cluster import Cluster, Limits, Pool, Rebalance
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Association
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.zoned import Zoned

FAULTS = {
    "lag": "EC2 shows fresh instances late, ended ones for a while, and leaves some out",
    "shortage": "EC2 runs out of offerings for a while, or gives a part",
    "quota": "the account reaches its quota of a market",
    "subnet": "a zone's subnet has no free address",
    "order": "EC2 takes spot capacity in its own order",
    "throttle": "AWS refuses calls for a moment",
    "lost": "a call succeeds and its answer is lost",
    "kill": "a function or the agent dies between two calls",
    "twice": "two planners run at once, the second inside a call of the first",
    "boot": "boots take long, never end, or end in a broken node",
    "spot": "EC2 reclaims spot instances, with notices in time, late, twice or never",
    "hints": "EC2 recommends to leave instances, AWS Health announces maintenance and trouble",
    "death": "machines and slurmd die without a word",
    "looks": "looks are lost, late or repeated",
    "orders": "orders to the head come late or twice",
    "slurm": "slurmctld is silent for a while",
    "head": "the head reboots or is replaced",
    "clock": "the head's clock is stepped",
    "strangers": "other instances of the account fill open reservations for a while",
    "sick": "a health check errs, or Slurm drains a node where an epilog or a task failed",
    "gpu": "a GPU fails on a node of a job of several nodes, maybe of the same one again and again",
    "places": "GPUs fail: of what is bought first nearly all, of other nodes some",
    "image": "what is deployed makes nodes that do not boot, have no GPU, fail all jobs, are slow",
    "tests": "idle nodes are tested: some fail, or the test errs and all do",
    "starts": "what EC2 starts stops again, people touch what is stopped, old words come late",
    "prices": "the market's prices move; who is asked for them errs, fails or is silent",
}

DRAINED_BY_SLURM = ("Epilog error", "Prolog error", "batch job complete failure")


@frozen
class Arrival:
    """A submission; `number` names it to `--jobs`."""

    number: int
    at_s: float
    submit: Submit
    cancel_after_s: float | None = None
    release_after_s: float | None = None


@frozen
class Shortage:
    """EC2 has only `left` of an offering between the two times."""

    offering: Offering
    from_s: float
    to_s: float
    left: int


@frozen
class Quota:
    """The account may have `count` instances of a market between the two times."""

    market: Market
    from_s: float
    to_s: float
    count: int


@frozen
class Happening:
    """Something at one time; what `kind` means stands in `chaos`."""

    kind: str
    at_s: float
    for_s: float = 0.0
    what: str = ""


@frozen
class Rates:
    """Chances: the first group for each port call, the others for each message or machine."""

    throttle: float = 0.0
    lost: float = 0.0
    kill: float = 0.0
    twice: float = 0.0
    look_lost: float = 0.0
    look_late: float = 0.0
    order_late: float = 0.0
    order_twice: float = 0.0
    slow_boot: float = 0.0
    bad_boot: float = 0.0
    reclaim: float = 0.0
    lag_s: float = 0.0


@frozen
class Hours:
    """A budget counts for `open_s` of every `every_s`."""

    every_s: float
    open_s: float

    def is_open(self, now_s: float) -> bool:
        return now_s % self.every_s < self.open_s


@frozen
class Windows:
    """A calendar of equal days: `up_s` of every `day_s`, from `begins_s` on.

    Jobs that still run at a stop have `wait_s`, then what `policy` says becomes of them.
    """

    begins_s: float
    day_s: float
    up_s: float
    policy: OnRunningJobs = OnRunningJobs.WAIT
    wait_s: float = 0.0

    def wanted(self, now_s: float, overrides: Collection[ScheduleOverride] = ()) -> Wanted:
        by_the_clock = self._by_the_clock(now_s)
        return overridden(by_the_clock, overrides, now_s, str, self.policy, self.wait_s)

    def _by_the_clock(self, now_s: float) -> Wanted:
        into_s = (now_s - self.begins_s) % self.day_s
        is_up = into_s < self.up_s
        until_s = now_s - into_s + (self.up_s if is_up else self.day_s)
        since_s = now_s - into_s + (0.0 if is_up else self.up_s)
        if is_up:
            return Wanted(True, f"up until {until_s:.0f}", until_s, since_s)
        return Wanted(
            False,
            f"stopped until {until_s:.0f}",
            until_s,
            since_s,
            jobs_end_at_s=jobs_end_at_s(self.policy, since_s, self.wait_s, NOTICE_S),
            ends_all=self.policy is OnRunningJobs.STOP,
        )


@frozen(kw_only=True)
class WorldOptions:
    """One seed, drawn. Times are seconds from the start; `safety_s`: when the faults stop;
    `deploys_at_s`: when new nodes come from a new template.
    """

    seed: int
    size: str
    cluster: Cluster
    calendar: Windows | Zoned | None
    associations: tuple[Association, ...]
    licences: int
    arrivals: tuple[Arrival, ...]
    operator: tuple[Happening, ...]
    faults: frozenset[str]
    rates: Rates
    shortages: tuple[Shortage, ...]
    quotas: tuple[Quota, ...]
    happenings: tuple[Happening, ...]
    heartbeat_s: float
    safety_s: float
    deploys_at_s: float | None = None

    def describe(self) -> str:
        """The world in a few lines."""
        pools = "; ".join(
            f"{pool.name}: {', '.join(t.name for t in pool.instance_types)} in "
            f"{len(pool.zones)} zones, {', '.join(pool.markets)}, weight {pool.weight}, "
            f"idle {pool.idle_s:.0f} s, limits {limits(pool.limits)}{_keeps(pool)}, "
            f"expire {pool.disruption.expire_after_s} s, "
            f"budgets {', '.join(map(str, pool.disruption.budgets))}"
            for pool in self.cluster.pools
        )
        days = self.calendar
        calendar = ""
        if days:
            calendar = f", up {days.up_s:.0f} of {days.day_s:.0f} s, jobs at a stop: {days.policy}"
        rates = ", ".join(
            f"{each.name} {getattr(self.rates, each.name):.3g}"
            for each in fields(self.rates)
            if getattr(self.rates, each.name)
        )
        return "\n".join(
            (
                f"seed {self.seed}: a {self.size} world{calendar}",
                f"pools: {pools}",
                f"cluster limits: {limits(self.cluster.limits)}{self._budgets()}{self._prepaid()}",
                f"{len(self.arrivals)} submissions, {len(self.associations)} caps of accounting, "
                f"{self.safety_s:.0f} s with faults{self._idle()}",
                f"faults: {', '.join(sorted(self.faults)) or 'none'}"
                + (f" ({rates})" if rates else ""),
            )
        )

    def _idle(self) -> str:
        rule = self.cluster.idle_gpus.rule if self.cluster.idle_gpus else None
        return f", {rule.action} after {rule.after_s:.0f} s of idle GPUs" if rule else ""

    def _prepaid(self) -> str:
        found = self.cluster.reservations
        return "".join(f", {each.count} {each.offering} paid for" for each in found)

    def _budgets(self) -> str:
        said = (
            f"{scope} {each.usd_per_day} USD a day" for scope, each in self.cluster.budgets.items()
        )
        return "".join(f", budget of {each}" for each in said)


def limits(of: Limits) -> str:
    """The limits that are set, in words."""
    names = ("gpus", "nodes", "usd_per_hour")
    found = [f"{getattr(of, name)} {name}" for name in names if getattr(of, name) is not None]
    return ", ".join(found) or "none"


def _keeps(pool: Pool) -> str:
    """What the pool does beside serving jobs."""
    words = [f", keeps {pool.min_nodes} nodes"] if pool.min_nodes else []
    words += [f", {pool.headroom_nodes} free"] if pool.headroom_nodes else []
    words += [f", room for {each}" for each in pool.headroom]
    words += [f", {pool.rebalance} on hints"] if pool.rebalance is not Rebalance.IGNORE else []
    return "".join(words)
