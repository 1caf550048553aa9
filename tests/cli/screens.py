"""Screenshots for the documentation: `make screens` writes them to docs/screens.

Those of the terminal from a kept snapshot of clusters/research.yaml, as the commands would show it;
that of the replay's report by Chromium. Which page it shows is written into the picture.
"""

import hashlib
import io
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console, RenderableType
from rich.text import Text

from tests.replay.test_replay import EXACT, cluster, drawn
from tidegate.cli.status_screen import screen
from tidegate.core.explain.answer import answer
from tidegate.core.explain.chain import chain
from tidegate.core.explain.overview import overview
from tidegate.core.explain.verdicts import Verdicts, verdicts_of
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.sim.replay.draw import as_html
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import read_trace
from tidegate.wire.config import load_cluster
from tidegate.wire.snapshot import decode_snapshot

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1000,1500"),
)
COLUMNS = 100
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screens"
SNAPSHOT = ROOT / "tests" / "golden" / "plans" / "research-mixed.snapshot.json"


def screens() -> dict[str, str]:
    """Name -> SVG."""
    seen, judged = _seen()
    jobs = seen.digest.reading.jobs if seen.digest else ()
    waits = next(job.job_id for job in jobs if _waits(job.job_id, judged))
    shown: dict[str, RenderableType] = {
        "status": screen(overview(seen, judged), is_wrapped=True),
        "why": Text(chain(answer(waits, seen, judged), COLUMNS)),
    }
    return {name: _svg(name, what) for name, what in shown.items()}


def _seen() -> tuple[Snapshot, Verdicts]:
    cluster = load_cluster(ROOT / "clusters" / "research.yaml").cluster
    snapshot = decode_snapshot(SNAPSHOT.read_text(), cluster, SNAPSHOT.name).snapshot
    return snapshot, verdicts_of(plan(snapshot), snapshot)


def _waits(job_id: str, judged: Verdicts) -> bool:
    verdict = judged.of(job_id)
    return verdict is not None and not verdict.is_served and bool(verdict.why_nots)


def report() -> str:
    """The page that `tidegate replay --report` writes of a made-up history."""
    history = read_trace(drawn(160))
    ended = [
        replay(history, cluster(), EXACT, policy, name="lab.yaml")
        for policy in ("tidegate", "parallelcluster")
    ]
    return as_html(ended, "history.csv")


def mark(page: str) -> bytes:
    """A PNG's text chunk that names the page (PNG specification, 11.3.4.3).

    Without its figures and curves: those move with every change of the planner.
    """
    bare = re.sub(r"[(+-]*\d[\d.,]*", "0", re.sub(r"(?s)<svg.*?</svg>", "<svg>", page))
    said = b"tEXtSource\0" + hashlib.sha256(bare.encode()).hexdigest().encode()
    return struct.pack(">I", len(said) - 4) + said + struct.pack(">I", zlib.crc32(said))


def photograph(page: str, picture: Path) -> None:
    """Needs Debian's package chromium. Errors: FileNotFoundError."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise FileNotFoundError("chromium draws report.png, and is not installed")
    with TemporaryDirectory() as folder:
        shown, taken = Path(folder) / "report.html", Path(folder) / "report.png"
        shown.write_text(page)
        words = [*FLAGS, f"--user-data-dir={folder}/profile", f"--screenshot={taken}"]
        asked = [chromium, *words, f"file://{shown}"]
        subprocess.run(asked, capture_output=True, timeout=120, check=True)
        data = taken.read_bytes()
    # Before IEND, whose chunk is 12 bytes long.
    picture.write_bytes(data[:-12] + mark(page) + data[-12:])


def _svg(name: str, what: RenderableType) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), markup=False, highlight=False)
    console.print(what)
    return console.export_svg(title=f"tidegate {name}", unique_id=name)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, svg in screens().items():
        (FOLDER / f"{name}.svg").write_text(svg)
    photograph(report(), FOLDER / "report.png")
