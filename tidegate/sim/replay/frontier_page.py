"""The frontier as a picture: cost against wait, a point for each replay."""

from collections.abc import Sequence
from html import escape

from tidegate.sim.replay.draw import COLOURS, STYLE, as_table
from tidegate.sim.replay.frontier import Point, as_rows

WIDTH, HEIGHT, LEFT, BOTTOM = 920, 420, 80, 44
STEPS = 5


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
    waits = [each.outcome.waits.mean_s for each in points]
    costs = [each.outcome.cost_usd for each in points]
    most_s, low, high = max(*waits, 1.0), min(costs), max(costs)
    margin = max((high - low) * 0.1, high * 0.005, 0.01)
    low, high = max(low - margin, 0.0), high + margin

    def place(each: Point) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 150) * each.outcome.waits.mean_s / most_s
        share = (each.outcome.cost_usd - low) / (high - low)
        return x, HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 16) * share

    ours = [each for each in points if each.outcome.policy == "tidegate"]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, ours))
    drawn = [
        *_axes(most_s, low, high),
        f'<polyline fill="none" stroke="{COLOURS[0]}" points="{line}"/>',
        *(_dot(each, *place(each)) for each in points),
    ]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>'


def _dot(each: Point, x: float, y: float) -> str:
    of = each.outcome
    colour = COLOURS[0] if of.policy == "tidegate" else COLOURS[1]
    told = f"{of.name}: {of.cost_usd:,.0f} USD, {of.waits.mean_s:,.0f} s"
    size = 7 if each.is_own else 4.5
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}">'
        f"<title>{escape(told)}</title></circle>"
        f'<text x="{x + 10:.1f}" y="{y + 4:.1f}">{escape(of.name)}</text>'
    )


def _axes(most_s: float, low: float, high: float) -> list[str]:
    parts: list[str] = []
    for number in range(STEPS + 1):
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 16) * number / STEPS
        usd = low + (high - low) * number / STEPS
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{usd:,.0f}</text>'
        )
        x, seconds = LEFT + (WIDTH - LEFT - 150) * number / STEPS, most_s * number / STEPS
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - 24}" text-anchor="middle">{seconds:,.0f}</text>'
        )
    middle = LEFT + (WIDTH - LEFT - 150) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">mean wait, s</text>')
    parts.append(f'<text x="{LEFT}" y="11">USD</text>')
    return parts
