"""`tidegate node hold` and `release`: a person looks into a node, for a while."""

import re
from typing import TYPE_CHECKING, Annotated, Never

import typer

from tidegate.cli.options import ClusterOption

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.adapters.head_shell import HeadShell
    from tidegate.cli.live import LiveCluster
    from tidegate.core.fleet.holds import Hold, HoldRefused
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

HOLD_EXAMPLES = (
    "Examples: tidegate node hold i-0123456789abcdef0 --for 4h --reason 'GPU 3 is slow';"
    " tidegate node release i-0123456789abcdef0"
)
RELEASE_EXAMPLES = (
    "Examples: tidegate node release i-0123456789abcdef0; tidegate node release i-... --resume"
)
FOR = "4h"
REASON_MAX_CHARS = 200

# Slurm prints records as NAME=value and adds [who@when] to a reason.
_ODD = re.compile(r"[^\w .,:;/#+@!?()%&*'-]")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="As Slurm and EC2 call it: i-...")
]


def hold(
    context: typer.Context,
    name: NameArgument,
    cluster: ClusterOption,
    for_: Annotated[
        str, typer.Option("--for", metavar="SPAN", help="For how long: 90m, 4h, 1d.")
    ] = FOR,
    reason: Annotated[str, typer.Option(help="What is looked for; shown to all.")] = "",
) -> None:
    """Drain a node to look into it: until its time is over nothing lets it go.

    Its jobs go on, others are given other nodes. What AWS takes back it takes all the same.
    """
    from tidegate.cli.live import told
    from tidegate.core.fleet.holds import HoldRefused, hold_from, hold_reason, may_hold
    from tidegate.core.fleet.members import members
    from tidegate.core.model.durations import span_s

    _check_name(name)
    why, for_s = _said(reason), span_s(for_)
    if not for_s:
        raise typer.BadParameter(f"--for {for_!r} is no span of time, like 90m, 4h or 1d")
    with told():
        file, seen = _seen(cluster, context.obj)
        found = may_hold(name, for_s, members(seen.snapshot), seen.snapshot)
        if isinstance(found, HoldRefused):
            _refuse(found)
        until_s = seen.snapshot.now_s + for_s
        says = f"held by {_who(file, context.obj)}{f': {why}' if why else ''}"
        _drain(_shell(file, context.obj), name, str(hold_reason(says, until_s)))
        made = hold_from(found, says, until_s, seen.snapshot.now_s)
        typer.echo(_held(made, seen.snapshot.now_s))


def release(
    context: typer.Context,
    name: NameArgument,
    cluster: ClusterOption,
    resume: Annotated[
        bool, typer.Option("--resume", help="It takes jobs again, instead of being let go.")
    ] = False,
) -> None:
    """End the hold of a node: it is let go once its jobs have ended, or takes jobs again."""
    from tidegate.cli.live import told
    from tidegate.core.fleet.holds import HoldRefused, hold_reason, may_release
    from tidegate.core.fleet.members import members
    from tidegate.core.model.drain_reason import OPEN

    _check_name(name)
    with told():
        file, seen = _seen(cluster, context.obj)
        found = may_release(name, members(seen.snapshot), seen.snapshot)
        if isinstance(found, HoldRefused):
            _refuse(found)
        shell = _shell(file, context.obj)
        if resume:
            shell.run("scontrol", "update", f"NodeName={name}", "State=RESUME", f"Reason={OPEN}")
            typer.echo(f"{name} takes jobs again; {found.cost}")
        else:
            _drain(shell, name, str(hold_reason(found.says, seen.snapshot.now_s)))
            jobs = "job on it has" if found.jobs == 1 else f"{found.jobs} jobs on it have"
            waits = f" when the {jobs} ended" if found.jobs else ""
            typer.echo(f"{name} is let go{waits}; {found.cost}")


def _check_name(name: str) -> None:
    from tidegate.core.model.slurm_names import is_instance_id

    if not is_instance_id(name):
        raise typer.BadParameter(f"{name!r} is no node of a cluster: they are named i-...")


def _said(reason: str) -> str:
    """The reason as Slurm can keep it. Errors: typer.BadParameter."""
    said = " ".join(reason.split())
    if odd := _ODD.search(said):
        raise typer.BadParameter(
            f"--reason holds {odd[0]!r}, which Slurm's records cannot carry; letters, digits, "
            "spaces and .,:;/#+@!?()%&*'- can be used"
        )
    if len(said) > REASON_MAX_CHARS:
        raise typer.BadParameter(f"--reason is longer than {REASON_MAX_CHARS} characters")
    return said


def _seen(cluster: "Path", clients: "Clients | None") -> "tuple[ClusterFile, LiveCluster]":
    from tidegate.cli.live import live
    from tidegate.wire.config import load_cluster

    file = load_cluster(cluster)
    return file, live(file, clients)


def _refuse(found: "HoldRefused") -> Never:
    typer.echo(found.sentence, err=True)
    raise typer.Exit(1)


def _who(file: "ClusterFile", clients: "Clients | None") -> str:
    """Who asks, without what a reason cannot carry."""
    from tidegate.adapters.clients import client
    from tidegate.adapters.person import who

    return _ODD.sub("-", who(clients("sts") if clients else client("sts", file.region)))


def _shell(file: "ClusterFile", clients: "Clients | None") -> "HeadShell":
    from tidegate.cli.head import head_shell

    return head_shell(file, clients)


def _drain(shell: "HeadShell", name: str, reason: str) -> None:
    """As a person would, so that whoever reads Slurm knows a person's drain."""
    shell.run("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")


def _held(hold: "Hold", now_s: float) -> str:
    from tidegate.core.fleet.holds import SECONDS_PER_HOUR
    from tidegate.core.model.durations import moment

    left_usd = (hold.until_s - now_s) / SECONDS_PER_HOUR * hold.usd_per_hour
    runs = f"; {_jobs(hold.jobs)} on there" if hold.jobs else ""
    return (
        f"{hold.instance_id} is held until {moment(hold.until_s)} UTC and takes no new job{runs}. "
        f"So far {hold.cost}: {left_usd:.2f} until then. Then it is let go; "
        f"earlier: tidegate node release {hold.instance_id}"
    )


def _jobs(count: int) -> str:
    return "1 job goes" if count == 1 else f"{count} jobs go"
