"""What a deadline costs on spot: the planner's rule beside others, on public traces of spot.

    python -m bench.deadline FOLDER [STARTS]   the folder of github.com/skypilot-org/spot-traces

Each trace says for how many instances EC2 gave or kept spot, moment by moment; spot is there while
it gives all of them. From STARTS moments of each (default 12) a job of 48 hours runs against
deadlines of 48 h by each job fraction, with the delay of 0.2 h at each change and the price ratio
of "Can't Be Late" (NSDI 2024). Printed is the mean cost by that of Uniform Progress, the dearest
trace by the same, and how many jobs ended late: of all traces, and of every other one, which the
rule's numbers were not chosen by. `bound`: all spot that there is until the deadline, and changes
for nothing; no rule reaches it.

The second table is of jobs that may take spot in each zone of a region, where traces tell of
several at the same time: by Uniform Progress in one of these zones (the mean), and in all of them.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean

from tidegate.core.model.ec2 import Market
from tidegate.core.offers.deadline import Choice, Pressure, choice

WORK_S = 48 * 3600.0
CHANGE_S = 0.2 * 3600.0
PRICE_RATIO = 3.0
FRACTIONS = (0.6, 0.7, 0.8, 0.9)
# Traces are read at this step: what is shorter no start would outlive.
STEP_S = 300.0

type Spot = Sequence[bool]
"""Whether spot is there, step by step."""


@dataclass(slots=True)
class Run:
    """One job on its way. `since_s`: when spot came or went last; `is_last`: it stays on demand."""

    deadline_s: float
    now_s: float = 0.0
    left_s: float = WORK_S
    change_s: float = 0.0
    on: Market | None = None
    on_since_s: float = 0.0
    since_s: float = 0.0
    is_spot: bool = False
    is_last: bool = False
    usd: float = 0.0

    @property
    def done_s(self) -> float:
        return WORK_S - self.left_s

    @property
    def is_unsafe(self) -> bool:
        """No spare time for a change to spot and back: the safety net of every rule here."""
        return self.deadline_s - self.now_s - self.left_s < 2 * CHANGE_S + STEP_S


type Rule = Callable[[Run], Choice]


def on_demand(run: Run) -> Choice:
    return Choice.ON_DEMAND


def greedy(run: Run) -> Choice:
    """Spot while there is time, then on demand until the end."""
    run.is_last |= run.on is not Market.SPOT and run.is_unsafe
    if run.is_last:
        return Choice.ON_DEMAND
    return Choice.SPOT if run.is_spot else Choice.WAIT


def uniform_progress(run: Run) -> Choice:
    """As published: spot when it is there; idle and behind the even line: on demand, until it is
    two changes ahead of the line.
    """
    line = WORK_S / run.deadline_s
    run.is_last |= run.on is None and run.is_unsafe
    if run.is_last or run.on is Market.SPOT:
        return Choice.ON_DEMAND if run.is_last else Choice.SPOT
    ahead_of_s = run.now_s if run.on is None else run.now_s + 2 * CHANGE_S
    if run.on is Market.ON_DEMAND and run.done_s < ahead_of_s * line:
        return Choice.ON_DEMAND
    if run.is_spot:
        return Choice.SPOT
    return Choice.ON_DEMAND if run.done_s < run.now_s * line else Choice.WAIT


def staying(run: Run) -> Choice:
    """The planner's rule for jobs that stay on demand once they are there."""
    return choice(_pressure(run, may_move=False))


def moving(run: Run) -> Choice:
    """The planner's rule for jobs that can be moved."""
    return choice(_pressure(run, may_move=True))


def _pressure(run: Run, *, may_move: bool) -> Pressure:
    return Pressure(
        left_s=run.deadline_s - run.now_s,
        work_s=run.left_s,
        change_s=CHANGE_S,
        margin_s=STEP_S,
        price_ratio=PRICE_RATIO,
        on=run.on,
        on_for_s=run.now_s - run.on_since_s,
        spot_for_s=run.now_s - run.since_s if run.is_spot else None,
        may_move=may_move,
    )


RULES: Mapping[str, Rule] = {
    "on demand": on_demand,
    "greedy": greedy,
    "uniform progress": uniform_progress,
    "tidegate, stays": staying,
    "tidegate, moves": moving,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job cost, in hours of spot, and whether it ended after its deadline."""

    cost_h: float
    is_late: bool


def play(rule: Rule, spot: Spot, deadline_s: float) -> Outcome:
    """One job by one rule; spot that goes takes the job's node with it at once."""
    return play_in(rule, [spot], deadline_s)


def play_in(rule: Rule, zones: Sequence[Spot], deadline_s: float) -> Outcome:
    """The same in several zones: who starts on spot takes the zone that has had it for longest."""
    run, zone = Run(deadline_s), 0
    since_s = [0.0] * len(zones)
    before = (False,) * len(zones)
    for now in zip(*zones, strict=True):
        if run.left_s <= 0 or run.now_s >= deadline_s:
            break
        for n, (was, there) in enumerate(zip(before, now, strict=True)):
            if was is not there:
                since_s[n] = run.now_s
        before = now
        if run.on is Market.SPOT and not now[zone]:
            run.on = None
        if run.on is not Market.SPOT:
            zone = min(range(len(zones)), key=lambda n: (not now[n], since_s[n]))
        run.is_spot, run.since_s = now[zone], since_s[zone]
        _step(run, rule(run))
    return Outcome(run.usd, run.left_s > 0)


def _step(run: Run, chosen: Choice) -> None:
    on = {Choice.SPOT: Market.SPOT, Choice.ON_DEMAND: Market.ON_DEMAND}.get(chosen)
    assert on is not Market.SPOT or run.is_spot, "a rule chose spot that is not there"
    if on is not None and on is not run.on:
        run.change_s, run.on_since_s = CHANGE_S, run.now_s
    run.on = on
    if on is not None:
        used_s = min(STEP_S, run.change_s + run.left_s)
        changing_s = min(run.change_s, used_s)
        run.change_s -= changing_s
        run.left_s -= used_s - changing_s
        run.usd += used_s / 3600.0 * (1.0 if on is Market.SPOT else PRICE_RATIO)
    run.now_s += STEP_S


def bound_h(spot: Spot, deadline_s: float) -> float:
    """No rule costs less, whatever it knows."""
    on_spot_s = min(sum(spot[: int(deadline_s / STEP_S)]) * STEP_S, WORK_S)
    return (on_spot_s + PRICE_RATIO * (WORK_S - on_spot_s)) / 3600.0


def traces(folder: Path) -> Iterator[tuple[str, Spot]]:
    """Those that are longer than the longest deadline."""
    for path in sorted(folder.rglob("*.json")):
        told = json.loads(path.read_text())
        counts, gap_s = told["data"], told["metadata"]["gap_seconds"]
        whole = max(counts)
        steps = int(len(counts) * gap_s / STEP_S)
        spot = [whole > 0 and counts[int(n * STEP_S / gap_s)] == whole for n in range(steps)]
        if steps * STEP_S > WORK_S / min(FRACTIONS) + STEP_S:
            yield str(path.relative_to(folder)), spot


_ZONE = re.compile(r"(.*/)?([a-z0-9-]+?)-?([a-z])_(.+)")


def regions(every: Mapping[str, Spot]) -> dict[str, list[str]]:
    """The traces of each region of which several zones were watched at the same time."""
    found: dict[str, list[str]] = {}
    for trace, spot in every.items():
        if named := _ZONE.fullmatch(trace):
            key = f"{named[1] or ''}{named[2]}_{named[4]} of {len(spot)}"
            found.setdefault(key, []).append(trace)
    return {key: zones for key, zones in found.items() if len(zones) > 1}


type Costs = dict[str, dict[str, list[Outcome]]]
"""By rule and trace."""


def played(every: Mapping[str, Spot], fraction: float, starts: int) -> tuple[Costs, float]:
    """All rules on the same moments, and the mean of what no rule can beat."""
    deadline_s, chance = WORK_S / fraction, Random(f"{fraction}")
    steps = int(deadline_s / STEP_S) + 1
    found: Costs = {name: {trace: [] for trace in every} for name in RULES}
    bounds: list[float] = []
    for trace, spot in every.items():
        for _ in range(starts):
            first = chance.randrange(len(spot) - steps)
            window = spot[first : first + steps]
            bounds.append(bound_h(window, deadline_s))
            for name, rule in RULES.items():
                found[name][trace].append(play(rule, window, deadline_s))
    return found, mean(bounds)


def _rows(every: Mapping[str, Spot], fraction: float, starts: int) -> Iterator[list[str]]:
    found, bound = played(every, fraction, starts)
    others = list(every)[1::2]
    for name, of in found.items():
        late = sum(each.is_late for runs in of.values() for each in runs)
        whole = _by(of, found["uniform progress"], list(every))
        held_out = _by(of, found["uniform progress"], others)
        yield [f"{fraction}", name, *whole, *held_out, f"{late}"]
    usual = mean(_cost(found["uniform progress"], trace) for trace in every)
    yield [f"{fraction}", "bound", f"{bound / usual:.3f}", "", "", "", ""]


def _cost(of: Mapping[str, Sequence[Outcome]], trace: str) -> float:
    return mean(each.cost_h for each in of[trace])


def _by(
    of: Mapping[str, Sequence[Outcome]], usual: Mapping[str, Sequence[Outcome]], only: Sequence[str]
) -> tuple[str, str]:
    """The mean cost by the usual one, and the dearest trace by it."""
    pairs = [(_cost(of, trace), _cost(usual, trace)) for trace in only]
    whole = mean(cost for cost, _ in pairs) / mean(cost for _, cost in pairs)
    return f"{whole:.3f}", f"{max(cost / each for cost, each in pairs):.3f}"


def _zone_rows(every: Mapping[str, Spot], fraction: float, starts: int) -> Iterator[list[str]]:
    deadline_s, chance = WORK_S / fraction, Random(f"zones {fraction}")
    steps = int(deadline_s / STEP_S) + 1
    alone, usual = list[float](), list[float]()
    ours: dict[str, list[Outcome]] = {"tidegate, stays": [], "tidegate, moves": []}
    for zones in regions(every).values():
        for _ in range(starts):
            first = chance.randrange(len(every[zones[0]]) - steps)
            windows = [every[zone][first : first + steps] for zone in zones]
            alone.append(mean(play(uniform_progress, each, deadline_s).cost_h for each in windows))
            usual.append(play_in(uniform_progress, windows, deadline_s).cost_h)
            for name, outcomes in ours.items():
                outcomes.append(play_in(RULES[name], windows, deadline_s))
    for name, outcomes in ours.items():
        cost, late = mean(each.cost_h for each in outcomes), sum(each.is_late for each in outcomes)
        ratios = f"{cost / mean(alone):.3f}", f"{cost / mean(usual):.3f}"
        yield [f"{fraction}", name, *ratios, f"{late}"]


def _print(heading: Sequence[str], rows: Iterator[list[str]]) -> None:
    table = [heading, ["---"] * len(heading), *rows]
    print("\n".join(f"| {' | '.join(row)} |" for row in table))


def main() -> None:
    folder, *starts = sys.argv[1:]
    every = dict(traces(Path(folder)))
    if not every:
        sys.exit(f"no traces in {folder}: git clone https://github.com/skypilot-org/spot-traces")
    number = int(starts[0]) if starts else 12
    dearest, held_out = "dearest trace", "held out"
    heading = [
        "job fraction",
        "rule",
        "mean cost",
        dearest,
        held_out,
        f"{held_out}: dearest",
        "late",
    ]
    _print(heading, (row for each in FRACTIONS for row in _rows(every, each, number)))
    print(f"\n{len(every)} traces; cost by that of Uniform Progress\n")
    heading = ["job fraction", "rule", "by it in one zone", "by it in all zones", "late"]
    _print(heading, (row for each in FRACTIONS for row in _zone_rows(every, each, number)))
    print(f"\n{len(regions(every))} regions of several zones")


if __name__ == "__main__":
    main()
