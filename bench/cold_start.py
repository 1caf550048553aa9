"""How long the functions' code takes to load in a new process: the cold part of a start.

Own code comes from the deployment's package with its bytecode, third-party packages from this
environment, since the package's are for Lambda's processors. CPU time, best of nine.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure, table
from cdk.packaging import own_code_package

ROOT = Path(__file__).parents[1]
HANDLERS = ("planner", "interruption", "schedule", "reconcile")
ROUNDS = 9

# On one of this machine's processors when the other one is free; a busy one costs a third more.
IMPORT_MOST_MS = 300.0

_MEASURE = """\
import importlib, sys, time
before = time.process_time()
importlib.import_module(sys.argv[1])
print(time.process_time() - before)
"""


def import_cpu_s(folder: Path, module: str) -> float:
    """CPU seconds of one import in a new process, the interpreter's own start left out."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, module],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=folder,
    )
    return float(done.stdout)


def figures() -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        with zipfile.ZipFile(own_code_package(ROOT)) as archive:
            archive.extractall(folder)
        for name in HANDLERS:
            module = f"lambdas.{name}"
            times = [import_cpu_s(Path(folder), module) for _ in range(ROUNDS)]
            label = f"cold import of {name}, CPU, best of {ROUNDS}"
            yield Figure(label, round(min(times) * 1000), "ms", IMPORT_MOST_MS)
        # What of it is boto3's, which also says how fast this machine is at the moment.
        times = [import_cpu_s(Path(folder), "boto3") for _ in range(ROUNDS)]
        yield Figure("of it import of boto3, CPU", round(min(times) * 1000), "ms")


if __name__ == "__main__":
    print(table(list(figures())))
