"""`tidegate findings`: what a node may be found to have, and what follows; also a site's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import UNNAMED, IfAnyClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidegate.wire.health_findings import FindingRow

EXAMPLES = "Examples: tidegate findings; tidegate findings xid 48; tidegate findings nvlink"


SITE = "the cluster file"


@dataclass(frozen=True)
class ShownFinding:
    """A row of the table. `says`: who has the action follow, Tidegate or the cluster file."""

    finding: str
    words: str
    action: str
    severity: str
    retest: str
    asked: str
    says: str


def findings(
    cluster: IfAnyClusterOption,
    name: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="A finding, a source or a word.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page of the docs.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a node may be found to have, and what follows."""
    from tidegate.cli.shown import encoded, fit, show, table
    from tidegate.wire.health_findings import table as all_rows

    if markdown:
        typer.echo(page(all_rows()), nl=False)
        return
    asked = " ".join(name or ()).lower()
    own = _own_actions(cluster)
    found = [each for each in _shown(all_rows(), own) if _is_meant(each, asked)]
    if not found:
        raise typer.BadParameter(f"nothing that a node finds is called {asked}: tidegate findings")
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    made = table("finding", "what it is", "action", "severity", "retest", "says")
    for each in found:
        cells = each.finding, each.words, each.action, each.severity, each.retest, each.says
        made.add_row(*cells)
    show(fit(made), output)


def _own_actions(cluster: Path) -> "Mapping[str, str]":
    if cluster == UNNAMED:
        return {}
    from tidegate.cli.live import told
    from tidegate.wire.config import load_cluster

    with told():
        own = load_cluster(cluster).slurm.health_actions
    return {key: action.value for key, action in own.items()}


def _shown(rows: "Iterable[FindingRow]", own: "Mapping[str, str]") -> "Iterator[ShownFinding]":
    listed = set()
    for row in rows:
        listed.add(row.key)
        said, severity, retest = own.get(row.key), row.severity, row.retest
        action = said or row.action
        if said:
            severity, retest = _own_severity(action, severity), "none"
        cells = row.key, row.words, action, severity, retest, row.asked
        yield ShownFinding(*cells, SITE if said else "Tidegate")
    for key in sorted(own.keys() - listed):
        severity = _own_severity(own[key], "")
        yield ShownFinding(key, "not in the table", own[key], severity, "none", "log", SITE)


def _own_severity(action: str, severity: str) -> str:
    """As nodes take it (findings.sh)."""
    if action in ("ignore", "tell"):
        return severity or "warning"
    return severity if severity == "fatal" else "degraded"


def _is_meant(each: ShownFinding, asked: str) -> bool:
    """By its whole name, its source, or a word of what it is."""
    name = each.finding.lower()
    return asked in ("", name, name.split()[0]) or (
        not asked.startswith(("xid ", "sxid ")) and asked in each.words.lower()
    )


def page(rows: "Iterable[FindingRow]") -> str:
    """The table for people, as it stands in docs."""
    lines = [
        "# What a node may be found to have",
        "",
        "Made by `tidegate findings --markdown`: change `tidegate/data/findings.txt`, which names"
        " the sources, not this page.",
        "What the columns mean, and what is done with a sick node, is in `sick-nodes.md`.",
        "",
        "| finding | what it is | action | severity | retest | asked |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        words = row.words.replace("|", "\\|")
        words = f"`{words}`" if row.source in ("store", "root", "efa", "any") else words
        cells = row.key, words, row.action, row.severity, row.retest, row.asked
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
