"""The report as one HTML file without links, scripts or fonts from elsewhere."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from tidegate.core.explain.drawn import COLOURS, STYLE, as_table, ticks
from tidegate.core.explain.figures import NO_WAITS, Figures, Waits
from tidegate.core.offers.allocation import Row, TimeUse
from tidegate.core.offers.spend import days_between

WIDTH, HEIGHT, LEFT, BOTTOM = 920, 260, 62, 26
SHOWN = 15  # of a table that has no end
WORDS = {
    TimeUse.JOB: "jobs",
    TimeUse.CUT_SHORT: "runs that were cut short",
    TimeUse.LOST: "work that was lost",
    TimeUse.UNUSED: "unused beside jobs",
    TimeUse.KEPT: "idle, kept on purpose",
    TimeUse.WAITING: "idle, waiting",
    TimeUse.DRAINED: "drained or sick",
    TimeUse.IDLE: "idle, unknown why",
    TimeUse.BOOT: "booting",
}
OWNERS = (("user", "Users"), ("account", "Accounts"), ("partition", "Partitions"))
MORE = """
.of { white-space: nowrap }
@media (max-width: 600px) {
    body { margin: 1em }
    h1 { font-size: 22px }
    svg text { font-size: 24px }
}
"""


def as_html(name: str, now: Figures, before: Figures) -> str:
    """`before`: the span that ended when this one began, of the same length or a month."""
    title = f"{escape(name)}: {_span(now)}"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}{MORE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>Beside it the time before, {_span(before)}. Nodes alone, in USD and UTC: head,"
        " disks and control plane are not in it, nor what is prepaid.</p>",
        as_table([*_summary(now, before)]),
        "<h2>USD by day</h2>",
        _legend(),
        _days(now),
    ]
    for by, heading in OWNERS:
        parts += [f"<h2>{heading}</h2>", as_table([*_owners(by, now, before)])]
    parts += ["<h2>Pools</h2>", as_table([*_pools(now)])]
    parts += ["<h2>The dearest jobs</h2>", as_table([*_jobs(now)])]
    parts += ["<h2>Waits by partition, in seconds</h2>", as_table([*_waits(now, before)])]
    return "\n".join([*parts, "</body></html>", ""])


def summary(now: Figures, before: Figures) -> str:
    """The page in a sentence: what it cost, who waited, and what changed."""
    waits, were = now.waits.get("", NO_WAITS), before.waits.get("", NO_WAITS)
    cost = f"{now.total_usd:,.2f} USD ({before.total_usd:,.2f} before)"
    used = f", {now.used:.0%} of it used by jobs" if now.used is not None else ""
    began = f"{waits.runs:,} runs began, after {waits.mean_s:,.0f} s on the mean"
    return f"{cost}{used}; {began} ({were.mean_s:,.0f} s before)"


def _summary(now: Figures, before: Figures) -> Iterator[Sequence[str]]:
    yield ["", "now", "before", "change"]
    yield _compared("USD", now.total_usd, before.total_usd)
    for use, words in WORDS.items():
        yield _compared(f"of it {words}", now.usd[use], before.usd[use])
    yield _compared("GPU-hours paid for", now.gpu_hours, before.gpu_hours)
    if now.seen_gpu_hours or before.seen_gpu_hours:
        yield _compared("of them seen in jobs", now.seen_gpu_hours, before.seen_gpu_hours)
        yield _compared("of them idle in jobs", now.idle_gpu_hours, before.idle_gpu_hours)
    lost = now.lost_gpu_hours, before.lost_gpu_hours
    if any(lost):
        yield _compared("of them lost with requeued runs", *lost)
    good = [f"{each.goodput:.0%}" if each.goodput is not None else "-" for each in (now, before)]
    yield ["GPU goodput, of those paid for", *good, ""]
    used = [f"{each.used:.0%}" if each.used is not None else "-" for each in (now, before)]
    yield ["used by jobs, of what was paid", *used, ""]
    here, there = now.waits.get("", NO_WAITS), before.waits.get("", NO_WAITS)
    yield _compared("runs that began", here.runs, there.runs, digits=0)
    yield _compared("mean wait, s", here.mean_s, there.mean_s, digits=0)
    yield _compared("95 of 100 waited at most, s", here.p95_s, there.p95_s, digits=0)


def _compared(name: str, now: float, before: float, digits: int = 2) -> Sequence[str]:
    change = f"{round((now - before) / before, 2):+.0%}" if before else ""
    return [name, f"{now:,.{digits}f}", f"{before:,.{digits}f}", change]


def _owners(by: str, now: Figures, before: Figures) -> Iterator[Sequence[str]]:
    """What nobody had is no row: the summary has it."""
    earlier = {row.name: row.total_usd for row in before.rows(by)}
    found = [row for row in now.rows(by) if row.name]
    yield [by, "USD", "of it cut short or lost", "GPU-hours", "of them idle", "USD before"]
    for row in found[:SHOWN]:
        was = earlier.get(row.name, 0.0)
        hours = [_one(row.gpu_hours), _idle(row)]
        yield [row.name, *map(_two, (row.total_usd, _cut(row))), *hours, _two(was)]
    yield from _others(found)


def _others(found: Sequence[Row]) -> Iterator[Sequence[str]]:
    rest = found[SHOWN:]
    if rest:
        usd, cut = sum(row.total_usd for row in rest), sum(_cut(row) for row in rest)
        hours = sum(row.gpu_hours for row in rest)
        seen = any(row.seen_gpu_hours for row in rest)
        idle = _one(sum(row.idle_gpu_hours for row in rest)) if seen else "-"
        yield [f"{len(rest)} others", _two(usd), _two(cut), _one(hours), idle, ""]


def _idle(row: Row) -> str:
    """What nobody has seen is not 0."""
    return _one(row.idle_gpu_hours) if row.seen_gpu_hours else "-"


def _cut(row: Row) -> float:
    return row.usd.get(TimeUse.CUT_SHORT, 0.0) + row.usd.get(TimeUse.LOST, 0.0)


def _pools(now: Figures) -> Iterator[Sequence[str]]:
    yield ["pool", "USD", *WORDS.values(), "GPU-hours"]
    for row in now.rows("pool"):
        uses = [_two(row.usd.get(use, 0.0)) for use in WORDS]
        yield [row.name, _two(row.total_usd), *uses, _one(row.gpu_hours)]


def _jobs(now: Figures) -> Iterator[Sequence[str]]:
    users = {f"{s.run.job_id} {s.run.name}".strip(): s.run.user for s in now.shares if s.run}
    yield ["job", "user", "USD", "GPU-hours", "of them idle"]
    for row in [row for row in now.rows("job") if row.name][:SHOWN]:
        hours = [_one(row.gpu_hours), _idle(row)]
        yield [row.name, users[row.name], _two(row.total_usd), *hours]


def _waits(now: Figures, before: Figures) -> Iterator[Sequence[str]]:
    yield ["partition", "runs", "mean", "median", "95 of 100 at most", "mean before"]
    for name, waits in now.waits.items():
        was: Waits | None = before.waits.get(name)
        shown = [f"{each:,.0f}" for each in (waits.mean_s, waits.median_s, waits.p95_s)]
        earlier = f"{was.mean_s:,.0f}" if was else "-"
        yield [name or "all", f"{waits.runs:,}", *shown, earlier]


def _days(now: Figures) -> str:
    """A bar for each day, of what its USD went to."""
    days = days_between(now.since_s, now.until_s - 1)
    usd = {row.name: row.usd for row in now.rows("day")}
    most = max((sum(each.values()) for each in usd.values()), default=0.0) or 1.0
    wide = (WIDTH - LEFT - 10) / len(days)
    drawn = [*_lines(most)]
    for number, day in enumerate(days):
        x, y = LEFT + number * wide, float(HEIGHT - BOTTOM)
        for use, colour in zip(WORDS, COLOURS, strict=False):
            much = usd.get(day, {}).get(use, 0.0)
            tall = _height(much, most)
            y -= tall
            told = f"<title>{day}, {WORDS[use]}: {much:,.2f} USD</title>"
            if much:
                drawn.append(
                    f'<rect x="{x + wide * 0.1:.1f}" y="{y:.1f}" width="{wide * 0.8:.1f}" '
                    f'height="{tall:.1f}" fill="{colour}">{told}</rect>'
                )
        if number % (len(days) // 10 + 1) == 0:
            at = f'x="{x + wide / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle"'
            drawn.append(f"<text {at}>{day[5:]}</text>")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>'


def _lines(most: float) -> Iterator[str]:
    for value in ticks(most, 5):
        y = HEIGHT - BOTTOM - _height(value, most)
        yield f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>'


def _height(usd: float, most: float) -> float:
    return (HEIGHT - BOTTOM - 12) * usd / most


def _legend() -> str:
    keys = (
        '<span class="of"><span class="key"'
        f' style="background:{colour}"></span>{escape(words)}</span> '
        for words, colour in zip(WORDS.values(), COLOURS, strict=False)
    )
    return f"<p>{''.join(keys)}</p>"


def _span(of: Figures) -> str:
    since, until = (
        datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")
        for at_s in (of.since_s, of.until_s)
    )
    return f"{since} to {until}"


def _two(value: float) -> str:
    return f"{value:,.2f}"


def _one(value: float) -> str:
    return f"{value:,.1f}"
