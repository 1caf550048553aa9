"""Launches in doubt: their planner died, and what EC2 gave is still to be found out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tidegate.core.buy.bins import Bins, bin_of_any, bin_of_type
from tidegate.core.buy.dealing import jobs_of, shares
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.core.model.plan import Action, Resume
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.limits import Load
from tidegate.core.offers.loss import asked
from tidegate.core.offers.reservations import may_leave

type _Choice = tuple[Offering, InstanceType]


def count_doubt(snapshot: Snapshot, purchase: Purchase, bins: Bins) -> None:
    """Until a launch whose planner died is finished, its nodes count as in flight."""
    for record in snapshot.in_doubt:
        _count_in_doubt(snapshot, purchase, bins, record)


def finish_launches(snapshot: Snapshot, purchase: Purchase) -> Iterator[Action]:
    """Pick up launches whose planner died.

    What it meant to end before it bought may live on: over a limit nothing more is bought,
    nor while the head is silent, nor where EC2 would sell by the hour what was to come from a
    reservation that has ended meanwhile, or whose places others have taken.
    """
    wanted, timings = snapshot.wanted, snapshot.cluster.timings
    for record in snapshot.in_doubt:
        launch = record.launch
        is_blind = bool(snapshot.staleness)
        payers = snapshot.cluster.payers(launch.account, launch.user)
        is_over = purchase.usage.is_exceeded(launch.pool) or purchase.barred(payers) is not None
        may_buy = wanted.is_up and not is_blind and not is_over and _is_held(purchase, launch)
        lease_s = timings.apply_lease_s
        # Nothing is asked of EC2 again, or who took it may have bought it: all must show by then.
        if not may_buy or record.taken_at_s is not None:
            lease_s = max(lease_s, timings.describe_lag_s)
        age_s = snapshot.now_s - record.created_at_s
        # Another planner that is about to ask EC2 has its time as the first one had.
        if snapshot.now_s - (record.taken_at_s or record.created_at_s) >= lease_s:
            reason = f"recorded {age_s:.0f} s ago and never finished: its planner died"
            yield Resume(launch.launch_id, reason, may_buy=may_buy)


def _is_held(purchase: Purchase, launch: Launch) -> bool:
    """Not bought from a reservation, or from one that still has a place for all of it."""
    first, held = launch.offerings[0], purchase.offer_groups.reserved_capacity
    return not first.market.is_prepaid or held.has_all(first, launch.reservation)


def _count_in_doubt(
    snapshot: Snapshot, purchase: Purchase, bins: Bins, record: LaunchRecord
) -> None:
    """Its nodes hold their places: against limits as the largest and dearest of its offerings, for
    jobs as what all of these have.
    """
    launch, cluster = record.launch, snapshot.cluster
    each = Load()
    choice: list[_Choice] = []
    for offering in launch.offerings:
        found = cluster.instance_type(offering.instance_type)
        usd = dearest(snapshot, offering, launch.usd_per_hour_each, record.created_at_s)
        each = each.most(Load.of(found, usd))
        choice += [(offering, found)] if found else []
    purchase.usage.debit(launch.pool, launch.count, each)
    pool = cluster.pool(launch.pool)
    if pool and choice and snapshot.wanted.is_up:
        _add_bins(snapshot, purchase, bins, launch, pool, choice)


def _add_bins(
    snapshot: Snapshot,
    purchase: Purchase,
    bins: Bins,
    launch: Launch,
    pool: Pool,
    choice: Sequence[_Choice],
) -> None:
    """Of what Describe shows of it already the type is known."""
    shown = [
        (one.offering, found)
        for one in sorted(snapshot.instances, key=lambda each: each.instance_id)
        if one.launch_id == launch.launch_id and one.is_alive
        if (found := snapshot.cluster.instance_type(one.offering.instance_type))
    ]
    gates = [gang for gang, count in shares(launch) for _ in range(count)]
    is_lossy = _lossy_on_any(purchase, pool, choice)
    ultraservers = purchase.offer_groups.reserved_capacity.ultraservers
    for number, gang in enumerate(gates):
        known = shown[number : number + 1]
        each = bin_of_any(pool, known or choice, gated_for=gang, layout=launch.layout)
        each.name = f"{launch.launch_id}.{number}"
        each.for_jobs = jobs_of(launch, number)
        each.is_lossy = _lossy_on_any(purchase, pool, known) if known else is_lossy
        each.ultraserver = ultraservers.of(launch.reservation)
        each.ultraserver_nodes = ultraservers.largest(each.offering)
        bins.add([each])
        if not known and len(choice) > 1:
            first, of = choice[0]
            likely = bin_of_type(
                each.name, pool, first, of=of, gated_for=gang, layout=launch.layout
            )
            likely.is_anywhere, likely.for_jobs = each.is_anywhere, each.for_jobs
            likely.is_lossy = _lossy_on_any(purchase, pool, choice[:1])
            bins.hoped.append((each, likely))


def _lossy_on_any(
    purchase: Purchase, pool: Pool, choice: Sequence[_Choice]
) -> Callable[[Need], bool]:
    """A job that would be kept off one of them does not count on what comes."""
    losses, known = purchase.offer_groups.losses, dict[object, bool]()

    def is_lossy(need: Need) -> bool:
        key = need.kind if need.kind >= 0 else asked(need)
        if key not in known:
            known[key] = any(losses.is_lossy(pool, offering, need) for offering, _ in choice)
        return known[key]

    return is_lossy


def hope(bins: Bins) -> bool:
    """Take nodes in doubt that no job has taken yet for the first of their offerings, which is the
    likeliest: a job that needs it waits for what becomes of the launch, and buys none beside it.

    False: there is none.
    """
    hoped = bins.hoped
    found = [(each, likely) for each, likely in hoped if not each.jobs and not each.gated_for]
    for each, likely in found:
        each.gpus = each.cpus = each.memory_mib = 0  # all of it is in the new bin
        bins.append(likely)
    return bool(found)


def dearest(snapshot: Snapshot, offering: Offering, usd: float, known_s: float) -> float:
    """The price against limits: also what EC2 asks for it while this planner still acts.

    `usd` is what was asked as it was decided: to finish a launch is to buy, at the price of now.
    """
    cluster = snapshot.cluster
    if offering in cluster.quoted:
        return cluster.prices[offering]
    until_s = snapshot.now_s + cluster.timings.apply_lease_s
    if not may_leave(cluster, offering, known_s=known_s, until_s=until_s):
        return usd
    return max(usd, cluster.prices.get(replace(offering, market=Market.ON_DEMAND), usd))
