"""`tidegate import pcluster FILE`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tidegate.cli.pcluster.outcome import Translated
    from tidegate.cli.pcluster.shape import Configuration

EXAMPLES = (
    "Examples: tidegate import pcluster old.yaml >clusters/new.yaml; "
    "tidegate import pcluster old.yaml --accept hooks --vpc vpc-0a1b2c3d "
    "--zone subnet-0a1b2c3d=us-east-1a"
)
WITH_LOSSES = 3
# Source: ParallelCluster guide v3, pcluster describe-cluster.
RUNNING = "pcluster describe-cluster -n NAME --query clusterConfiguration.url"
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\{\{.*?\}\}|\{%.*?%\}|<[A-Z][A-Z0-9_ ]+>")

importing = typer.Typer(help="Translate configurations of other tools.", no_args_is_help=True)


@importing.callback()
def formats() -> None:
    """Keeps `pcluster` a command of its own while it is the only one."""


@importing.command(epilog=EXAMPLES)
def pcluster(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="ParallelCluster 3 configuration.")],
    name: Annotated[str, typer.Option(help="Name of the cluster.")] = "imported",
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Where it is, if the file does not say.")
    ] = "",
    vpc: Annotated[str, typer.Option(metavar="ID", help="The VPC of its subnets.")] = "",
    zone: Annotated[
        list[str] | None,
        typer.Option(metavar="SUBNET=ZONE", help="The zone of a subnet; as often as there are."),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="A loss that is meant; as often as there are."),
    ] = None,
) -> None:
    """Write a cluster file to stdout; say on stderr what is lost and what is to be filled in.

    What makes the cluster dearer or weaker is refused until --accept names it. Exit codes: 0
    whole, 3 with losses or gaps, 1 refused.
    """
    from tidegate.cli.pcluster.network import Places
    from tidegate.core.model.errors import BadConfig

    zones = dict(_pair(each) for each in zone or ())
    _require_codes(accept or [])
    try:
        done, faults = _translated(file, name, region, Places(vpc or None, zones))
        if said := "\n".join(filter(None, (faults, _heavy(done, file, accept or [])))):
            raise BadConfig(said)
    except BadConfig as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo(as_yaml(done.file), nl=False)
    _tell(done)
    if done.losses or done.gaps:
        raise typer.Exit(WITH_LOSSES)


def stand_in(file: Path, region: str) -> str:
    """A cluster file to try: a stand-in in each gap, and whatever is lost is lost.

    `region`: of a configuration that does not say it. Errors: BadConfig.
    """
    import yaml

    from tidegate.cli.pcluster.network import Places
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.yaml_file import read_yaml

    text, _ = read_yaml(file)
    is_said = bool(text.get("Region"))
    done, faults = _translated(file, "imported", "" if is_said else region, Places())
    if faults:
        raise BadConfig(faults)
    return str(yaml.safe_dump(done.complete(), sort_keys=False))


def _pair(text: str) -> tuple[str, str]:
    subnet, is_pair, zone = text.partition("=")
    if not is_pair:
        raise typer.BadParameter(f"{text}: must be SUBNET=ZONE", param_hint="--zone")
    return subnet, zone


def _require_codes(accepted: list[str]) -> None:
    """Errors: a usage error, for one that is no loss of any configuration."""
    from tidegate.cli.pcluster.codes import CODES, WITHOUT_HARM
    from tidegate.wire.problems import did_you_mean, shown

    for code in accepted:
        if code not in (*CODES, WITHOUT_HARM):
            said = f"{shown(code)} is the code of no loss{did_you_mean(code, sorted(CODES))}"
            raise typer.BadParameter(f"{said} (docs/migrating.md)", param_hint="--accept")


def _other_form(text: str) -> str:
    """What to do with a file that could be one before something was done with it; else ""."""
    if re.match(r"\s*\[", text):
        return "It is one of ParallelCluster 2: pcluster3-config-converter makes one of version 3."
    running = f"That of a cluster that runs: curl the address of `{RUNNING}`."
    if re.search(r"^(AWSTemplateFormatVersion|Resources):", text, re.MULTILINE):
        what = "what stands under ClusterConfiguration, with its parameters filled in"
        return f"It is a template of CloudFormation: import {what}. {running}"
    if found := _PLACEHOLDER.search(text):
        return (
            f"It is a template: fill in {found[0]} and the like first, as with envsubst. {running}"
        )
    return ""


def _translated(file: Path, name: str, region: str, places: Any) -> "tuple[Translated, str]":
    """With why the file would be no cluster file, its gaps filled; "" where it is one."""
    from tidegate.cli.pcluster.translate import translate
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.yaml_file import read_text

    content = read_text(file)
    hint = f"\n{hint}" if (hint := _other_form(content)) else ""
    try:
        text, old = _read(content, file, region)
    except BadConfig as error:
        raise BadConfig(f"{error}{hint}") from error
    where = str(text.get("Region") or region)
    done = translate(text, old, name=name, region=where, places=places)
    faults = _faults(done, file)
    return done, f"{faults}{hint}" if faults else ""


def _read(content: str, file: Path, region: str) -> "tuple[dict[str, Any], Configuration]":
    from tidegate.cli.pcluster.shape import shaped
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.problems import Problem, refusal
    from tidegate.wire.yaml_file import parse_guessing

    text, repeated = parse_guessing(content, file)
    if "Scheduling" not in text:
        raise BadConfig(f"{file}: not a ParallelCluster 3 configuration: no Scheduling")
    old = shaped(text)
    problems = [*repeated, *(old if isinstance(old, list) else ())]
    given = text.get("Region")
    if not (given or region):
        problems.append(Problem(("Region",), "missing: say in which it is, by --region"))
    elif given and region and given != region:
        problems.append(Problem(("Region",), f"{given}, but --region says {region}"))
    if problems or isinstance(old, list):
        raise refusal(file, problems)
    return text, old


def _heavy(done: "Translated", file: Path, accepted: list[str]) -> str:
    """What makes the cluster dearer or weaker, and nobody accepted; "" where there is nothing."""
    from tidegate.core.model.text import printable

    heavy = done.heavy(frozenset(accepted))
    if not heavy:
        return ""
    codes = " ".join(f"--accept {each}" for each in sorted({each.lost.code for each in heavy}))
    count = f"{len(heavy)} loss{'' if len(heavy) == 1 else 'es'}"
    return "\n".join(
        [
            f"{file}: {count} would make the cluster dearer or weaker than it was:",
            *(f"  {printable(str(each))}" for each in heavy),
            f"Nothing was written. What is meant all the same: {codes}",
        ]
    )


def _faults(done: "Translated", file: Path) -> str:
    """Why what is written would be no cluster file even with its gaps filled; "" where it is."""
    import yaml

    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.config import parse_cluster

    try:
        parse_cluster(yaml.safe_dump(done.complete()), f"{file}, translated")
    except BadConfig as error:
        return str(error)
    return ""


def as_yaml(file: dict[str, Any]) -> str:
    """A gap has no value: `null` is text in a cluster file, and some things may be called so."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def nothing(dumper: Dumper, _: None) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:null", "")

    def text(dumper: Dumper, value: str) -> yaml.ScalarNode:
        """A script is read line by line."""
        style = "|" if value.count("\n") > 1 else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(type(None), nothing)
    Dumper.add_representer(str, text)
    return str(yaml.dump(file, Dumper=Dumper, sort_keys=False))


def _tell(done: "Translated") -> None:
    from tidegate.core.model.text import printable
    from tidegate.wire.problems import Problem

    for gap in done.gaps:
        place = Problem(tuple(int(each) if each.isdigit() else each for each in gap.path), "").path
        title = "to fill in" if gap.is_open else "to check"
        typer.echo(printable(f"{title}: {place}: {gap.text}"), err=True)
    for title, lines in (("lost", done.losses), ("not needed", done.notes)):
        for line in lines:
            typer.echo(printable(f"{title}: {line}"), err=True)
