"""Outcomes as a table for people and as JSON for programs; the same figures in both."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from tidegate.sim.replay.outcome import Outcome

type Row = tuple[str, Callable[[Outcome], float], str]

ROWS: tuple[Row, ...] = (
    ("cost, USD", lambda o: o.cost_usd, ",.2f"),
    ("lower bound, USD", lambda o: o.bound_usd, ",.2f"),
    ("cost / bound", lambda o: o.multiple, ".3f"),
    ("GPU-hours billed", lambda o: o.gpu_hours_billed, ",.0f"),
    ("GPU-hours used", lambda o: o.gpu_hours_used, ",.0f"),
    ("GPU-hours lost", lambda o: o.gpu_hours_lost, ",.0f"),
    ("not used, %", lambda o: 100 * o.idle_share, ".1f"),
    ("wait p50, s", lambda o: o.waits.p50_s, ",.0f"),
    ("wait p95, s", lambda o: o.waits.p95_s, ",.0f"),
    ("wait p99, s", lambda o: o.waits.p99_s, ",.0f"),
    ("longest wait, s", lambda o: o.waits.max_s, ",.0f"),
    ("nodes launched", lambda o: o.launches, ",.0f"),
    ("most nodes", lambda o: o.most_nodes, ",.0f"),
    ("most USD per hour", lambda o: o.most_usd_per_hour, ",.2f"),
    ("interruptions", lambda o: o.interruptions, ",.0f"),
    ("over limit or budget", lambda o: o.breaches, ",.0f"),
    ("jobs ended", lambda o: o.jobs_ended, ",.0f"),
    ("jobs that never ran", lambda o: o.jobs - o.jobs_ended, ",.0f"),
)


def as_rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Heading and one row for each figure; from the second on with the difference in percent."""
    first = outcomes[0]
    rows = [["", *(f"{o.name} ({o.policy})" for o in outcomes)]]
    for label, value, form in ROWS:
        cells = [format(value(first), form)]
        for each in outcomes[1:]:
            cells.append(format(value(each), form) + _difference(value(first), value(each)))
        rows.append([label, *cells])
    for key in sorted({key for o in outcomes for key, _ in o.by_pool}):
        cells = [format(dict(o.by_pool).get(key, 0.0), ",.2f") for o in outcomes]
        rows.append([f"USD, {key}", *cells])
    for label in dict.fromkeys(label for o in outcomes for label, _ in o.waits_by_size):
        found = [dict(o.waits_by_size)[label] for o in outcomes]
        cells = [f"{w.p50_s:,.0f} / {w.p95_s:,.0f} / {w.p99_s:,.0f}" for w in found]
        rows.append([f"waits of {label}, s (p50 / p95 / p99)", *cells])
    return rows


def _difference(first: float, other: float) -> str:
    return f" ({100 * (other / first - 1):+.1f} %)" if first else ""


def as_text(outcomes: Sequence[Outcome]) -> str:
    """The table, and under it why jobs never ran."""
    lines = columns(as_rows(outcomes))
    for each in outcomes:
        lines += [
            f"{each.name}: {count} job{'s' * (count != 1)} never ran: {why}"
            for why, count in each.unmet
        ]
    return "\n".join(lines)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line for each row, the first column to the left and the others to the right."""
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(row[1:], wide[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]


def as_json(outcomes: Sequence[Outcome]) -> str:
    """A list of objects; dollars and seconds to a thousandth."""
    return json.dumps([_rounded(_object(each)) for each in outcomes], indent=1) + "\n"


def _object(each: Outcome) -> dict[str, object]:
    found = asdict(each)
    for name in ("by_pool", "waits_by_size", "unmet"):
        found[name] = dict(found[name])
    return {**found, "multiple_of_bound": each.multiple}


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value
