"""What stands beside the package, in the repository: what it takes is nobody's at work."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Never

import typer


def become(module: str, options: Sequence[str], *, called: str) -> Never:
    """This process goes on as that module, so that whoever ends it ends its cluster.

    Errors: exit code 2, where there is no repository.
    """
    if find_spec("local") is None or find_spec(module) is None:
        typer.echo(
            f"`tidegate {called}` is part of Tidegate's repository: clone it, run `make setup`, and"
            f" then .venv/bin/tidegate {called} in it.",
            err=True,
        )
        raise typer.Exit(2)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *options])
