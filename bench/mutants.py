"""`make faults`: deliberate faults, and how soon the simulation finds each.

Every mutant is made in a copy of the product, where `tidegate simulate` runs until an invariant
breaks. Exit code 1 when one survives: then a check is missing.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.mutant import Edit, Mutant
from bench.mutant_list import MUTANTS

ROOT = Path(__file__).parents[1]
SEEDS = "0:300"
TIME_OUT_S = 900.0
FOUND = re.compile(r"^seed (\d+), step (\d+), (\d+) s: (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant. `check` "": it survived."""

    mutant: Mutant
    seed: int
    check: str
    found: str
    took_s: float


def main() -> int:
    """Run all mutants, or those whose names hold the words of the command line."""
    words = " ".join(sys.argv[1:])
    chosen = [mutant for mutant in MUTANTS if words in mutant.name]
    width = max(len(mutant.name) for mutant in chosen)
    sound = judged(Mutant("nothing", ()))
    if sound.check:
        print(f"the product itself breaks {sound.check} at seed {sound.seed}: {sound.found}")
        return 1
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict in pool.map(judged, chosen):
            survivors += not verdict.check
            print(_line(verdict, width), flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants caught within seeds {SEEDS}")
    return 1 if survivors else 0


def judged(mutant: Mutant) -> Verdict:
    """Simulate the product with this fault until it is found."""
    began_s = time.monotonic()
    with copy_with(mutant) as run:
        ran = run("simulate", "--seeds", SEEDS)
    took_s = time.monotonic() - began_s
    found = FOUND.search(ran.stdout)
    if found:
        return Verdict(mutant, int(found[1]), found[4], found[5], took_s)
    said = f"{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    assert ran.returncode == 0, f"{mutant.name}: exit code {ran.returncode}: {said}"
    return Verdict(mutant, -1, "", "", took_s)


type Run = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def copy_with(mutant: Mutant) -> Iterator[Run]:
    """A copy of the product with this fault; yields what runs its command `tidegate`."""
    with TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "tidegate", Path(folder, "tidegate"), ignore=_no_caches)
        for edit in mutant.edits:
            _apply(edit, Path(folder))

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "tidegate.cli.main", *words],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=TIME_OUT_S,
                check=False,
            )

        yield run


def fits(edit: Edit, root: Path = ROOT) -> bool:
    """Whether the text that the edit replaces stands in its file exactly once."""
    return Path(root, "tidegate", edit.file).read_text().count(edit.old) == 1


def _apply(edit: Edit, root: Path) -> None:
    assert fits(edit, root), f"{edit.file} does not hold once: {edit.old}"
    file = Path(root, "tidegate", edit.file)
    file.write_text(file.read_text().replace(edit.old, edit.new))


def _no_caches(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _line(verdict: Verdict, width: int) -> str:
    name = f"{verdict.mutant.name:{width}}"
    if not verdict.check:
        return f"{name}  SURVIVED  {verdict.took_s:.0f} s"
    return f"{name}  seed {verdict.seed:3}  {verdict.check}: {verdict.found[:90]}"


if __name__ == "__main__":
    sys.exit(main())
