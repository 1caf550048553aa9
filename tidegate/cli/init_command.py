"""`tidegate init`: a commented cluster file from a few answers, or from options alone."""

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.written import new_file
from tidegate.core.model.text import printable
from tidegate.core.model.waiting import DEFAULT_USD_PER_JOB_HOUR

DEV = "dev"

TEMPLATE = """\
# A cluster of Tidegate. All names, defaults and bounds: tidegate schema cluster
# Check it: tidegate validate {path}

name: {name}
region: {region}

# Never exceeded, whatever is queued.
limits: {{nodes: {nodes}, usd_per_hour: {usd_per_hour:g}}}

# What an hour costs you that a job waits, by which nodes are kept ready; 0: none are.
# Your own history at several prices: tidegate replay HISTORY --cluster {path} --frontier
waiting: {{usd_per_job_hour: {waiting_usd:g}}}
{schedules}
# Who hears of alarms; without it nobody does.
{alarm}

# Images that hold what nodes would install at each boot, minutes of it: docs/images.md
images: {{}}

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
{job_nodes}{prices}"""

JOB_NODES = "    max_job_nodes: {most} # the largest -N that Slurm accepts\n"

NO_ALARM = "# alarm_email: ops@example.org"

SCHEDULES = """
# Off at night: nodes go when their jobs have ended, then the head; what is queued waits.
schedules: {{time_zone: {time_zone}, stop: "0 20 * * MON-FRI", start: "0 8 * * MON-FRI"}}
"""


def _prices(region: str, types: list[str]) -> str:
    """Where AWS cannot be asked in USD, the file must have its own."""
    from tidegate.core.model.ec2 import Market
    from tidegate.wire.catalogue import LIST_PRICE_REGION, load_list_prices
    from tidegate.wire.prices import price_usd_per_hour

    if all(price_usd_per_hour({}, each, Market.ON_DEMAND, region) for each in types):
        return (
            "\n# What EC2 asks is read every quarter of an hour. Negotiated prices go before it:\n"
            f"# prices_usd_per_hour: {{{types[0]}: {{on-demand: 0.9}}}}\n"
        )
    known = [(_scalar(each), load_list_prices().get(each)) for each in types]
    lines = [f"  {name}: {{on-demand: {usd:g}, spot: {usd:g}}}" for name, usd in known if usd]
    head = (
        f"\n# List prices of {LIST_PRICE_REGION}: put in those of {region}.\nprices_usd_per_hour:\n"
    )
    return head + "\n".join(lines) + "\n" if lines else ""


EXAMPLES = "Examples: tidegate init new.yaml; tidegate init new.yaml --yes --types g5.xlarge"

# What is asked on a terminal for what no option says, and the answer of who only presses Enter.
# The default of `name` is made from the file's.
QUESTIONS: Mapping[str, tuple[str, Any]] = {
    "name": ("Name of the cluster", None),
    "region": ("AWS region", "us-east-1"),
    "zones": ("Availability zones: the region's letters", "ab"),
    "types": ("Instance types, by commas", "g5.xlarge"),
    "spot": ("Try spot first", True),
    "nodes": ("Nodes at the same time, at most", 8),
    "usd_per_hour": ("USD per hour, at most", 20.0),
    "night_off": ("Time zone for nights off (empty: always up)", ""),
    "alarm_email": ("Who hears of alarms (empty: nobody)", ""),
    "waiting": ("When jobs wait: thrifty, balanced or quick", "balanced"),
}

# USD per job-hour; docs/waiting.md has what each costs on public histories.
WAITING_USD: Mapping[str, float] = {
    "thrifty": 0.0,
    "balanced": DEFAULT_USD_PER_JOB_HOUR,
    "quick": 100.0,
}

# Where in the file the answers stand, by the beginning of the place.
_OPTION_OF: Mapping[str, str] = {
    "name": "--name",
    "region": "--region",
    "limits.nodes": "--nodes",
    "limits.usd_per_hour": "--usd-per-hour",
    "schedules": "--night-off",
    "alarm_email": "--alarm-email",
    "pools.main.instance_types": "--types",
    "prices_usd_per_hour": "--types",
    "pools.main.zones": "--zones",
}

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9@._/+-]*")
_ZONES = re.compile("[a-z]+")


def _not_there(path: Path) -> Path:
    """Looked at before anything is asked."""
    if path.exists():
        typer.echo(printable(f"{path} is there already: take another name, or delete it"), err=True)
        raise typer.Exit(1)
    new_file(path)
    return path


def name_after(path: Path) -> str:
    """`clusters/GPU lab.yaml` -> `gpu-lab`; dev when nothing of it can be a cluster's name."""
    plain = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).lstrip("-0123456789")
    plain = plain[:31].rstrip("-").removesuffix("-data").removesuffix("-images")
    return plain or DEV


def _answer(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """What the option says, else what somebody on a terminal answers, else the default."""
    if context.resilient_parsing:
        return value
    name = str(parameter.name)
    if value is not None:
        return _checked(name, value)
    question, default = QUESTIONS[name]
    if default is None:
        default = name_after(context.params["path"])
    if context.params["yes"]:
        return default
    if not sys.stdin.isatty():
        context.meta.setdefault(TAKEN, []).append(_as_option(name, default))
        return default
    context.meta[ASKED] = True
    if isinstance(default, bool):
        return typer.confirm(question, default=default)
    return _asked(name, question, default)


# In the context's `meta`: that somebody was asked, and the options whose defaults were taken.
ASKED, TAKEN = "tidegate.init.asked", "tidegate.init.taken"


def _asked(name: str, question: str, default: Any) -> Any:
    while True:
        try:
            answer = typer.prompt(question, default=default, type=str)
            return _alone(name, _checked(name, _of_kind(answer, type(default))))
        except typer.BadParameter as bad:
            typer.echo(f"Error: {bad.message}", err=True)


def _of_kind(answer: str, kind: type[Any]) -> Any:
    try:
        return kind(answer)
    except ValueError as error:
        raise typer.BadParameter(f"must be a plain number like 8, is {answer}") from error


def _alone(name: str, value: Any) -> Any:
    """The answer, when a file with it and no other is good there. Errors: BadParameter."""
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import parse_cluster

    others = {each: default for each, (_, default) in QUESTIONS.items()}
    try:
        parse_cluster(_text(Path("new.yaml"), {**others, "name": DEV, name: value}), "new.yaml")
    except BadConfig as bad:
        own = f"--{name.replace('_', '-')} "
        for problem in _by_option(bad.problems):
            if problem.startswith(own):
                raise typer.BadParameter(problem.partition(": ")[2]) from bad
    return value


def _checked(name: str, value: Any) -> Any:
    """Errors: BadParameter, for what would only be told later as a fault of something else."""
    if isinstance(value, str) and not value.isprintable():
        raise typer.BadParameter(f"plain text, not {value!a}")
    if name == "zones" and not _ZONES.fullmatch(value):
        raise typer.BadParameter("letters of the region's zones, like ab")
    if name == "nodes" and value < 1:
        raise typer.BadParameter("at least 1")
    if name == "waiting" and value not in WAITING_USD:
        raise typer.BadParameter(f"one of {', '.join(WAITING_USD)}")
    return value


def _as_option(name: str, value: Any) -> str:
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{option}"
    return f"--{option} {shlex.quote(f'{value:g}' if isinstance(value, float) else str(value))}"


def _scalar(text: str) -> str:
    """The text as YAML reads it back, whatever it is."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _by_option(problems: Iterable[str]) -> list[str]:
    """What is wrong, each with the option that said so."""
    found = []
    for each in problems:
        options = [option for place, option in _OPTION_OF.items() if each.startswith(place)]
        found.append(" ".join((*options[:1], each)))
    return found


def _option(default: str = "", **more: Any) -> Any:
    return typer.Option(callback=_answer, show_default=default, **more)


def init(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="FILE", callback=_not_there, help="Where to write it.")
    ],
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", is_eager=True, help="Ask nothing: take the defaults."),
    ] = False,
    name: Annotated[str | None, _option("the file's name")] = None,
    region: Annotated[str | None, _option("us-east-1")] = None,
    zones: Annotated[str | None, _option("ab", help="The region's letters, like ab.")] = None,
    types: Annotated[str | None, _option("g5.xlarge", help="Instance types, by commas.")] = None,
    spot: Annotated[bool | None, _option("spot", help="Try spot first.")] = None,
    nodes: Annotated[int | None, _option("8", help="At most at the same time.")] = None,
    usd_per_hour: Annotated[float | None, _option("20", help="At most.")] = None,
    night_off: Annotated[
        str | None, _option("always up", help="IANA time zone of the nights; empty: always up.")
    ] = None,
    alarm_email: Annotated[
        str | None, _option("nobody", help="Who hears of alarms; empty: nobody.")
    ] = None,
    waiting: Annotated[
        str | None,
        _option("balanced", help="thrifty, balanced or quick: what a waiting job's hour costs."),
    ] = None,
) -> None:
    """Write a cluster file from a few answers or options.

    Without a terminal, or with --yes, nothing is asked: what no option says has its default.
    Exit code 1 when the file is there already, or when answers make no good one; they are kept in
    the file. Exit code 2 when options make no good one; each is named, and nothing is written.
    """
    answers = {each: context.params[each] for each in QUESTIONS}
    _write(context, path, _text(path, answers))


def _text(path: Path, said: Mapping[str, Any]) -> str:
    """The file with these answers, good or not."""
    region, night_off, alarm_email = said["region"], said["night_off"], said["alarm_email"]
    types = [each.strip() for each in said["types"].split(",")]
    return TEMPLATE.format(
        path=printable(str(path)),
        name=_scalar(said["name"]),
        region=_scalar(region),
        nodes=said["nodes"],
        usd_per_hour=said["usd_per_hour"],
        schedules=SCHEDULES.format(time_zone=_scalar(night_off)) if night_off else "",
        alarm=f"alarm_email: {_scalar(alarm_email)}" if alarm_email else NO_ALARM,
        waiting_usd=WAITING_USD[said["waiting"]],
        types=", ".join(map(_scalar, types)),
        zones=", ".join(_scalar(f"{region}{letter}") for letter in said["zones"]),
        prices=_prices(region, types),
        job_nodes=_job_nodes(said["nodes"], len(types)),
        markets="spot, on-demand" if said["spot"] else "on-demand",
    )


def _job_nodes(nodes: int, num_types: int) -> str:
    """Where all nodes are more than a job may usually have: all, as far as slurm.conf has room."""
    from tidegate.wire.pool_models import PoolModel
    from tidegate.wire.rules import MAX_PLACEHOLDERS

    most = min(nodes, MAX_PLACEHOLDERS // num_types)
    usual: int = PoolModel.model_fields["max_job_nodes"].default
    return JOB_NODES.format(most=most) if most > usual else ""


def _write(context: typer.Context, path: Path, text: str) -> None:
    """What a person answered is kept, so that nobody has to answer again."""
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import parse_cluster

    if taken := context.meta.get(TAKEN):
        said = "stdin is no terminal: nothing is asked; taken:"
        typer.echo(f"{said} {' '.join(taken)}", err=True)
    try:
        parse_cluster(text, str(path))
    except BadConfig as bad:
        if not context.meta.get(ASKED):
            typer.echo("\n".join(_by_option(bad.problems or (str(bad),))), err=True)
            raise typer.Exit(2) from bad
        path.write_text(text)
        name = printable(str(path))
        kept = f"{name} is written with your answers, but is no good cluster file yet: correct"
        typer.echo(f"{bad}\n{kept} it there, then: tidegate validate {name}", err=True)
        raise typer.Exit(1) from bad
    path.write_text(text)
    typer.echo(printable(f"{path} is written; next: tidegate validate {path}"))
