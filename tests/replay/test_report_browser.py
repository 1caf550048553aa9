"""The HTML report in a real browser: it draws all that it says, and asks nobody for anything."""

import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.replay.test_replay import EXACT, cluster, trace
from tidegate.sim.replay.draw import as_html
from tidegate.sim.replay.run import replay

WIDTH, HEIGHT = 1000, 2400

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    f"--window-size={WIDTH},{HEIGHT}",
    "--force-device-scale-factor=0.4",  # the test decodes each pixel
)

# Where Chromium itself asks for the time and for its own updates, whatever page it shows.
ITS_MAKERS = ("google.com", "googleapis.com", "gstatic.com")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ended = [
        replay(trace("0 3600 1 1", "90000 600 8 1"), cluster(), EXACT, policy)
        for policy in ("tidegate", "parallelcluster")
    ]
    found = tmp_path_factory.mktemp("report") / "report.html"
    found.write_text(as_html(ended, "jobs.csv"))
    return found


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Debian's package chromium is not installed (scripts/setup.sh adds it)")
    words = [
        chromium,
        *FLAGS,
        f"--user-data-dir={page.parent / 'profile'}",
        *options,
        f"file://{page}",
    ]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)


def test_the_browser_shows_all_charts_without_a_complaint_or_a_request(page: Path) -> None:
    log = page.parent / "net.json"
    shown = browse(page, f"--log-net-log={log}", "--dump-dom")

    assert shown.stdout.count("<svg") == 4, "demand of each policy, cost by day, waits"
    assert shown.stdout.count("<polyline") == 3 + 3 + 2
    assert shown.stdout.count("<rect") >= 2
    assert "CONSOLE" not in shown.stderr
    asked = {
        urlsplit(url).hostname or "" for url in re.findall(r'"url":"(http[^"]*)', log.read_text())
    }
    assert not [host for host in asked if not host.endswith(ITS_MAKERS)]


def test_the_screenshot_holds_the_colours_of_the_charts(page: Path) -> None:
    picture = page.parent / "report.png"
    browse(page, f"--screenshot={picture}")

    width, height, colours = pixels(picture)
    for colour in ("1f6f8b", "d1603d"):  # the bars; lines are thinner than a pixel here
        assert colours.get(colour, 0) > 100, f"nothing is drawn in #{colour}"
    assert colours["ffffff"] > width * height / 4


def pixels(picture: Path) -> tuple[int, int, dict[str, int]]:
    """Width, height and how often each colour stands in an 8-bit PNG (RFC 2083, filters 0 to 4)."""
    data, position, packed = picture.read_bytes(), 8, b""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) in ((8, 2), (8, 6))
    while position < len(data):
        size, name = struct.unpack(">I4s", data[position : position + 8])
        packed += data[position + 8 : position + 8 + size] if name == b"IDAT" else b""
        position += size + 12
    each = 3 if kind == 2 else 4
    raw, before = zlib.decompress(packed), bytearray(width * each)
    counts: dict[str, int] = {}
    for start in range(0, len(raw), width * each + 1):
        line = bytearray(raw[start + 1 : start + 1 + width * each])
        _unfilter(raw[start], line, before, each)
        for at in range(0, len(line), each):
            colour = line[at : at + 3].hex()
            counts[colour] = counts.get(colour, 0) + 1
        before = line
    return width, height, counts


def _unfilter(kind: int, line: bytearray, above: bytearray, each: int) -> None:
    for at in range(len(line)):
        left = line[at - each] if at >= each else 0
        corner = above[at - each] if at >= each else 0
        guess = left + above[at] - corner
        nearest = min((left, above[at], corner), key=lambda value: abs(guess - value))
        added = (0, left, above[at], (left + above[at]) // 2, nearest)[kind]
        line[at] = (line[at] + added) & 255
