"""The `tidegate` command. Imports stay inside the commands, so that each starts fast."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidegate.cli.advise_command import EXAMPLES as ADVISE
from tidegate.cli.advise_command import advise
from tidegate.cli.capacity.command import EXAMPLES as CAPACITY
from tidegate.cli.capacity.command import capacity
from tidegate.cli.cost_command import EXAMPLES as COST
from tidegate.cli.cost_command import cost
from tidegate.cli.dashboards.command import EXAMPLES as DASHBOARDS
from tidegate.cli.dashboards.command import dashboards
from tidegate.cli.diff_command import EXAMPLES as DIFF
from tidegate.cli.diff_command import diff
from tidegate.cli.drill import RESTORE_EXAMPLES, drill, restore
from tidegate.cli.events import EXAMPLES as EVENTS
from tidegate.cli.events import events
from tidegate.cli.explain_command import EXAMPLES as EXPLAIN
from tidegate.cli.explain_command import explain
from tidegate.cli.findings import EXAMPLES as FINDINGS
from tidegate.cli.findings import findings
from tidegate.cli.image import image
from tidegate.cli.init_command import EXAMPLES as INIT
from tidegate.cli.init_command import init
from tidegate.cli.market.command import EXAMPLES as MARKET
from tidegate.cli.market.command import market
from tidegate.cli.mcp_command import EXAMPLES as MCP
from tidegate.cli.mcp_command import mcp
from tidegate.cli.node_hold import HOLD_EXAMPLES, RELEASE_EXAMPLES, hold, release
from tidegate.cli.node_log import node
from tidegate.cli.nodes import EXAMPLES as NODES
from tidegate.cli.nodes import nodes
from tidegate.cli.overrides import KEEP_UP_EXAMPLES, STOP_EXAMPLES, keep_up, stop
from tidegate.cli.pcluster.command import importing
from tidegate.cli.plan import EXAMPLES as PLAN
from tidegate.cli.plan import plan
from tidegate.cli.probe.command import EXAMPLES as PROBE
from tidegate.cli.probe.command import probe
from tidegate.cli.replay import EXAMPLES as REPLAY
from tidegate.cli.replay import replay
from tidegate.cli.report_command import EXAMPLES as REPORT
from tidegate.cli.report_command import report
from tidegate.cli.retry import EXAMPLES as RETRY
from tidegate.cli.retry import retry
from tidegate.cli.rollout import (
    ABORT_EXAMPLES,
    PAUSE_EXAMPLES,
    STATUS_EXAMPLES,
    abort,
    finish,
    pause,
    resume,
    rollout,
)
from tidegate.cli.rollout import status as rollout_status
from tidegate.cli.sandbox import EXAMPLES as SANDBOX
from tidegate.cli.sandbox import sandbox
from tidegate.cli.schedule import EXAMPLES as SCHEDULE
from tidegate.cli.schedule import schedule
from tidegate.cli.simulate import EXAMPLES as SIMULATE
from tidegate.cli.simulate import simulate
from tidegate.cli.status import EXAMPLES as STATUS
from tidegate.cli.status import status
from tidegate.cli.user import user
from tidegate.cli.validate import EXAMPLES as VALIDATE
from tidegate.cli.validate import validate
from tidegate.cli.why import EXAMPLES as WHY
from tidegate.cli.why import why
from tidegate.core.model.text import printable, printable_lines

# As somebody meets them who is new; the day's questions first of what a cluster is asked.
ORDER = (
    *("init", "validate", "sandbox", "import", "replay", "advise", "probe", "plan", "diff"),
    *(
        "status",
        "why",
        "explain",
        "nodes",
        "events",
        "schedule",
        "keep-up",
        "stop",
        "retry",
        "rollout",
    ),
    *("node", "user", "image", "cost", "report", "capacity", "market", "dashboards", "mcp"),
    *("findings", "schema", "drill", "simulate"),
)


class Told(TyperGroup):
    """What this computer refuses (a full disk, a folder one may not write to) and what cannot be
    meant, in a sentence that a terminal may show.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ORDER)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _told():  # help and version are printed here
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _told():
            return super().invoke(ctx)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as trouble:
        if trouble.errno == errno.EPIPE:  # who read the output has gone: `| head`
            raise
        said = f"{trouble.filename or 'output'}: {trouble.strerror or trouble}"
        typer.echo(printable(said), err=True)
        if not trouble.filename:
            _drop_output()
        raise typer.Exit(1) from trouble
    except typer.TyperException as wrong:
        wrong.message = printable_lines(_in_our_words(wrong.message))
        raise


def _in_our_words(text: str) -> str:
    """pydantic reads options, and has its own way to say what is wrong with them."""
    text = text.removeprefix("Value error, ").partition(", unable to parse ")[0]
    return text.replace("Input should be ", "must be ", 1)


def _drop_output() -> None:
    """What could not be written is not tried again as Python ends, which makes it exit with 120."""
    with suppress(OSError):  # no file: a test reads it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="tidegate",
    cls=Told,
    rich_markup_mode=None,
    help="Event-driven autoscaler for Slurm GPU clusters on EC2.",
    epilog="Exit codes: 0 fine, 1 trouble, 2 a wrong option or value, more: COMMAND -h.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command(epilog=SIMULATE)(simulate)
app.command(epilog=REPLAY)(replay)
app.command(epilog=VALIDATE)(validate)
app.command(epilog=EXPLAIN)(explain)
app.command(epilog=PROBE)(probe)


class SchemaName(StrEnum):
    """A file format whose JSON schema can be shown."""

    CLUSTER = "cluster"
    SNAPSHOT = "snapshot"
    PLAN = "plan"


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"tidegate {version('tidegate')}")
        raise typer.Exit


def _use_profile(name: str) -> str:
    """The region is the cluster file's, whatever the profile says."""
    if name:
        from tidegate.adapters.clients import profiles, use_profile

        if name not in profiles():
            known = ", ".join(profiles()) or "none"
            said = f"there is no profile {name}; known here: {known}"
            raise typer.BadParameter(said)
        use_profile(name)
    return name


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A profile of the AWS CLI: who asks.", callback=_use_profile
        ),
    ] = "",
) -> None:
    """Options that stand before the command."""


@app.command(epilog="Examples: tidegate schema cluster --markdown; tidegate schema snapshot")
def schema(
    name: Annotated[SchemaName, typer.Argument(help="The file format.")],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="A reference for people instead.")
    ] = False,
) -> None:
    """Print the JSON schema of a file format."""
    import json

    from pydantic import BaseModel

    from tidegate.wire.models import ClusterModel
    from tidegate.wire.plan import PlanModel
    from tidegate.wire.snapshot import SnapshotModel

    models: dict[SchemaName, type[BaseModel]] = {
        SchemaName.CLUSTER: ClusterModel,
        SchemaName.SNAPSHOT: SnapshotModel,
        SchemaName.PLAN: PlanModel,
    }
    if markdown:
        from tidegate.wire.reference import reference

        made = f"Made by `tidegate schema {name} --markdown`: change the model, not this page."
        typer.echo(reference(models[name], f"The {name} file", made), nl=False)
    else:
        typer.echo(json.dumps(models[name].model_json_schema(), indent=2))


app.command(epilog=PLAN)(plan)
app.command(epilog=CAPACITY)(capacity)
app.command(epilog=MARKET)(market)
app.command(epilog=ADVISE)(advise)
app.command(epilog=COST)(cost)
app.command(epilog=REPORT)(report)
app.command(epilog=DASHBOARDS)(dashboards)
app.command(epilog=DIFF)(diff)
app.command(epilog=INIT)(init)
app.command(epilog=SANDBOX)(sandbox)
drill.command(epilog=RESTORE_EXAMPLES)(restore)
app.add_typer(drill, name="drill")
app.add_typer(importing, name="import")
app.command(epilog=WHY)(why)
app.command(epilog=STATUS)(status)
app.command(epilog=NODES)(nodes)
app.command(epilog=EVENTS)(events)
app.command(epilog=FINDINGS)(findings)
app.command(epilog=MCP)(mcp)
app.command(epilog=KEEP_UP_EXAMPLES)(keep_up)
app.command(epilog=STOP_EXAMPLES)(stop)
app.command(epilog=SCHEDULE)(schedule)
app.command(epilog=RETRY)(retry)
rollout.command(epilog=STATUS_EXAMPLES, name="status")(rollout_status)
rollout.command(epilog=PAUSE_EXAMPLES)(pause)
rollout.command(epilog=PAUSE_EXAMPLES)(resume)
rollout.command(epilog=ABORT_EXAMPLES)(abort)
rollout.command(epilog=ABORT_EXAMPLES)(finish)
app.add_typer(rollout, name="rollout")
node.command(epilog=HOLD_EXAMPLES)(hold)
node.command(epilog=RELEASE_EXAMPLES)(release)
app.add_typer(node, name="node")
app.add_typer(image, name="image")
app.add_typer(user, name="user")


if __name__ == "__main__":
    app(prog_name="tidegate")
