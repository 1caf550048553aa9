"""Turning what is missing into launches, within every limit and around resting offerings."""

from dataclasses import dataclass, field

from tidegate.core.actions import Launch, Resting
from tidegate.core.demand import Need
from tidegate.core.ec2 import Offering
from tidegate.core.limits import Usage
from tidegate.core.pack import Bin, BinKind, bin_of_type
from tidegate.core.rank import Candidate, alternatives, candidates
from tidegate.core.snapshot import Snapshot

REASONS_MAX = 4


@dataclass(frozen=True, slots=True)
class Bought:
    """What one need got: new bins, or the reason why not."""

    bins: tuple[Bin, ...]
    reason: str


@dataclass(slots=True)
class _Draft:
    """A launch in the making; equal one-node needs share it."""

    chosen: Candidate
    offerings: tuple[Offering, ...]
    usd_per_hour_each: float
    gated_for: str
    count: int = 0
    for_jobs: list[str] = field(default_factory=list)


class Shop:
    """Collects the launches of one plan."""

    def __init__(self, snapshot: Snapshot, usage: Usage) -> None:
        self._snapshot = snapshot
        self._usage = usage
        self._resting = {r.offering: r for r in snapshot.resting if r.until_s > snapshot.now_s}
        self._drafts: dict[tuple[str, tuple[Offering, ...], str], _Draft] = {}

    def buy(self, need: Need, nodes: int, *, within: tuple[str, str] | None = None) -> Bought:
        """Buy all of `nodes` for this need, or none. `within`: only this (pool, zone)."""
        ranked, unfit = candidates(need, self._snapshot.cluster)
        if within:
            ranked = [c for c in ranked if (c.pool.name, c.offering.zone) == within]
        awake = [c for c in ranked if c.offering not in self._resting]
        blocked = [self._rests(c) for c in ranked if c.offering in self._resting]
        for best in awake:
            beside = alternatives(best, awake)
            dearest = max(c.usd_per_hour for c in beside)
            gpus_most = max(c.instance_type.gpus for c in beside)
            room, sentence = self._usage.room(
                best.pool.name, nodes=nodes, gpus_each=gpus_most, usd_per_hour_each=dearest
            )
            if room >= nodes:
                return self._take(need, nodes, best, beside, dearest=dearest, gpus_each=gpus_most)
            alone = self._buy_alone(need, nodes, best)
            if alone:
                return alone
            blocked.append(_limit_reason(sentence, nodes))
        # What fits and is held back says more than all that does not fit.
        return Bought((), _refusal(need, blocked or unfit))

    def launches(self, id_prefix: str) -> tuple[Launch, ...]:
        """The launches collected so far; ids follow from the epoch, so they never repeat."""
        return tuple(
            _launch(draft, f"{id_prefix}-{number}")
            for number, draft in enumerate(self._drafts.values())
        )

    def _buy_alone(self, need: Need, nodes: int, best: Candidate) -> Bought | None:
        """The best offering without alternatives, when only their size breaks a limit."""
        gpus_each, usd = best.instance_type.gpus, best.usd_per_hour
        room, _ = self._usage.room(
            best.pool.name, nodes=nodes, gpus_each=gpus_each, usd_per_hour_each=usd
        )
        if room < nodes:
            return None
        return self._take(need, nodes, best, [best], dearest=usd, gpus_each=gpus_each)

    def _take(
        self,
        need: Need,
        nodes: int,
        best: Candidate,
        beside: list[Candidate],
        *,
        dearest: float,
        gpus_each: int,
    ) -> Bought:
        offerings = tuple(c.offering for c in beside)
        gated_for = need.job_id if need.is_gang else ""
        key = (best.pool.name, offerings, gated_for)
        draft = self._drafts.setdefault(key, _Draft(best, offerings, dearest, gated_for))
        self._usage.debit(
            best.pool.name, nodes=nodes, gpus_each=gpus_each, usd_per_hour_each=dearest
        )
        bins: list[Bin] = []
        for _ in range(nodes):
            draft.count += 1
            name = f"new {best.instance_type.name} {len(self._drafts)}.{draft.count}"
            bins.append(
                bin_of_type(
                    name,
                    BinKind.NEW,
                    best.pool,
                    best.offering,
                    of=best.instance_type,
                    gated_for=gated_for,
                )
            )
        draft.for_jobs.append(need.job_id)
        return Bought(tuple(bins), f"{best.offering} is the cheapest that fits")

    def _rests(self, candidate: Candidate) -> str:
        resting = self._resting[candidate.offering]
        return _rest_reason(resting, self._snapshot.now_s)


def _rest_reason(resting: Resting, now_s: float) -> str:
    return (
        f"{resting.offering} rests for {resting.until_s - now_s:.0f} s more "
        f"after EC2 said {resting.code}"
    )


def _limit_reason(sentence: str, nodes: int) -> str:
    return f"{sentence} and {nodes} more node{'s are' if nodes > 1 else ' is'} needed"


def _refusal(need: Need, why_nots: list[str]) -> str:
    if not need.pools:
        return "no pool serves its partition"
    told = list(dict.fromkeys(why_nots))
    more = f"; and {len(told) - REASONS_MAX} more" if len(told) > REASONS_MAX else ""
    return "; ".join(told[:REASONS_MAX]) + more


def _launch(draft: _Draft, launch_id: str) -> Launch:
    jobs = tuple(dict.fromkeys(draft.for_jobs))
    named = ", ".join(jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
    gang = ", all or none" if draft.gated_for else ""
    best = draft.chosen
    reason = (
        f"{draft.count} x {best.offering} at {best.usd_per_hour:.3f} USD per hour for job "
        f"{named}{gang}: nothing that exists or boots fits, and this is the cheapest "
        f"in pool {best.pool.name}"
    )
    return Launch(
        launch_id=launch_id,
        pool=best.pool.name,
        offerings=draft.offerings,
        count=draft.count,
        min_count=draft.count if draft.gated_for else 1,
        for_jobs=jobs,
        usd_per_hour_each=draft.usd_per_hour_each,
        gated_for=draft.gated_for,
        reason=reason,
    )
