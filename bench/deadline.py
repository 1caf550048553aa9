"""What a deadline costs on spot: the planner's rule beside others, on public traces of spot.

    python -m bench.deadline FOLDER [STARTS]   the folder of github.com/skypilot-org/spot-traces

Each trace says for how many instances EC2 gave or kept spot, moment by moment; spot is there while
it gives all of them. From STARTS moments of each (default 12) a job of 48 hours runs against
deadlines of 48 h by each job fraction, with the delay of 0.2 h at each change and the price ratio
of "Can't Be Late" (NSDI 2024). Printed is the mean cost by that of Uniform Progress, the dearest
trace by the same, and how many jobs ended late. `bound`: all spot that there is until the deadline,
and changes for nothing; no rule reaches it.
"""

import json
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
    run = Run(deadline_s)
    for is_spot in spot:
        if run.left_s <= 0 or run.now_s >= deadline_s:
            break
        if is_spot != run.is_spot:
            run.is_spot, run.since_s = is_spot, run.now_s
        if run.on is Market.SPOT and not is_spot:
            run.on = None
        _step(run, rule(run))
    return Outcome(run.usd, run.left_s > 0)


def _step(run: Run, chosen: Choice) -> None:
    on = {Choice.SPOT: Market.SPOT, Choice.ON_DEMAND: Market.ON_DEMAND}.get(chosen)
    assert on is not Market.SPOT or run.is_spot, "a rule chose spot that is not there"
    if on is not None and on is not run.on:
        run.change_s = CHANGE_S
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
    by_trace = {
        name: {trace: mean(each.cost_h for each in runs) for trace, runs in of.items()}
        for name, of in found.items()
    }
    usual = by_trace["uniform progress"]
    whole = mean(usual.values())
    for name, costs in by_trace.items():
        late = sum(each.is_late for runs in found[name].values() for each in runs)
        dearest = max(costs[trace] / usual[trace] for trace in costs)
        ratio = mean(costs.values()) / whole
        yield [f"{fraction}", name, f"{ratio:.3f}", f"{dearest:.3f}", f"{late}"]
    yield [f"{fraction}", "bound", f"{bound / whole:.3f}", "", ""]


def main() -> None:
    folder, *starts = sys.argv[1:]
    every = dict(traces(Path(folder)))
    if not every:
        sys.exit(f"no traces in {folder}: git clone https://github.com/skypilot-org/spot-traces")
    heading = ["job fraction", "rule", "mean cost", "dearest trace", "late"]
    rows = [heading, ["---"] * len(heading)]
    for fraction in FRACTIONS:
        rows += _rows(every, fraction, int(starts[0]) if starts else 12)
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    print(f"\n{len(every)} traces; cost by that of Uniform Progress")


if __name__ == "__main__":
    main()
