"""Making the story of a failure short: fewer faults, fewer jobs, less time."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tidegate.sim.draw import draw
from tidegate.sim.options import WorldOptions
from tidegate.sim.story import Ended, Story

ATTEMPTS_MAX = 200
SHORTEST_S = 60.0


def narrowed(
    options: WorldOptions, jobs: frozenset[int] | None = None, until_s: float | None = None
) -> WorldOptions:
    """The same world with these submissions only, and with faults until then."""
    kept = [each for each in options.arrivals if jobs is None or each.number in jobs]
    safety_s = options.safety_s if until_s is None else until_s
    return replace(options, arrivals=tuple(kept), safety_s=safety_s)


def play(options: WorldOptions) -> Ended:
    return Story(options).play()


def shrink(ended: Ended, size: str = "", play: Callable[[WorldOptions], Ended] = play) -> Ended:
    """The shortest story found that breaks the same check, by leaving out one thing at a time."""
    assert ended.broken is not None
    left = ATTEMPTS_MAX
    improved = True
    while improved and left > 0:
        improved = False
        for options in _simpler(ended.options, size):
            left -= 1
            shorter = play(options)
            if shorter.broken and shorter.broken.check == ended.broken.check:
                ended, improved = shorter, True
                break
    return ended


def _simpler(options: WorldOptions, size: str) -> Iterator[WorldOptions]:
    jobs = frozenset(each.number for each in options.arrivals)
    for fault in sorted(options.faults):
        fewer = draw(options.seed, options.faults - {fault}, size)
        yield narrowed(fewer, jobs, options.safety_s)
    for number in sorted(jobs):
        yield narrowed(options, jobs - {number})
    if options.safety_s > SHORTEST_S:
        yield narrowed(options, until_s=round(options.safety_s * 0.6, 1))
