"""`tidegate import pcluster FILE`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tidegate.cli.pcluster.outcome import Translated

EXAMPLES = (
    "Examples: tidegate import pcluster old.yaml >clusters/new.yaml; "
    "tidegate import pcluster old.yaml --accept hooks --vpc vpc-0a1b2c3d "
    "--zone subnet-0a1b2c3d=us-east-1a"
)
WITH_LOSSES = 3

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
        done = _translated(file, name, region, Places(vpc or None, zones))
        _refuse(done, file, accept or [])
    except BadConfig as error:
        typer.echo("\n".join(filter(None, (str(error), _other_form(file)))), err=True)
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
    done = _translated(file, "imported", "" if text.get("Region") else region, Places())
    if faults := _faults(done, file):
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


def _other_form(file: Path) -> str:
    """What to do with a file that could be one before something was done with it; else ""."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return ""
    if re.match(r"\s*\[", text):
        return "It is one of ParallelCluster 2: pcluster3-config-converter makes one of version 3."
    if found := re.search(r"\$\{\w+\}|\{\{.*?\}\}|\{%.*?%\}", text):
        return f"It is a template: fill in {found[0]} and the like first, as with envsubst."
    return ""


def _translated(file: Path, name: str, region: str, places: Any) -> "Translated":
    from tidegate.cli.pcluster.shape import shaped
    from tidegate.cli.pcluster.translate import translate
    from tidegate.core.model.errors import BadConfig
    from tidegate.wire.problems import Problem, refusal
    from tidegate.wire.yaml_file import parse_guessing, read_text

    text, repeated = parse_guessing(read_text(file), file)
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
    return translate(text, old, name=name, region=str(given or region), places=places)


def _refuse(done: "Translated", file: Path, accepted: list[str]) -> None:
    """Everything that stands against it at once. Errors: BadConfig."""
    from tidegate.core.model.errors import BadConfig

    said = "\n".join(filter(None, (_faults(done, file), _heavy(done, file, accepted))))
    if said:
        raise BadConfig(said)


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

    Dumper.add_representer(type(None), nothing)
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
