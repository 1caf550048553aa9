"""The figures of one span of time, from what was billed and what ran."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median, quantiles

from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_use import IdleSpan
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import Row, Run, Share, TimeUse, allocated, rows


@frozen
class Waits:
    """Of the runs that began, from when nothing but Slurm kept them to their start, in seconds."""

    runs: int
    mean_s: float
    median_s: float
    p95_s: float


NO_WAITS = Waits(0, 0.0, 0.0, 0.0)


@frozen
class Figures:
    """What a span of time cost and what it was good for. Times in epoch seconds."""

    since_s: float
    until_s: float
    shares: tuple[Share, ...]
    waits: Mapping[str, Waits]  # by partition; of all: ""

    @property
    def usd(self) -> Mapping[TimeUse, float]:
        found = dict.fromkeys(TimeUse, 0.0)
        for share in self.shares:
            found[share.use] += share.usd
        return found

    @property
    def total_usd(self) -> float:
        return sum(self.usd.values())

    @property
    def gpu_hours(self) -> float:
        return sum(share.gpu_hours for share in self.shares)

    @property
    def idle_gpu_hours(self) -> float:
        """That jobs held while their GPUs did nothing, of `seen_gpu_hours` that are known."""
        return sum(share.idle_gpu_hours for share in self.shares)

    @property
    def seen_gpu_hours(self) -> float:
        return sum(share.seen_gpu_hours for share in self.shares)

    @property
    def lost_gpu_hours(self) -> float:
        """Of requeued runs, as far as they told: what was done again, and what they stood still."""
        return sum(share.gpu_hours for share in self.shares if share.use is TimeUse.LOST)

    @property
    def goodput(self) -> float | None:
        """Which part of the GPU-hours that were paid jobs held and did not lose, nor left idle as
        far as nodes told; None: there were none.
        """
        if not self.gpu_hours:
            return None
        good = (s.gpu_hours - s.idle_gpu_hours for s in self.shares if s.use is TimeUse.JOB)
        return sum(good) / self.gpu_hours

    @property
    def used(self) -> float | None:
        """Which part of what was paid jobs held and did not lose; None: nothing was paid."""
        return self.usd[TimeUse.JOB] / self.total_usd if self.total_usd else None

    def rows(self, by: str) -> tuple[Row, ...]:
        return rows(self.shares, by)


def figures(
    bills: Sequence[Bill],
    runs: Sequence[Run],
    types: Mapping[str, InstanceType],
    since_s: float,
    until_s: float,
    idle: Iterable[IdleSpan] = (),
) -> Figures:
    began = [run for run in runs if since_s <= run.started_at_s < until_s]
    shares = tuple(allocated(bills, runs, types, since_s, until_s, idle))
    return Figures(since_s, until_s, shares, _waits(began))


def _waits(runs: Iterable[Run]) -> dict[str, Waits]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run.wait_s is not None:
            found[""].append(run.wait_s)
            found[run.partition].append(run.wait_s)
    return {name: _of(waits) for name, waits in sorted(found.items())}


def _of(waits: Sequence[float]) -> Waits:
    p95_s = quantiles(waits, n=20, method="inclusive")[-1] if len(waits) > 1 else waits[0]
    return Waits(len(waits), mean(waits), median(waits), p95_s)
