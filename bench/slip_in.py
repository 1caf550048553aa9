"""Jobs that slip in while a node is let go, on real Slurm: `python -m bench.slip_in` (root).

Each job is submitted at one moment of the order `release`: before the node is drained, right after
it, or between the check and the delete. Whoever wins, no job is lost and no node is stranded: a
node that is kept runs the job and takes others, one that goes leaves the job waiting for the next.
"""

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from local.slurm.daemons import RealSlurm, why_not_here
from local.waiting import eventually
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.adapters.slurm_command import CommandRunner, Runner
from tidegate.agent.orders import Worker
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome

MOMENTS = ("before the drain", "after the drain", "before the delete")
# How long Slurm has to start a job that was submitted before the drain.
PAUSES_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
PATIENCE_S = 60.0
NUMBERS = itertools.count(1)


class Slipping(SlurmCli):
    """Something happens at one moment of a release."""

    def __init__(self, run: Runner, moment: str, happen: Callable[[], None]) -> None:
        super().__init__(run)
        self.moment, self.happen = moment, happen

    def drain(self, names: Sequence[str], reason: str) -> None:
        if self.moment == "before the drain":
            self.happen()
        super().drain(names, reason)
        if self.moment == "after the drain":
            self.happen()

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        if self.moment == "before the delete":
            self.happen()
        return super().delete(names)


@dataclass(slots=True)
class Race:
    """`outcomes`: how often the node was kept or went, by moment. Errors: AssertionError."""

    slurm: RealSlurm
    outcomes: Counter[str] = field(default_factory=Counter)
    node: str = ""

    def run(self, number: int) -> None:
        """One release of an idle node and one job."""
        if not self.node:
            self._join()
        moment, pause_s = MOMENTS[number % len(MOMENTS)], PAUSES_S[number % len(PAUSES_S)]
        submitted: list[str] = []

        def submit() -> None:
            if not submitted:  # a delete may be tried again
                # Any node serves: a job that insists on this one would keep it by that alone.
                submitted.append(self.slurm.submit("--gres=gpu:t4:1"))
                time.sleep(pause_s if moment == MOMENTS[0] else 0.0)

        worker = Worker(Slipping(CommandRunner(prefix=self.slurm.prefix), moment, submit))
        order = Order(f"o{number}", OrderKind.RELEASE, (self.node,), time.time() + 600, ("IDLE",))
        (result,) = worker.carry_out((order,), time.time()).results
        self.outcomes[f"{moment}: {result.outcome.value}"] += 1
        if result.outcome is OrderOutcome.DONE:
            assert self.slurm.node_words(self.node) == frozenset(), f"round {number}: {result}"
            assert self.slurm.state(submitted[0]) == "PENDING", f"round {number}: the job is lost"
            self._join()
        else:
            assert result.outcome is OrderOutcome.KEPT, f"round {number}: {result}"
        self._settle(number, submitted[0])

    def _settle(self, number: int, job_id: str) -> None:
        """The job runs, on a node that takes others as well."""
        self.slurm.port.poke([self.node])
        what = f"round {number}: the job runs"
        eventually(what, lambda: self.slurm.state(job_id) == "RUNNING", PATIENCE_S)
        words = self.slurm.node_words(self.node)
        assert "DRAIN" not in words, f"round {number}: {self.node} is stranded: {words}"
        self.slurm.cancel(job_id)
        what = f"round {number}: the node idles"
        eventually(what, lambda: self.slurm.node_words(self.node) >= {"IDLE"}, PATIENCE_S)

    def _join(self) -> None:
        self.node = f"i-{next(NUMBERS):08x}"
        self.slurm.join(self.node)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    times = parser.parse_args().times
    if reason := why_not_here():
        raise SystemExit(reason)
    with TemporaryDirectory(prefix="tg", dir="/tmp") as folder, RealSlurm(Path(folder)) as slurm:
        race, began_s = Race(slurm), time.monotonic()
        for number in range(times):
            race.run(number)
            if number % 20 == 19:
                print(f"{number + 1} rounds, {time.monotonic() - began_s:.0f} s", flush=True)
        print(f"{times} jobs slipped in, none was lost and no node stranded")
        for outcome, count in sorted(race.outcomes.items()):
            print(f"  {outcome:28} {count}")


if __name__ == "__main__":
    main()
