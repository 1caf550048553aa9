"""The frontier as a picture: cost against wait, a point for each replay."""

from collections.abc import Sequence
from html import escape

from tidegate.core.explain.drawn import COLOURS, STYLE, as_table, ticks
from tidegate.sim.replay.frontier import Point, as_rows

WIDTH, HEIGHT, LEFT, BOTTOM = 920, 420, 80, 44
STEPS = 6
# Room for a name beside its point, and the least distance of two names one above the other.
NAMES, LINE = 150, 13


def as_html(points: Sequence[Point], history: str) -> str:
    """One file without links, scripts or fonts from elsewhere."""
    title = f"What waiting costs: {escape(history)}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            "<p>Each point is the whole history once: to the left jobs wait less, lower down it"
            " costs less. The line joins the prices of waiting, in USD per job-hour.</p>",
            _picture(points),
            as_table(as_rows(points)),
            "</body></html>",
            "",
        ]
    )


def _picture(points: Sequence[Point]) -> str:
    most_s = max(*(each.outcome.waits.mean_s for each in points), 1.0)
    costs = [each.outcome.cost_usd for each in points]
    margin = max((max(costs) - min(costs)) * 0.1, max(costs) * 0.005, 0.01)
    low, high = max(min(costs) - margin, 0.0), max(costs) + margin

    def place(each: Point) -> tuple[float, float]:
        return _x(each.outcome.waits.mean_s, most_s), _y(each.outcome.cost_usd, low, high)

    ours = [each for each in points if each.outcome.policy == "tidegate"]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, ours))
    drawn = [
        *_axes(most_s, low, high),
        f'<polyline fill="none" stroke="{COLOURS[0]}" points="{line}"/>',
        *_dots([(each, *place(each)) for each in points]),
    ]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>'


def _x(mean_s: float, most_s: float) -> float:
    return LEFT + (WIDTH - LEFT - NAMES) * mean_s / most_s


def _y(usd: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 16) * (usd - low) / (high - low)


def _dots(placed: Sequence[tuple[Point, float, float]]) -> list[str]:
    """The points, each with its name beside it; names that would overlap are moved down."""
    drawn: list[str] = []
    names: list[tuple[float, float]] = []
    for each, x, y in sorted(placed, key=lambda one: one[2]):
        name_y = y + 4
        while any(abs(x - ax) < NAMES and abs(name_y - ay) < LINE for ax, ay in names):
            name_y += 1
        names.append((x, name_y))
        drawn.append(_dot(each, x, y, name_y))
    return drawn


def _dot(each: Point, x: float, y: float, name_y: float) -> str:
    of = each.outcome
    colour = COLOURS[0] if of.policy == "tidegate" else COLOURS[1]
    told = f"{of.name}: {of.cost_usd:,.0f} USD, {of.waits.mean_s:,.0f} s"
    size = 7 if each.is_own else 4.5
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}">'
        f"<title>{escape(told)}</title></circle>"
        f'<text x="{x + 10:.1f}" y="{name_y:.1f}">{escape(of.name)}</text>'
    )


def _axes(most_s: float, low: float, high: float) -> list[str]:
    parts: list[str] = []
    for usd in ticks(high, STEPS, low):
        y = _y(usd, low, high)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{usd:,.0f}</text>'
        )
    for seconds in ticks(most_s, STEPS):
        x, y = _x(seconds, most_s), HEIGHT - 24
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{seconds:,.0f}</text>')
    middle = LEFT + (WIDTH - LEFT - NAMES) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">mean wait, s</text>')
    parts.append(f'<text x="{LEFT}" y="11">USD</text>')
    return parts
