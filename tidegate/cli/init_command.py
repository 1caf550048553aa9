"""`tidegate init`: a commented cluster file from a few answers."""

import re
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.written import new_file

DEV = "dev"

TEMPLATE = """\
# A cluster of Tidegate. All names, defaults and bounds: tidegate schema cluster
# Check it: tidegate validate {path}

name: {name}
region: {region}

# Never exceeded, whatever is queued.
limits: {{nodes: {nodes}, usd_per_hour: {usd_per_hour:g}}}
{schedules}
# Who hears of alarms; without it nobody does.
{alarm}

# Without this section the stack makes a network of its own, with public subnets that let nobody in.
# network: {{nat: one}}                        # private subnets behind a NAT gateway
# network: {{vpc: vpc-..., subnets: {{...}}}}    # yours

partitions:
  gpu: {{pools: [main], default: true}}

pools:
  main:
    instance_types: [{types}]
    zones: [{zones}]
    capacity_types: [{markets}] # tried in this order
    idle_s: 120 # a node without a job goes after this
{prices}"""

SCHEDULES = """
# Off at night: nodes go when their jobs have ended, then the head; what is queued waits.
schedules: {{time_zone: {time_zone}, stop: "0 20 * * MON-FRI", start: "0 8 * * MON-FRI"}}
"""


def _prices(region: str, types: list[str]) -> str:
    """AWS's list prices are known of one region; in others the file must have its own."""
    from tidegate.wire.catalogue import LIST_PRICE_REGION, load_list_prices

    if region == LIST_PRICE_REGION:
        return "\n# prices_usd_per_hour: on-demand list prices hold; spot counts as much.\n"
    known = [(each, load_list_prices().get(each)) for each in types]
    lines = [f"  {name}: {{on-demand: {usd:g}, spot: {usd:g}}}" for name, usd in known if usd]
    head = (
        f"\n# List prices of {LIST_PRICE_REGION}: put in those of {region}.\nprices_usd_per_hour:\n"
    )
    return head + "\n".join(lines) + "\n" if lines else ""


EXAMPLES = "Examples: tidegate init new.yaml; tidegate init new.yaml --types g5.xlarge --zones ab"


def _not_there(path: Path) -> Path:
    """Looked at before anything is asked."""
    if path.exists():
        typer.echo(f"{path} is there already", err=True)
        raise typer.Exit(1)
    new_file(path)
    return path


def _named(context: typer.Context, name: str | None) -> str:
    """Asked before the others; a cluster is named after its file."""
    if name is not None or context.resilient_parsing:
        return name or DEV
    return str(typer.prompt("Name of the cluster", default=name_after(context.params["path"])))


def name_after(path: Path) -> str:
    """`clusters/GPU lab.yaml` -> `gpu-lab`; dev when nothing of it can be a cluster's name."""
    plain = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).lstrip("-0123456789")
    return plain[:31].rstrip("-").removesuffix("-data") or DEV


def init(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", callback=_not_there, help="Where to write it.")
    ],
    name: Annotated[
        str | None, typer.Option(callback=_named, show_default="asked: the file's name")
    ] = None,
    region: Annotated[str, typer.Option(prompt="AWS region")] = "us-east-1",
    zones: Annotated[
        str, typer.Option(prompt="Availability zones: the region's letters", help="like ab")
    ] = "ab",
    types: Annotated[str, typer.Option(prompt="Instance types, by commas")] = "g5.xlarge",
    spot: Annotated[bool, typer.Option(prompt="Try spot first")] = True,
    nodes: Annotated[int, typer.Option(prompt="Nodes at the same time, at most", min=1)] = 8,
    usd_per_hour: Annotated[float, typer.Option(prompt="USD per hour, at most")] = 20.0,
    night_off: Annotated[
        str, typer.Option(prompt="Time zone for nights off (empty: always up)", help="IANA name")
    ] = "",
    alarm_email: Annotated[str, typer.Option(prompt="Who hears of alarms (empty: nobody)")] = "",
) -> None:
    """Ask a few questions (or take options) and write a commented cluster file.

    Exit code 1 when the file is there already, or when the answers make no good one; they are
    kept in the file.
    """
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import parse_cluster

    names = [each.strip() for each in types.split(",")]
    text = TEMPLATE.format(
        path=path,
        name=name,
        region=region,
        nodes=nodes,
        usd_per_hour=usd_per_hour,
        schedules=SCHEDULES.format(time_zone=night_off) if night_off else "",
        alarm=f"alarm_email: {alarm_email}" if alarm_email else "# alarm_email: ops@example.org",
        types=", ".join(names),
        zones=", ".join(f"{region}{letter}" for letter in zones),
        prices=_prices(region, names),
        markets="spot, on-demand" if spot else "on-demand",
    )
    try:
        parse_cluster(text, str(path))
    except BadConfig as bad:
        path.write_text(text)
        kept = f"{path} is written with your answers, but is no good cluster file yet: correct"
        typer.echo(f"{bad}\n{kept} it there, then: tidegate validate {path}", err=True)
        raise typer.Exit(1) from bad
    path.write_text(text)
    typer.echo(f"{path} is written; next: tidegate validate {path}")
