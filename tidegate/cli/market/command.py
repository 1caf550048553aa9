"""`tidegate market`: what the same history would have cost in other regions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from tidegate.cli.market.play import Journey
    from tidegate.cli.market.told import RegionClients, Told
    from tidegate.core.model.region_market import RegionMarket
    from tidegate.wire.config import ClusterFile

EXAMPLES = (
    "Examples: tidegate market jobs.txt --regions us-west-2,eu-west-1 --data-gb 500; ..."
    " --market prices -o json"
)

# What no figure says.
NOTES = (
    "a cluster is in one region: a second one is another cluster, with a head and files of its own"
    " (docs/second-region.md)",
    "files on EFS and FSx stay where they are: what is read across regions is in no figure",
    "whether EC2 has the instances there when they are asked for, no price says",
    "prices read from AWS are those of now; files of --market may hold those of the history's days",
)


def market(
    context: typer.Context,
    history: Annotated[
        Path, typer.Argument(metavar="TRACE", help="`sacct -P` export or CSV, also gzipped.")
    ],
    cluster: ClusterOption,
    regions: Annotated[
        str, typer.Option(metavar="LIST", help="Other regions, with commas between them.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--market", metavar="DIR", help="A folder of files for each; else AWS is asked."
        ),
    ] = None,
    data_gb: Annotated[
        float, typer.Option(min=0, max=1e9, help="GB that would be moved there once.")
    ] = 0.0,
    sigma: Annotated[
        float, typer.Option(min=0, max=3, help="Error of time limits that the history lacks.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a job history would have cost in other regions.

    The planner of the functions plays it, as in `tidegate replay`. Exit codes: 0 an answer, 1
    trouble, also where the history could be played in no region.
    """
    from tidegate.cli.live import told as saying
    from tidegate.core.model.errors import BadConfig
    from tidegate.sim.replay.market import BadMarket
    from tidegate.sim.replay.trace import BadTrace
    from tidegate.wire.config import load_cluster

    with saying():
        try:
            file = load_cluster(cluster)
            names = _names(regions, file.region)
            journey = _journey(file, cluster, history, data_gb, sigma, seed)
            known = _known(file, names, folder, cast("RegionClients | None", context.obj), data_gb)
            found = _market(journey, known, history.name)
        except (BadTrace, BadMarket) as error:
            raise BadConfig(str(error)) from error
    _show(found, output)
    if all(each.played is None for each in found.regions):
        raise typer.Exit(1)


def _names(regions: str, own: str) -> list[str]:
    """The cluster's own first. Errors: a usage error."""
    from tidegate.adapters.regions import region_name

    asked = [each.strip() for each in regions.split(",") if each.strip()]
    if not asked:
        raise typer.BadParameter("names no region", param_hint="--regions")
    if strange := [each for each in asked if region_name(each) == each]:
        said = f"AWS has no region {', '.join(strange)}; one is called like us-west-2"
        raise typer.BadParameter(said, param_hint="--regions")
    return list(dict.fromkeys((own, *asked)))


def _journey(
    file: "ClusterFile", path: Path, history: Path, data_gb: float, sigma: float, seed: int
) -> "Journey":
    import json

    from tidegate.cli.market.play import Journey, beside_of, without_own_prices
    from tidegate.cli.replay import read_history
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import parse_deployed
    from tidegate.wire.yaml_file import read_yaml

    data, _ = read_yaml(path)
    try:
        estimated = parse_deployed(json.dumps(without_own_prices(data)), str(path)).cluster
    except BadConfig:  # a type that AWS's list of us-east-1 does not have
        estimated = file.cluster
    trace, beside = read_history(history), beside_of(estimated)
    return Journey(file.cluster, file.region, trace, data_gb, sigma, seed, beside)


def _known(
    file: "ClusterFile",
    names: list[str],
    folder: Path | None,
    given: "RegionClients | None",
    data_gb: float,
) -> "list[Told]":
    """Each region's market, in order."""
    from tidegate.adapters.clients import HOMES, client
    from tidegate.cli.market.told import from_aws, from_files, open_regions

    types = sorted({one.name for pool in file.cluster.pools for one in pool.instance_types})
    if folder:
        return [from_files(folder, each, file.region, types) for each in names]
    clients = given or (lambda service, region: client(service, HOMES.get(service, region)))
    closed = open_regions(clients, file.region, names)
    return [
        closed.get(each) or from_aws(clients, each, file.region, types, asks_transfer=data_gb > 0)
        for each in names
    ]


def _market(journey: "Journey", known: "list[Told]", history: str) -> "RegionMarket":
    import sys

    from tidegate.cli.progress import progress
    from tidegate.core.model.region_market import RegionMarket

    costs = []
    with progress("regions", sys.stderr) as tell:
        for number, each in enumerate(known):
            costs.append(journey.to(each))
            tell(number + 1, len(known))
    return RegionMarket(journey.cluster.name, history, journey.data_gb, tuple(costs), NOTES)


def _show(found: "RegionMarket", output: Output) -> None:
    from tidegate.cli.shown import encoded, filled
    from tidegate.core.explain.regions import region_lines

    if output.is_data:
        typer.echo(encoded(found, output))
        return
    for line in region_lines(found):
        typer.echo(filled(line, indent=len(line) - len(line.lstrip()) + 2, output=output))
