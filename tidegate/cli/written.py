"""Files that a command is asked to write: looked at before it does anything else."""

from pathlib import Path

import typer


def new_file(path: Path | None) -> Path | None:
    """A callback of options: where nothing can be written, nothing is begun either."""
    if path is None:
        return None
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a directory, not a file")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {path.parent}: mkdir -p {path.parent}")
    return path
