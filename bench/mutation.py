"""`make mutants`: breaks the product on purpose, and tells what nothing sees.

First the deliberate faults of `faults`: the simulation has to find each of them. Then the modules
below, node by node: of each at most N changes (40), always the same ones, which its tests should
see. A survivor is printed as a diff: a missing test, code that nobody needs, or a change that
means the same. Exit code 1 when a deliberate fault survives, and when tests or the simulation fail
without any change.

`python -m bench.mutation MODULE... [--most N]`: these modules alone; `--faults [WORDS]`: the faults
alone whose names hold these words.

A small tool of our own: mutmut changes what is inside functions alone, neither a module's constants
nor a dataclass's defaults, and cosmic-ray has one test command for all modules and changes the
checkout itself, in which nobody could work meanwhile.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.aimed import Fault
from bench.faults import FAULTS
from bench.hunt import hunt
from bench.mutated import ROOT, run_tests
from bench.mutations import Change, changes

CHANGES_MAX = 40

# Tests of the planner run in seconds, so whichever of them sees a fault will do.
_OF_CORE = (
    *("offers/loss", "offers/market", "offers/limits", "offers/offers", "offers/catalogue"),
    *("offers/cost", "offers/refused", "offers/sooner", "offers/reservations"),
    *("demand/accounting", "demand/demand", "demand/where", "fleet/idle_time"),
    *("interruption/policy", "interruption/loss", "interruption/save", "fleet/judge"),
    *("fleet/members", "fleet/arrivals", "fleet/templates", "fleet/rollout", "model/rollout"),
    *("buy/alternatives", "buy/bins", "buy/blueprint"),
    *("buy/fillers", "buy/launches", "buy/steering", "passes/doubt", "passes/freeing"),
    *("passes/futile", "passes/gangs", "passes/gates", "passes/idle", "passes/kinds"),
    *("passes/nodes",),
    *("passes/queue", "passes/retire", "passes/rollout", "passes/serve", "passes/sickness"),
    *("passes/silence", "passes/steer", "passes/vain", "planner"),
)
# What core decides for the service alone is seen by the service's tests too.
_ALSO = {
    "offers/market": ("tests/service/test_prices.py",),
    "fleet/judge": ("tests/service/test_boot_failures.py", "tests/service/test_orphans.py"),
    "fleet/templates": ("tests/service/test_blame.py", "tests/service/test_boot_failures.py"),
    "interruption/policy": ("tests/service/test_interruptions.py",),
}

# Module -> the tests that should see its faults, the nearest first.
MODULES = {
    **{f"tidegate/core/{each}.py": ("tests/core", *_ALSO.get(each, ())) for each in _OF_CORE},
    "tidegate/core/fleet/rests.py": (
        *("tests/service/test_one_bad_node.py", "tests/service/test_boot_failures.py"),
        *("tests/service/test_late_words.py", "tests/service/test_blame.py"),
    ),
    "tidegate/service/prices.py": ("tests/service/test_prices.py",),
    "tidegate/service/boot_failures.py": (
        *("tests/service/test_boot_failures.py", "tests/service/test_late_words.py"),
        "tests/service/test_one_bad_node.py",
    ),
    "tidegate/service/interruptions.py": (
        *("tests/service/test_interruptions.py", "tests/service/test_orphans.py"),
        *("tests/service/test_boot_failures.py", "tests/lambdas/test_interruption.py"),
    ),
    "tidegate/service/launching.py": (
        *("tests/service/test_blame.py", "tests/service/test_side_by_side.py"),
        *("tests/service/test_exactly_once.py", "tests/service/test_shared_launches.py"),
    ),
    "tidegate/service/observe.py": ("tests/service",),
    "tidegate/agent/loop.py": ("tests/agent/test_loop.py",),
    "tidegate/agent/restarts.py": ("tests/agent",),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """`is_seen`: a test fails with the change, or hangs."""

    change: Change
    is_seen: bool


def main() -> int:
    options = _options()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        if options.faults:
            return int(not hunt(options.faults, pool))
        is_good = bool(options.modules) or hunt(FAULTS, pool)
        for file in options.modules or MODULES:
            is_good &= _module(file, options.most, pool)
    return int(not is_good)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", choices=[*MODULES, []])
    parser.add_argument("--most", type=int, default=CHANGES_MAX, help="changes of a module")
    parser.add_argument("--faults", nargs="?", const="", type=_named, metavar="WORDS", help="alone")
    return parser.parse_args()


def _named(words: str) -> list[Fault]:
    """The deliberate faults whose names hold these words."""
    found = [each for each in FAULTS if words in each.name]
    if not found:
        raise argparse.ArgumentTypeError(f"no fault in bench/faults.py is named like {words!r}")
    return found


def _module(file: str, most: int, pool: ThreadPoolExecutor) -> bool:
    """Prints what became of a module's changes; whether its tests pass without any."""
    source, began_s = Path(ROOT, file).read_text(), time.monotonic()
    if not passes(file, source, time_out_s=600.0):
        print(f"{file}: its tests fail without a change")
        return False
    bound_s = 10 + 5 * (time.monotonic() - began_s)

    def judge(change: Change) -> Judged:
        return Judged(change, not passes(file, change.of(source), time_out_s=bound_s))

    every = changes(source)
    judged = list(pool.map(judge, chosen(every, most, file)))
    survivors = [each.change for each in judged if not each.is_seen]
    took_s = time.monotonic() - began_s
    killed = f"{len(judged) - len(survivors)} killed, {len(survivors)} survived"
    print(f"{file}: {killed} of {len(judged)} ({len(every)} possible), {took_s:.0f} s")
    for each in survivors:
        print("\n".join(f"    {line}" for line in each.diff(source, file).splitlines()[2:]))
    sys.stdout.flush()
    return True


def chosen(every: Sequence[Change], most: int, name: str) -> list[Change]:
    """The same ones at each run, in the order of the text."""
    if len(every) <= most:
        return list(every)
    numbers = sorted(Random(name).sample(range(len(every)), most))
    return [every[number] for number in numbers]


def passes(file: str, text: str, *, time_out_s: float) -> bool:
    """Whether the module's tests pass when this is its text."""
    name = file.removesuffix(".py").replace("/", ".")
    try:
        ran = run_tests({name: text}, *MODULES[file], time_out_s=time_out_s)
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
