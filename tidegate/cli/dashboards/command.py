"""`tidegate dashboards`: Grafana's files, and the rules for a Prometheus of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.core.model.text import printable

EXAMPLES = "Examples: tidegate dashboards --out monitoring"
RULES_FILE = "tidegate.rules.yml"


def _folder(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file, not a directory")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {path.parent}: mkdir -p {path.parent}")
    return path


def dashboards(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", callback=_folder, help="Made if it is not there.")
    ],
) -> None:
    """Write Grafana dashboards and Prometheus rules.

    They are the same for every cluster.
    """
    import json

    from tidegate.cli.dashboards.boards import BOARDS
    from tidegate.cli.dashboards.grafana import as_json
    from userdata.monitoring import prometheus_rules

    out.mkdir(exist_ok=True)
    for board in BOARDS:
        file = out / f"tidegate-{board.name}.json"
        file.write_text(json.dumps(as_json(board), indent=2) + "\n", encoding="utf-8")
        typer.echo(printable(f"{file}: {board.question}"))
    (out / RULES_FILE).write_text(prometheus_rules(), encoding="utf-8")
    rules = printable(str(out / RULES_FILE))
    typer.echo(f"{rules}: what is recorded and what alerts, for Prometheus")
