"""What a run of many seeds has to say."""

from collections import Counter
from dataclasses import dataclass, field

from tidegate.sim.options import FAULTS, WorldOptions
from tidegate.sim.story import Ended

LAST_DECISIONS = 25


@dataclass(slots=True)
class Tally:
    """Figures over many stories."""

    num_seeds: int = 0
    num_jobs: int = 0
    num_looks: int = 0
    num_calls: int = 0
    num_launched: int = 0
    simulated_s: float = 0.0
    injected: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, ended: Ended) -> None:
        self.num_seeds += 1
        self.num_jobs += sum(max(each.submit.array, 1) for each in ended.options.arrivals)
        self.num_looks += ended.num_looks
        self.num_calls += ended.num_calls
        self.num_launched += ended.num_launched
        self.simulated_s += ended.at_s
        self.injected.update(ended.injected)
        if ended.broken:
            self.broken[ended.broken.check] += 1

    def summary(self, took_s: float, cpu_s: float) -> str:
        """A few lines; the faults in the order of their list."""
        faults = ", ".join(f"{name} {self.injected[name]}" for name in FAULTS)
        failed = ", ".join(f"{name} {count}" for name, count in self.broken.most_common())
        return "\n".join(
            (
                f"{self.num_seeds} seed{'s' * (self.num_seeds != 1)} in {took_s:.1f} s, "
                f"{self.num_seeds / max(cpu_s, 0.001):.0f} seeds/s of CPU time: "
                f"{self.simulated_s / 86_400:.1f} days, {self.num_jobs} jobs, "
                f"{self.num_looks} looks, {self.num_calls} CreateFleet calls, "
                f"{self.num_launched} instances",
                f"faults: {faults}",
                f"failed: {failed or 'none'}",
            )
        )


def command(options: WorldOptions, drawn: WorldOptions, size: str = "") -> str:
    """What repeats this story; `drawn`: the whole world of its seed."""
    words = [f"tidegate simulate --seeds {options.seed}:{options.seed + 1}"]
    words.append(f"--faults {','.join(sorted(options.faults)) or 'none'}")
    if size:
        words.append(f"--size {size}")
    if options.arrivals != drawn.arrivals:
        words.append(f"--jobs {','.join(str(each.number) for each in options.arrivals) or 'none'}")
    if options.safety_s != drawn.safety_s:
        words.append(f"--until {options.safety_s:g}")
    return " ".join(words)


def failure(ended: Ended, repeats: str, *, is_whole: bool = False) -> str:
    """What broke, the last decisions before it, and the command that repeats it."""
    broken = ended.broken
    assert broken is not None
    lines = ended.trace if is_whole else ended.trace[-LAST_DECISIONS:]
    left_out = len(ended.trace) - len(lines)
    return "\n".join(
        (
            f"seed {ended.options.seed}, step {ended.step}, {ended.at_s:.0f} s: {broken}",
            f"    {' '.join(broken.sentence.split())}",
            ended.options.describe(),
            *([f"... {left_out} lines before"] if left_out else []),
            *lines,
            f"again: {repeats}",
        )
    )
