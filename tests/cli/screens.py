"""Screenshots for the documentation: `make screens` writes them to docs/screens.

Made from a kept snapshot of clusters/research.yaml, as the commands would show it.
"""

import io
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from tidegate.cli.shown import COLUMNS
from tidegate.cli.status_screen import screen
from tidegate.core.answer import answer
from tidegate.core.chain import chain
from tidegate.core.overview import overview
from tidegate.core.planner import plan
from tidegate.core.snapshot import Snapshot
from tidegate.core.verdicts import Verdicts, verdicts_of
from tidegate.wire.config import load_cluster
from tidegate.wire.snapshot import decode_snapshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screens"
SNAPSHOT = ROOT / "tests" / "golden" / "plans" / "research-mixed.snapshot.json"


def screens() -> dict[str, str]:
    """Name -> SVG."""
    seen, judged = _seen()
    jobs = seen.digest.reading.jobs if seen.digest else ()
    waits = next(job.job_id for job in jobs if _waits(job.job_id, judged))
    shown: dict[str, RenderableType] = {
        "status": screen(overview(seen, judged)),
        "why": Text(chain(answer(waits, seen, judged))),
    }
    return {name: _svg(name, what) for name, what in shown.items()}


def _seen() -> tuple[Snapshot, Verdicts]:
    cluster = load_cluster(ROOT / "clusters" / "research.yaml").cluster
    seen = decode_snapshot(SNAPSHOT.read_text(), cluster, SNAPSHOT.name).snapshot
    return seen, verdicts_of(plan(seen), seen)


def _waits(job_id: str, judged: Verdicts) -> bool:
    verdict = judged.of(job_id)
    return verdict is not None and not verdict.is_served and bool(verdict.why_nots)


def _svg(name: str, what: RenderableType) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), markup=False, highlight=False)
    console.print(what)
    return console.export_svg(title=f"tidegate {name}", unique_id=name)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, svg in screens().items():
        (FOLDER / f"{name}.svg").write_text(svg)
