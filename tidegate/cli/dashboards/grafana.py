"""Grafana's dashboard JSON. Source: Grafana's documentation, "Dashboard JSON model".

Data source and cluster are variables, so that one file serves every Grafana.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from tidegate.core.model.frozen import frozen

# Of Grafana 10; newer ones take it and bring it up to date themselves.
SCHEMA_VERSION = 39
COLUMNS = 24
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# A metric that every cluster has once.
KNOWN_BY = "tidegate_agent_written_timestamp_seconds"

# Every query names the cluster, since one Prometheus may watch several.
OF = 'cluster="$cluster"'


class Unit(StrEnum):
    """Grafana's words."""

    COUNT = "short"
    SECONDS = "s"
    RATIO = "percentunit"
    PERCENT = "percent"
    USD = "currencyUSD"
    BYTES_PER_SECOND = "Bps"
    WATT = "watt"
    CELSIUS = "celsius"
    PER_SECOND = "ops"


@frozen
class Query:
    """`legend`: names of labels in {{ }}, "" for the query's own words."""

    expr: str
    legend: str = ""


@frozen
class Panel:
    """`says`: what it shows and what to make of it. `empty`: what stands where there is nothing.

    `width`, `height`: in Grafana's units, of which a row has 24.
    """

    title: str
    says: str
    queries: Sequence[Query]
    unit: Unit = Unit.COUNT
    kind: str = "timeseries"
    is_stacked: bool = False
    empty: str = "none"
    width: int = 12
    height: int = 8


@frozen
class Board:
    """A dashboard: one question, and the panels that answer it."""

    name: str
    question: str
    panels: Sequence[Panel]


def number(title: str, says: str, expr: str, unit: Unit = Unit.COUNT, empty: str = "0") -> Panel:
    """One number."""
    return Panel(title, says, (Query(expr),), unit, "stat", empty=empty, width=4, height=4)


def by(expr: str, label: str) -> tuple[Query]:
    """The sum of a metric, a line for each value of a label."""
    return (Query(f"sum by ({label}) ({expr})", f"{{{{{label}}}}}"),)


def as_json(board: Board) -> dict[str, Any]:
    return {
        "uid": f"tidegate-{board.name}",
        "title": f"Tidegate: {board.question}",
        "tags": ["tidegate"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables()},
        "links": [
            {"type": "dashboards", "tags": ["tidegate"], "title": "Tidegate", "asDropdown": True}
        ],
        "panels": list(_panels(board.panels)),
    }


def _variables() -> list[dict[str, Any]]:
    of_cluster = f"label_values({KNOWN_BY}, cluster)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "datasource": DATA_SOURCE,
            "definition": of_cluster,
            "query": {"query": of_cluster, "refId": "cluster"},
            "refresh": 2,
            "sort": 1,
        },
    ]


def _panels(panels: Iterable[Panel]) -> Iterator[dict[str, Any]]:
    """From left to right; what does not fit into a row begins the next."""
    x = y = row_height = 0
    for id_, panel in enumerate(panels, start=1):
        if x + panel.width > COLUMNS:
            x, y, row_height = 0, y + row_height, 0
        place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
        x, row_height = x + panel.width, max(row_height, panel.height)
        yield {
            "id": id_,
            "type": panel.kind,
            "title": panel.title,
            "description": panel.says,
            "gridPos": place,
            "datasource": DATA_SOURCE,
            "targets": list(_targets(panel)),
            "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    for ref_id, query in zip("ABCDEFGH", panel.queries, strict=False):
        yield {
            "refId": ref_id,
            "datasource": DATA_SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            "instant": panel.kind != "timeseries",
        }


def _defaults(panel: Panel) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": panel.unit.value, "min": 0, "noValue": panel.empty}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.is_stacked else "none", "group": "A"}
        found["custom"] = {"stacking": stacking, "fillOpacity": 30 if panel.is_stacked else 0}
    return found
