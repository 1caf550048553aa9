"""How soon the simulation finds each deliberate fault: at which seed, and by which check."""

import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.aimed import Fault
from bench.mutated import run_tidegate

SEEDS = "0:500"
TIME_OUT_S = 900.0
SOUND = Fault("nothing", ())

_FOUND = re.compile(r"^seed (\d+), step (\d+), (\d+) s: (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a fault. `check` "": no check found it."""

    fault: Fault
    seed: int
    check: str
    found: str
    took_s: float


def hunt(faults: Sequence[Fault], pool: ThreadPoolExecutor) -> bool:
    """Prints what became of the faults; whether each was found, and nothing without one."""
    sound = judged(SOUND)
    if sound.check:
        print(f"the product itself breaks {sound.check} at seed {sound.seed}: {sound.found}")
        return False
    width = max(len(each.name) for each in faults)
    survivors = 0
    for verdict in pool.map(judged, faults):
        survivors += not verdict.check
        print(_line(verdict, width))
        if not verdict.check:
            print("\n".join(f"    {line}" for line in verdict.fault.diff().splitlines()))
        sys.stdout.flush()
    print(f"{len(faults) - survivors} of {len(faults)} faults found within seeds {SEEDS}")
    return not survivors


def judged(fault: Fault) -> Verdict:
    """Simulate the product with this fault until it is found."""
    began_s = time.monotonic()
    ran = run_tidegate(fault.texts(), "simulate", "--seeds", SEEDS, time_out_s=TIME_OUT_S)
    took_s = time.monotonic() - began_s
    if found := _FOUND.search(ran.stdout):
        return Verdict(fault, int(found[1]), found[4], found[5], took_s)
    said = f"{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    assert ran.returncode == 0, f"{fault.name}: exit code {ran.returncode}: {said}"
    return Verdict(fault, -1, "", "", took_s)


def _line(verdict: Verdict, width: int) -> str:
    name = f"{verdict.fault.name:{width}}"
    if not verdict.check:
        return f"{name}  SURVIVED  {verdict.took_s:.0f} s"
    return f"{name}  seed {verdict.seed:3}  {verdict.check}: {verdict.found[:90]}"
