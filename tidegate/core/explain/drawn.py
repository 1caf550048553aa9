"""What pages for people are made of: tables, colours and scales, without scripts and links."""

from collections.abc import Sequence
from html import escape
from math import ceil

COLOURS = (
    *("#1f6f8b", "#d1603d", "#5b8c5a", "#7d5ba6", "#b08900", "#444444", "#8fb8c9", "#c98fae"),
    "#b5485d",
)

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 960px; color: #222 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
td, th { padding: 3px 10px; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
.wide { overflow-x: auto }
svg { width: 100%; height: auto; background: #fafafa }
svg text { font: 11px system-ui, sans-serif; fill: #555 }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 5px 0 14px }
h2 { margin-top: 1.8em }
"""


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """A heading and rows."""
    head, *others = [
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th"] + ["td"] * (len(rows) - 1), rows, strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in others)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def ticks(most: float, about: int, least: float = 0.0) -> list[float]:
    """Round whole numbers from `least` on, at most `about` steps; a single one for nothing."""
    step = next(
        step
        for exponent in range(12)
        for step in (10**exponent, 2 * 10**exponent, 5 * 10**exponent)
        if (most - least) / step <= about
    )
    return [float(n * step) for n in range(ceil(least / step), int(most // step) + 1)]
