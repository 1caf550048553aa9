"""Worlds that run as processes of their own, in namespaces, and print as JSON what happened."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def seen_in(module: str, *words: str, timeout_s: float) -> Any:
    """What the world saw that is the module `tests.MODULE`."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.{module}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout)
