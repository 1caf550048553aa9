"""A replay as pictures: one HTML file without links, scripts or fonts from elsewhere."""

from collections.abc import Callable, Iterable, Sequence
from html import escape

from tidegate.core.explain.drawn import COLOURS, STYLE, as_table, ticks
from tidegate.sim.replay.outcome import HOUR_S, as_days, billed_s, cost_usd
from tidegate.sim.replay.run import Replayed
from tidegate.sim.replay.show import as_rows
from tidegate.sim.replay.state import EPOCH_S

WIDTH, HEIGHT, LEFT, BOTTOM = 920, 240, 62, 26
POINTS = 460

type Line = tuple[str, Sequence[tuple[float, float]]]


def as_html(ended: Sequence[Replayed], history: str) -> str:
    """The report of one or more replays of one history."""
    names = [f"{each.outcome.name} ({each.outcome.policy})" for each in ended]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>Replay of {escape(history)}</title><style>{STYLE}</style></head><body>",
        f"<h1>Replay of {escape(history)}</h1>",
        as_table(as_rows([each.outcome for each in ended])),
    ]
    for name, each in zip(names, ended, strict=True):
        parts += [f"<h2>Demand and capacity: {escape(name)}</h2>", _demand(each)]
    by_day = [(name, as_days(each.world)) for name, each in zip(names, ended, strict=True)]
    parts += ["<h2>Cost by day, USD</h2>", _bars(by_day)]
    waits = [(name, _waits(each)) for name, each in zip(names, ended, strict=True)]
    axis = "percent of jobs that waited at most so many seconds"
    parts += [f"<h2>Waits</h2><p>{axis}</p>", _lines(waits, lambda x: f"{x:.0f} s")]
    for name, each in zip(names, ended, strict=True):
        parts += [f"<h2>What each offering did: {escape(name)}</h2>", as_table(_offerings(each))]
    return "\n".join([*parts, "</body></html>", ""])


def _offerings(each: Replayed) -> list[list[str]]:
    """One row for each pool, instance type and market."""
    totals: dict[str, list[float]] = {}
    for machine in each.world.gone:
        of = machine.offering
        key = f"{machine.pool} {of.instance_type} {of.zone} {of.market.value}"
        row = totals.setdefault(key, [0.0] * 4)
        row[0] += 1
        row[1] += billed_s(machine) / HOUR_S
        row[2] += machine.gpu_busy_s / HOUR_S / max(machine.instance_type.whole_gpus, 1)
        row[3] += cost_usd(machine)
    head = ["", "nodes", "node-hours billed", "used, %", "USD"]
    return [head] + [
        [key, f"{n:,.0f}", f"{billed:,.1f}", f"{100 * used / billed:.1f}", f"{usd:,.2f}"]
        for key, (n, billed, used, usd) in sorted(totals.items())
    ]


def _demand(each: Replayed) -> str:
    """GPUs over time: what jobs have, what they ask for, and what is paid for."""
    world = each.world
    used = [(s.from_s, s.to_s, s.gpus) for s in world.segments]
    end_s = world.now_s
    asked = list(used)
    for run in world.runs:
        until_s = run.first_started_s if run.first_started_s >= 0 else end_s
        asked.append((run.ready_s, until_s, run.gpus))
    paid = [(m.launched_s, m.ended_s or end_s, m.instance_type.whole_gpus) for m in world.gone]
    lines = [
        ("GPUs paid for", _sampled(paid, end_s)),
        ("GPUs asked for by running and waiting jobs", _sampled(asked, end_s)),
        ("GPUs in use", _sampled(used, end_s)),
    ]
    return _lines(lines, lambda x: f"day {x:.0f}")


def _sampled(
    spans: Iterable[tuple[float, float, float]], end_s: float
) -> list[tuple[float, float]]:
    """Days and the mean number of what the spans count in each of equal steps."""
    step_s = max(end_s - EPOCH_S, 1.0) / POINTS
    changes = [0.0] * (POINTS + 2)
    whole = [0.0] * (POINTS + 2)
    for from_s, to_s, count in spans:
        first, last = (from_s - EPOCH_S) / step_s, min((to_s - EPOCH_S) / step_s, float(POINTS))
        low, high = min(int(first), POINTS), min(int(last), POINTS)
        if low == high:
            changes[low] += (last - first) * count
            continue
        changes[low] += (low + 1 - first) * count
        changes[high] += (last - high) * count
        whole[low + 1] += count
        whole[high] -= count
    points: list[tuple[float, float]] = []
    level = 0.0
    for number in range(POINTS):
        level += whole[number]
        points.append((number * step_s / 86400, level + changes[number]))
    return points


def _waits(each: Replayed) -> list[tuple[float, float]]:
    waits = sorted(run.wait_s for run in each.world.runs if run.first_started_s >= 0)
    if not waits:
        return [(0.0, 0.0)]
    step = max(len(waits) // POINTS, 1)
    points = [(waits[n], 100.0 * (n + 1) / len(waits)) for n in range(0, len(waits), step)]
    return [(0.0, 0.0), *points, (waits[-1], 100.0)]


def _lines(lines: Sequence[Line], label: Callable[[float], str]) -> str:
    most_x = max((x for _, points in lines for x, _ in points), default=0.0) or 1.0
    most_y = max((y for _, points in lines for _, y in points), default=0.0) or 1.0
    drawn = [_axes(most_x, most_y, label)]
    for (_, points), colour in zip(lines, _colours(len(lines)), strict=True):
        path = " ".join(f"{_x(x, most_x):.1f},{_y(y, most_y):.1f}" for x, y in points)
        drawn.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.4" points="{path}"/>'
        )
    return _legend([name for name, _ in lines]) + _svg(drawn)


def _bars(series: Sequence[tuple[str, Sequence[tuple[int, float]]]]) -> str:
    most_x = max((day + 1 for _, days in series for day, _ in days), default=1)
    most_y = max((usd for _, days in series for _, usd in days), default=0.0) or 1.0
    drawn = [_axes(float(most_x), most_y, lambda x: f"day {x:.0f}")]
    wide = (WIDTH - LEFT - 10) / most_x * 0.8 / len(series)
    for number, ((_, days), colour) in enumerate(zip(series, _colours(len(series)), strict=True)):
        for day, usd in days:
            x, y = _x(day + 0.1, float(most_x)) + number * wide, _y(usd, most_y)
            tall = HEIGHT - BOTTOM - y
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
                f'fill="{colour}"><title>day {day}: {usd:,.2f} USD</title></rect>'
            )
    return _legend([name for name, _ in series]) + _svg(drawn)


def _axes(most_x: float, most_y: float, label: Callable[[float], str]) -> str:
    parts: list[str] = []
    for value in ticks(most_y, 5):
        y = _y(value, most_y)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for value in ticks(most_x, 10):
        x, y = _x(value, most_x), HEIGHT - 8
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{label(value)}</text>')
    return "".join(parts)


def _x(value: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - 30) * value / most


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 12) * value / most


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _legend(names: Sequence[str]) -> str:
    keys = (
        f'<span class="key" style="background:{colour}"></span>{escape(name)}'
        for name, colour in zip(names, _colours(len(names)), strict=True)
    )
    return f"<p>{''.join(keys)}</p>"


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
