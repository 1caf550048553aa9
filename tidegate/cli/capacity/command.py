"""`tidegate capacity`: what can be bought in advance for this queue, and its purchase."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import ClusterOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.adapters.capacity_blocks import CapacityBlocks
    from tidegate.cli.capacity.advise import Told, Wanted
    from tidegate.core.model.capacity_advice import Advice
    from tidegate.wire.config import ClusterFile

# Beside 0, an answer; 1, trouble; 2, a command that cannot be meant.
NEEDS_A_LOOK = 3

EXAMPLES = (
    "Examples: tidegate capacity --cluster dev.yaml; tidegate capacity --days 6 --nodes 8"
    " --history jobs.txt"
)


def capacity(
    context: typer.Context,
    cluster: ClusterOption,
    instance_type: Annotated[
        str, typer.Option("--type", help="One instance type; else all that waiting jobs could use.")
    ] = "",
    nodes: Annotated[int, typer.Option(min=0, max=64, help="0: as the queue needs.")] = 0,
    days: Annotated[
        int, typer.Option(min=0, max=182, help="1 to 14, or weeks; 0: as the queue needs.")
    ] = 0,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Jobs that will come like these: as of replay."),
    ] = None,
    spot_again: Annotated[
        str, typer.Option(metavar="SPAN", help="Suppose that EC2 sells what it refuses after: 3d.")
    ] = "",
    spot_advisor: Annotated[
        bool, typer.Option("--spot-advisor", help="Download its public figures of interruptions.")
    ] = False,
    extend: Annotated[
        str, typer.Option(metavar="BLOCK", help="Ask for a later end of this block of the file.")
    ] = "",
    buy: Annotated[
        str, typer.Option(metavar="OFFER", help="Buy it, and write it into the cluster file.")
    ] = "",
    at_most: Annotated[
        float | None, typer.Option(min=0, help="With --buy: what it may cost, else nothing is.")
    ] = None,
    is_approved: Annotated[bool, typer.Option("--yes", help="With --at-most: do not ask.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show Capacity Blocks that would help this queue.

    Beside what each would cost stands what waiting would.
    Exit codes: 0 an answer, 3 a block needs a look (it is said), 1 trouble. Nothing is bought
    without --buy.
    """
    from tidegate.cli.capacity.advise import Wanted
    from tidegate.cli.live import told
    from tidegate.core.model.capacity import days_sold
    from tidegate.wire.config import load_cluster

    if days and days_sold(days) != days:
        raise typer.BadParameter(f"EC2 sells 1 to 14 days, then weeks: --days {days_sold(days)}")
    if not buy and (is_approved or at_most is not None):
        raise typer.BadParameter("--yes and --at-most belong to --buy")
    if is_approved and at_most is None:
        raise typer.BadParameter("--yes shows nobody the price: say --at-most, too")
    wanted = Wanted(instance_type, nodes, days, extend)
    with told():
        file = load_cluster(cluster)
        make, blocks = _clients(file, context.obj)
        if buy:
            _buy(buy, cluster, blocks, wanted, at_most, is_approved=is_approved)
            return
        known = _told(history, spot_again, asks_advisor=spot_advisor)
        found = _advice(file, context.obj, make, blocks, wanted, known)
    _show(found, str(cluster), output)
    raise typer.Exit(NEEDS_A_LOOK if found.troubles or found.unlisted else 0)


def _clients(
    file: "ClusterFile", given: "Callable[[str], object] | None"
) -> "tuple[Callable[[str], object], CapacityBlocks]":
    """With the rights of who asks; the one that buys asks once."""
    from tidegate.adapters.capacity_blocks import CapacityBlocks
    from tidegate.adapters.clients import BUYING, HOMES, client

    make = given or (lambda service: client(service, HOMES.get(service, file.region)))
    buyer = given("ec2") if given else client("ec2", file.region, BUYING)
    return make, CapacityBlocks(make("ec2"), buyer, file.cluster.name)


def _told(history: Path | None, spot_again: str, *, asks_advisor: bool) -> "Told":
    from tidegate.adapters.spot_advisor import ADVISOR_URL, advisor_data
    from tidegate.cli.capacity.advise import Told
    from tidegate.cli.replay import read_history
    from tidegate.core.model.durations import span_s
    from tidegate.core.model.errors import BadConfig
    from tidegate.sim.replay.trace import BadTrace

    refused_s = span_s(spot_again) if spot_again else None
    if spot_again and refused_s is None:
        raise typer.BadParameter("a span like 12h or 3d", param_hint="--spot-again")
    data = advisor_data() if asks_advisor else None
    if asks_advisor and data is None:
        raise BadConfig(f"{ADVISOR_URL} cannot be read: leave --spot-advisor out")
    try:
        return Told(read_history(history) if history else None, data, refused_s)
    except BadTrace as error:
        raise BadConfig(str(error)) from error


def _advice(
    file: "ClusterFile",
    given: "Callable[[str], object] | None",
    make: "Callable[[str], object]",
    blocks: "CapacityBlocks",
    wanted: "Wanted",
    known: "Told",
) -> "Advice":
    from dataclasses import replace

    from tidegate.cli.capacity.advise import advice
    from tidegate.cli.live import live

    observed = live(file, given)
    found = advice(observed.snapshot, file, make, blocks, wanted, known)
    return replace(found, unknown=(*observed.notes, *found.unknown))


def _buy(
    offer_id: str,
    file: Path,
    blocks: "CapacityBlocks",
    wanted: "Wanted",
    at_most: float | None,
    *,
    is_approved: bool,
) -> None:
    from tidegate.adapters.block_extensions import BlockExtensions
    from tidegate.adapters.clock import SystemClock
    from tidegate.cli.capacity.buy import Purchase
    from tidegate.cli.capacity.extend import ExtensionPurchase

    def approve(what: str) -> bool:
        typer.echo(what)
        return is_approved or typer.confirm("buy it?", default=False)

    clock, tell = SystemClock(), typer.echo
    if wanted.extend:
        asked, block = BlockExtensions(blocks.client, blocks.buyer), wanted.extend
        days = wanted.days
        ExtensionPurchase(offer_id, block, days, file, asked, at_most, clock, approve, tell).make()
    else:
        Purchase(offer_id, file, blocks, wanted, at_most, clock, approve, tell).make()


def _show(found: "Advice", file: str, output: Output) -> None:
    from tidegate.cli.shown import encoded, filled
    from tidegate.core.explain.capacity import lines

    if output.is_data:
        typer.echo(encoded(found, output))
        return
    for line in lines(found, file):
        typer.echo(filled(line, indent=len(line) - len(line.lstrip()) + 2, output=output))
