"""What many commands take: which cluster, and how to show what was found."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tidegate.wire.config import ClusterFile

# Where cluster files are, from where a person works.
CLUSTERS = Path("clusters")
VARIABLE = "TIDEGATE_CLUSTER"
# Of cluster files that are told, those that fit a line.
NAMED_MAX = 5
UNNAMED = Path("-")


class Output(StrEnum):
    """How an answer is shown: for people, or as data."""

    TEXT = "text"
    WIDE = "wide"  # for people, nothing shortened and no line broken
    JSON = "json"
    YAML = "yaml"

    @property
    def is_data(self) -> bool:
        return self in (Output.JSON, Output.YAML)

    @property
    def is_wide(self) -> bool:
        return self is Output.WIDE


def only_cluster() -> Path:
    """The cluster file where none is named; `UNNAMED` where there is not just one."""
    found = list(CLUSTERS.glob("*.yaml"))
    return found[0] if len(found) == 1 else UNNAMED


def named[Chosen: (Path, list[Path])](
    context: typer.Context, parameter: typer.CallbackParam, chosen: Chosen
) -> Chosen:
    """What was chosen. Errors: a usage error, which says how to name a cluster."""
    if chosen in (UNNAMED, [UNNAMED]) and not context.resilient_parsing:
        found = sorted(each.name for each in CLUSTERS.glob("*.yaml"))
        more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
        said = f"{CLUSTERS}/ holds {', '.join(found[:NAMED_MAX]) or 'none'}{more}"
        is_argument = parameter.param_type_name == "argument"
        how = f"name it, like {CLUSTERS}/*.yaml" if is_argument else "say --cluster FILE"
        raise typer.BadParameter(f"which cluster? {said}: {how}, or set {VARIABLE}")
    return chosen


def require_pool(file: "ClusterFile", pool: str) -> None:
    """Errors: a usage error, for one that the cluster file does not have."""
    from tidegate.wire.problems import did_you_mean, shown

    known = [each.name for each in file.cluster.pools]
    if pool not in known:
        said = f"the cluster file has no pool {shown(pool)}{did_you_mean(pool, known)}"
        raise typer.BadParameter(said)


def _cluster_option(
    default: Callable[[], Path | list[Path]], says: str, *, is_needed: bool = True
) -> Any:
    return typer.Option(
        "--cluster",
        "-c",
        metavar="FILE",
        envvar=VARIABLE,
        default_factory=default,
        callback=named if is_needed else None,
        show_default=f"the only one in {CLUSTERS}/",
        help=says,
    )


ClusterOption = Annotated[Path, _cluster_option(only_cluster, "The cluster file.")]
IfAnyClusterOption = Annotated[
    Path, _cluster_option(only_cluster, "The cluster file, if any.", is_needed=False)
]
ClustersOption = Annotated[
    list[Path],
    _cluster_option(lambda: [only_cluster()], "A cluster file; several are compared."),
]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="wide: nothing shortened; or data for programs.")
]
