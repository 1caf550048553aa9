"""Turning what is missing into launches, within every limit and around resting offerings."""

from dataclasses import dataclass, field

from tidegate.core.actions import Launch, Resting
from tidegate.core.demand import Need
from tidegate.core.ec2 import Offering
from tidegate.core.limits import Usage
from tidegate.core.pack import Bin, BinKind, bin_of_type
from tidegate.core.rank import Candidate, alternatives, candidates
from tidegate.core.slurm import Shape
from tidegate.core.snapshot import Snapshot

REASONS_MAX = 4

# Each launch is a CreateFleet call of a second or two, and a planner lives 45 s.
LAUNCHES_MAX = 20


@dataclass(frozen=True, slots=True)
class Bought:
    """What one need got: new bins, or the reason why not."""

    bins: tuple[Bin, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class _Option:
    """An offering with what may stand beside it, and the dearest and largest of them all."""

    best: Candidate
    offerings: tuple[Offering, ...]
    gpus_most: int
    usd_per_hour_most: float


def _option(best: Candidate, beside: list[Candidate]) -> _Option:
    return _Option(
        best,
        tuple(c.offering for c in beside),
        max(c.instance_type.gpus for c in beside),
        max(c.usd_per_hour for c in beside),
    )


@dataclass(slots=True)
class _Menu:
    """What one kind of need could buy, best first, and why the rest is not on it."""

    awake: list[Candidate]
    blocked: list[str]
    unfit: list[str]
    _options: dict[int, _Option] = field(default_factory=dict)

    def option(self, number: int) -> _Option:
        if number not in self._options:
            best = self.awake[number]
            self._options[number] = _option(best, alternatives(best, self.awake))
        return self._options[number]


@dataclass(slots=True)
class _Draft:
    """A launch in the making; equal one-node needs share it."""

    chosen: _Option
    gated_for: str
    count: int = 0
    for_jobs: list[str] = field(default_factory=list)


type _DraftKey = tuple[str, tuple[Offering, ...], str, int]
type _MenuKey = tuple[Shape, str, tuple[str, ...], tuple[str, str] | None]


class Shop:
    """Collects the launches of one plan. `is_cut`: more could be bought by a further plan."""

    def __init__(self, snapshot: Snapshot, usage: Usage) -> None:
        self._snapshot = snapshot
        self._usage = usage
        self._resting = {r.offering: r for r in snapshot.resting if r.until_s > snapshot.now_s}
        self._drafts: dict[_DraftKey, _Draft] = {}
        self.is_cut = False
        self._menus: dict[_MenuKey, _Menu] = {}
        self._num_bought = 0

    def buy(self, need: Need, nodes: int, *, within: tuple[str, str] | None = None) -> Bought:
        """Buy all of `nodes` for this need, or none. `within`: only this (pool, zone)."""
        if not self._snapshot.wanted.is_up:
            return Bought((), self._snapshot.wanted.reason)
        menu = self._menu(need, within)
        blocked = list(menu.blocked)
        for number in range(len(menu.awake)):
            option = menu.option(number)
            room, sentence = self._room(option, nodes)
            if room < nodes:
                # Only the size of its alternatives may break the limit.
                option = _option(option.best, [option.best])
                room, _ = self._room(option, nodes)
            if room >= nodes and self._is_full(need, option):
                self.is_cut = True
                return Bought((), f"a plan holds {LAUNCHES_MAX} launches, it is in the next one")
            if room >= nodes:
                return self._take(need, nodes, option)
            blocked.append(_limit_reason(sentence, nodes))
        # What fits and is held back says more than all that does not fit.
        return Bought((), _refusal(need, blocked or menu.unfit))

    def _is_full(self, need: Need, option: "_Option") -> bool:
        return len(self._drafts) >= LAUNCHES_MAX and self._key(need, option) not in self._drafts

    def _key(self, need: Need, option: "_Option") -> "_DraftKey":
        """Needs with the same key share a request; a gang, or one task of an array of gangs,
        has its own, since EC2 gives all of a request's minimum or nothing.
        """
        number = len(self._drafts) if need.is_gang else -1
        gated_for = need.job_id if need.is_gang else ""
        return option.best.pool.name, option.offerings, gated_for, number

    def _menu(self, need: Need, within: tuple[str, str] | None) -> "_Menu":
        """What could be bought; equal needs share it, since nothing of it changes in a plan."""
        key = (need.shape, need.constraint, need.pools, within)
        if key not in self._menus:
            ranked, unfit = candidates(need, self._snapshot.cluster)
            if within:
                ranked = [c for c in ranked if (c.pool.name, c.offering.zone) == within]
            resting = [self._resting[c.offering] for c in ranked if c.offering in self._resting]
            self._menus[key] = _Menu(
                awake=[c for c in ranked if c.offering not in self._resting],
                blocked=[_rest_reason(each, self._snapshot.now_s) for each in resting],
                unfit=unfit,
            )
        return self._menus[key]

    def _room(self, option: "_Option", nodes: int) -> tuple[int, str]:
        return self._usage.room(
            option.best.pool.name,
            nodes=nodes,
            gpus_each=option.gpus_most,
            usd_per_hour_each=option.usd_per_hour_most,
        )

    def launches(self, id_prefix: str) -> tuple[Launch, ...]:
        """The launches collected so far; ids follow from the epoch, so they never repeat."""
        return tuple(
            _launch(draft, f"{id_prefix}-{number}")
            for number, draft in enumerate(self._drafts.values())
        )

    def _take(self, need: Need, nodes: int, option: "_Option") -> Bought:
        best = option.best
        gated_for = need.job_id if need.is_gang else ""
        draft = self._drafts.setdefault(self._key(need, option), _Draft(option, gated_for))
        self._usage.debit(
            best.pool.name,
            nodes=nodes,
            gpus_each=option.gpus_most,
            usd_per_hour_each=option.usd_per_hour_most,
        )
        bins: list[Bin] = []
        for _ in range(nodes):
            self._num_bought += 1
            bins.append(
                bin_of_type(
                    f"new {best.instance_type.name} {self._num_bought}",
                    BinKind.NEW,
                    best.pool,
                    best.offering,
                    of=best.instance_type,
                    gated_for=gated_for,
                )
            )
        draft.count += nodes
        draft.for_jobs.append(need.job_id)
        return Bought(tuple(bins), f"{best.offering} is the cheapest that fits")


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
    best = draft.chosen.best
    reason = (
        f"{draft.count} x {best.offering} at {best.usd_per_hour:.3f} USD per hour for job "
        f"{named}{gang}: nothing that exists or boots fits, and this is the cheapest "
        f"in pool {best.pool.name}"
    )
    return Launch(
        launch_id=launch_id,
        pool=best.pool.name,
        offerings=draft.chosen.offerings,
        count=draft.count,
        min_count=draft.count if draft.gated_for else 1,
        for_jobs=jobs,
        usd_per_hour_each=draft.chosen.usd_per_hour_most,
        gated_for=draft.gated_for,
        reason=reason,
    )
