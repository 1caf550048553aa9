"""From a seed to a world: swarm testing, every world has its own few faults and sizes."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from random import Random

from tidegate.core.model.budgets import DEFAULT_BUDGETS, Budget, Disruption, DisruptionReason
from tidegate.core.model.calendar import OnRunningJobs
from tidegate.core.model.cluster import Cluster, Limits, Partition, Pool, Rebalance, Timings
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.site_check import SiteCheck
from tidegate.core.model.slurm import Association
from tidegate.sim import draw_moves, draw_stopped
from tidegate.sim.clock import START_S
from tidegate.sim.draw_headroom import with_headroom
from tidegate.sim.draw_idle import with_idle_gpus, with_long_days
from tidegate.sim.draw_jobs import (
    ACCOUNTS,
    QOS,
    draw_arrivals,
    with_begin,
    with_components,
    with_deadlines,
    with_dependents,
    with_ends,
    with_equal_gangs,
)
from tidegate.sim.draw_money import with_budget, with_open_prices, with_plan, with_waiting
from tidegate.sim.draw_people import holders, operators, reservers, suspenders
from tidegate.sim.draw_shares import with_parts
from tidegate.sim.draw_tests import with_tests
from tidegate.sim.options import (
    DRAINED_BY_SLURM,
    FAULTS,
    Arrival,
    Happening,
    Hours,
    Quota,
    Rates,
    Shortage,
    Windows,
    WorldOptions,
)
from tidegate.sim.prepaid import with_limit, with_prepaid, with_time_limits
from tidegate.sim.zoned import Zoned, draw_zoned

TYPES = (
    InstanceType("g4dn.xlarge", 4, 16_384, 1, "t4"),
    InstanceType("g4dn.2xlarge", 8, 32_768, 1, "t4"),
    InstanceType("g4dn.12xlarge", 48, 196_608, 4, "t4"),
    InstanceType("g5.xlarge", 4, 16_384, 1, "a10g"),
    InstanceType("g5.2xlarge", 8, 32_768, 1, "a10g"),
    InstanceType("g5.12xlarge", 48, 196_608, 4, "a10g"),
    InstanceType("c6i.4xlarge", 16, 32_768, 0, ""),
)
USD_PER_HOUR = (0.53, 0.75, 3.9, 1.0, 1.2, 5.7, 0.68)
ON_DEMAND_USD = dict(zip((kind.name for kind in TYPES), USD_PER_HOUR, strict=True))
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SIZES = {"small": 14, "medium": 5, "large": 1}
SAFETY_S = {"small": (150.0, 300.0, 450.0, 700.0)}
LONGER_S = (200.0, 400.0, 600.0, 1200.0)

OFTEN = {"order": 0.6, "spot": 0.4, "clock": 0.4}  # EC2's habits rather than faults

# In one of ten worlds calls fail so many times as often: looks die one after the other.
OF_CALLS, BAD_HOUR = ("throttle", "lost", "kill"), 3.0

# Faults that came later: drawn by themselves they leave the worlds of all seeds as they were.
DRAWN_APART = {
    "strangers": 0.5,
    "sick": 0.15,
    "gpu": 0.25,
    "places": 0.25,
    "image": 0.25,
    "prices": 0.2,
    "tests": 0.15,
    "starts": 0.5,
}
OLDER = tuple(name for name in FAULTS if name not in DRAWN_APART)


def stream(seed: int, name: str) -> Random:
    """A source of chance of its own, so that a world without one fault keeps all others."""
    return Random(f"{seed}:{name}")


def draw(seed: int, faults: Collection[str] | None = None, size: str = "") -> WorldOptions:
    """The world of this seed. `faults` None: the seed chooses; `size` "": likewise."""
    chance = stream(seed, "world")
    drawn_size = chance.choices(list(SIZES), list(SIZES.values()))[0]
    size = size or drawn_size
    safety_s = chance.choice(SAFETY_S.get(size, LONGER_S))
    moves = stream(seed, "moves")
    is_moving = moves.random() < draw_moves.SHARE
    safety_s = draw_moves.SAFETY_S if is_moving else safety_s
    stops = stream(seed, "stopped")
    is_stopping = stops.random() < draw_stopped.SHARE
    safety_s = draw_stopped.SAFETY_S if is_stopping else safety_s
    some = frozenset(name for name in OLDER if chance.random() < OFTEN.get(name, 0.3))
    some |= {n for n, share in DRAWN_APART.items() if stream(seed, f"has {n}").random() < share}
    some = draw_stopped.fewer(seed, some) if is_stopping else some
    is_tight = chance.random() < 0.15
    leaving = stream(seed, "leaving")
    cluster = with_headroom(stream(seed, "headroom"), _cluster(chance, size, is_tight=is_tight))
    cluster = draw_moves.with_spot(moves, cluster, ON_DEMAND_USD) if is_moving else cluster
    cluster = _letting_go(leaving, cluster)
    cluster = draw_stopped.with_stopped(stops, cluster, ON_DEMAND_USD) if is_stopping else cluster
    cluster = with_waiting(stream(seed, "waiting"), with_budget(stream(seed, "budget"), cluster))
    cluster, prepaid = draw_stopped.with_kept(seed, cluster), stream(seed, "prepaid")
    arrivals = _arrivals(seed, cluster, size, safety_s, is_tight=is_tight)
    cluster, arrivals = with_idle_gpus(stream(seed, "idle gpus"), cluster, arrivals)
    cluster = with_prepaid(prepaid, cluster, size, safety_s, ON_DEMAND_USD)
    cluster = with_limit(stream(seed, "limit of reserved"), cluster)
    cluster = with_plan(stream(seed, "savings plan"), cluster, safety_s)
    cluster, arrivals = with_parts(seed, cluster, arrivals)
    calm = WorldOptions(
        seed=seed,
        size=size,
        cluster=cluster,
        calendar=_hours(
            *(stream(seed, "hours"), safety_s, size),
            with_long_days(cluster, _calendar(chance, safety_s)),
        ),
        associations=_associations(chance),
        licences=chance.randint(1, 2),
        arrivals=with_deadlines(
            stream(seed, "deadlines"), with_time_limits(prepaid, arrivals, cluster), cluster
        ),
        operator=(
            *operators(stream(seed, "operator"), safety_s),
            *suspenders(stream(seed, "suspend"), safety_s),
            *reservers(stream(seed, "reserve"), safety_s),
            *holders(stream(seed, "hold"), safety_s),
        ),
        faults=frozenset(),
        rates=Rates(),
        shortages=(),
        quotas=(),
        happenings=(),
        heartbeat_s=chance.choice((60.0, 180.0, 280.0)),
        safety_s=safety_s,
        deploys_at_s=leaving.uniform(60.0, safety_s) if leaving.random() < 0.25 else None,
    )
    made = _with_faults(calm, some if faults is None else frozenset(faults))
    return draw_moves.with_moves(moves, made) if is_moving else made


def _cluster(chance: Random, size: str, *, is_tight: bool) -> Cluster:
    """`is_tight`: two or three nodes for everybody."""
    pools = tuple(_pool(chance, number) for number in range(chance.choice((1, 1, 2, 3))))
    prices = {
        offering: round(
            USD_PER_HOUR[TYPES.index(kind)]
            * (1.0 if offering.market is Market.ON_DEMAND else chance.uniform(0.25, 0.7)),
            3,
        )
        for pool in pools
        for kind, offering in pool.offerings()
    }
    names = tuple(pool.name for pool in pools)
    partitions = [Partition("all", names, is_default=True)]
    partitions += [Partition(f"only-{name}", (name,)) for name in names[1:]]
    limits = Limits()
    luck = chance.random()
    if luck < 0.35:
        limits = _limits(chance, most=4 if size == "small" else 8)
    elif luck < 0.6:  # a few of the cheapest, and not all at another price
        usd = chance.choice(sorted(prices.values())[:3]) * chance.choice((1.05, 1.25, 2.2, 3.0))
        limits = Limits(usd_per_hour=round(usd, 2))
    if is_tight:
        limits = Limits(nodes=chance.choice((2, 3)))
    timings = Timings(
        boot_bound_s=chance.choice((240.0, 300.0, 420.0, 900.0)),
        order_ttl_s=chance.choice((30.0, 60.0, 120.0)),
        rest_min_s=chance.choice((60.0, 120.0, 180.0)),
        rest_max_s=chance.choice((180.0, 360.0)),
    )
    return Cluster("sim", pools, tuple(partitions), prices, limits, timings)


def _pool(chance: Random, number: int) -> Pool:
    markets = chance.choice(((Market.SPOT,), (Market.ON_DEMAND,), (Market.SPOT, Market.ON_DEMAND)))
    return Pool(
        name=f"pool{number}",
        instance_types=tuple(
            TYPES[n] for n in sorted(chance.sample(range(len(TYPES)), chance.choice((1, 2, 3, 4))))
        ),
        zones=ZONES[: chance.choice((1, 1, 2, 3))],
        markets=markets,
        weight=chance.choice((1, 1, 10)),
        limits=_limits(chance, most=6) if chance.random() < 0.4 else Limits(),
        idle_s=chance.choice((10.0, 30.0, 60.0, 150.0)),
        max_job_nodes=chance.choice((2, 4, 8)),
        min_nodes=int(chance.random() < 0.06),
        headroom_nodes=int(chance.random() < 0.06),
        rebalance=chance.choice(tuple(Rebalance)),
    )


def _letting_go(chance: Random, cluster: Cluster) -> Cluster:
    """Some clusters have budgets, and nodes that grow old; where a pool keeps nodes, the more of
    them the more seldom: there is a time at which none of them comes or goes.
    """
    if chance.random() < 0.5:
        return cluster
    expire_after_s = chance.choice((None, 150.0, 400.0))
    if expire_after_s and (kept := max(map(_kept, cluster.pools))):
        expire_after_s *= 6 * kept
    hours = Hours(300.0, 150.0)
    budgets = chance.choice(
        (
            DEFAULT_BUDGETS,
            (Budget(nodes=1),),
            (Budget(percent=34.0),),
            (Budget(percent=100.0), Budget(nodes=1, window=hours)),
            (Budget(nodes=1, reasons=frozenset({DisruptionReason.EMPTY})),),
        )
    )
    disruption = Disruption(budgets, expire_after_s)
    pools = tuple(replace(pool, disruption=disruption) for pool in cluster.pools)
    return replace(cluster, pools=pools)


def _kept(pool: Pool) -> int:
    """How many nodes it keeps without a job, at most."""
    return max(pool.min_nodes, pool.headroom_nodes) + sum(each.most_nodes for each in pool.headroom)


def _limits(chance: Random, most: int) -> Limits:
    kind = chance.choice(("gpus", "nodes", "usd"))
    return Limits(
        gpus=chance.randint(1, most * 2) if kind == "gpus" else None,
        nodes=chance.randint(1, most) if kind == "nodes" else None,
        usd_per_hour=round(chance.uniform(0.5, most * 1.2), 2) if kind == "usd" else None,
    )


def _arrivals(
    seed: int, cluster: Cluster, size: str, safety_s: float, *, is_tight: bool
) -> tuple[Arrival, ...]:
    plain = draw_arrivals(stream(seed, "jobs"), cluster, size, safety_s, is_tight=is_tight)
    plain = draw_stopped.with_later(seed, plain, cluster)
    begins = with_begin(stream(seed, "begin"), plain)
    components = with_components(stream(seed, "het"), begins, cluster)
    gangs = with_equal_gangs(stream(seed, "equal gangs"), components, cluster)
    return with_dependents(stream(seed, "after"), with_ends(stream(seed, "ends"), gangs))


def _hours(
    chance: Random, safety_s: float, size: str, windows: Windows | None
) -> Windows | Zoned | None:
    """Now and then the schedules of a cluster file instead."""
    if chance.random() >= 0.05:
        return windows
    return draw_zoned(chance, safety_s, may_be_free=size != "small")


def _calendar(chance: Random, safety_s: float) -> Windows | None:
    begins_s = START_S - chance.uniform(0.0, safety_s)
    day_s = chance.choice((1800.0, 3600.0))
    policy, wait_s = chance.choice(tuple(OnRunningJobs)), chance.choice((0.0, 60.0, 300.0))
    is_drawn = chance.random() < 0.15
    return Windows(begins_s, day_s, day_s * 0.7, policy, wait_s) if is_drawn else None


def _associations(chance: Random) -> tuple[Association, ...]:
    if chance.random() > 0.3:
        return ()
    account, qos = chance.choice(ACCOUNTS), chance.choice(QOS)
    gpus = chance.randint(1, 4)
    tres = chance.choice(("gres/gpu", "gres/gpu", "gres/gpu:t4", "gres/gpu:a10g"))
    return chance.choice(
        (
            (Association(f"account {account}", account, in_all=gpus, tres=tres),),
            (Association(f"qos {qos}", qos=qos, per_user=gpus),),
            (Association(f"qos {qos}", qos=qos, per_job=gpus),),
            (
                Association(f"account {account}", account, in_all=gpus),
                Association(f"qos {qos}", qos=qos, in_all=gpus + 1, tres=tres),
            ),
        )
    )


# -- faults ----------------------------------------------------------------------------------


HAPPENINGS = (
    *("subnet", "spot", "hints", "death", "slurm", "head", "clock", "lag", "strangers", "sick"),
    "gpu",
)


def _checked(calm: WorldOptions) -> Cluster:
    """With a check of the site's own, which a slow image alone does not pass."""
    nodes = stream(calm.seed, "check").choice((1, 2))
    return replace(calm.cluster, check=SiteCheck("ci", nodes, 300.0, 900.0))


def _with_faults(calm: WorldOptions, faults: frozenset[str]) -> WorldOptions:
    """Every fault draws from a stream of its own: leaving one out changes no other."""
    seed, until_s = calm.seed, calm.safety_s
    every = {o for pool in calm.cluster.pools for _, o in pool.offerings()}
    offerings = sorted(each for each in every if not each.market.is_prepaid)
    quota, deploys_at_s = stream(seed, "quota"), calm.deploys_at_s
    if "image" in faults and deploys_at_s is None:
        deploys_at_s = stream(seed, "image").uniform(0.2, 0.6) * until_s
    cluster = _checked(calm) if "image" in faults else calm.cluster
    cluster = with_tests(stream(seed, "tests"), cluster) if "tests" in faults else cluster
    cluster = with_open_prices(cluster, ON_DEMAND_USD) if "prices" in faults else cluster
    return replace(
        calm,
        cluster=cluster,
        deploys_at_s=deploys_at_s,
        faults=faults,
        rates=_rates(seed, faults),
        shortages=_shortages(stream(seed, "shortage"), offerings, until_s)
        if "shortage" in faults
        else (),
        quotas=(
            Quota(
                quota.choice((Market.SPOT, Market.ON_DEMAND)),
                *_span(quota, until_s),
                quota.randint(0, 3),
            ),
        )
        if "quota" in faults
        else (),
        happenings=tuple(
            each
            for kind in HAPPENINGS
            if kind in faults
            for each in _happenings(stream(seed, kind), kind, until_s)
        ),
    )


def _rates(seed: int, faults: frozenset[str]) -> Rates:
    drawn: dict[str, float] = {}
    worse = BAD_HOUR if stream(seed, "bad hour").random() < 0.1 else 1.0
    for fault, name, most in (
        ("throttle", "throttle", 0.06),
        ("lost", "lost", 0.06),
        ("kill", "kill", 0.05),
        ("twice", "twice", 0.1),
        ("looks", "look_lost", 0.4),
        ("looks", "look_late", 0.4),
        ("orders", "order_late", 0.3),
        ("orders", "order_twice", 0.3),
        ("boot", "slow_boot", 0.3),
        ("boot", "bad_boot", 0.3),
        ("spot", "reclaim", 0.9),
        ("lag", "lag_s", 50.0),
    ):
        if fault in faults:
            chance = stream(seed, f"rate of {name}")
            most *= worse if fault in OF_CALLS else 1.0
            drawn[name] = round(chance.uniform(most / 4, most), 4)
    return Rates(**drawn)


def _span(chance: Random, until_s: float) -> tuple[float, float]:
    from_s = chance.uniform(0.0, until_s / 2)
    return from_s, from_s + chance.uniform(30.0, until_s)


def _shortages(
    chance: Random, offerings: Sequence[Offering], until_s: float
) -> tuple[Shortage, ...]:
    short = [each for each in offerings if chance.random() < chance.choice((0.3, 0.7, 1.0))]
    return tuple(
        Shortage(each, *_span(chance, until_s), chance.choice((0, 0, 1, 2))) for each in short
    )


def _happenings(chance: Random, kind: str, until_s: float) -> list[Happening]:
    most = {"death": 3, "hints": 3, "lag": 3, "slurm": 2, "spot": 2, "strangers": 4, "sick": 3}
    lengths = {"slurm": (5.0, 150.0), "head": (20.0, 400.0), "subnet": (60.0, 600.0)}
    lengths |= {"clock": (20.0, 500.0), "hints": (30.0, 900.0), "strangers": (20.0, 900.0)}
    lengths |= {"sick": (20.0, 2500.0)}
    most |= {"gpu": 6}
    whats = {
        "death": ("instance", "slurmd"),
        "hints": ("rebalance", "maintenance", "maintenance", "issue"),
        "head": ("reboot", "reboot", "replaced"),
        "clock": ("-600", "45", "4000", "4000"),
        "subnet": ZONES,
        "sick": ("check", "check", *DRAINED_BY_SLURM, "Kill task failed"),
    }
    return [
        Happening(
            kind,
            chance.uniform(20.0, until_s),
            chance.uniform(*lengths.get(kind, (5.0, 40.0))),
            chance.choice(whats.get(kind, ("",))),
        )
        for _ in range(chance.randint(1, most.get(kind, 1)))
    ]
