"""`tidegate explain`: what a code means that a message, a table or an answer for programs holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import Output, OutputOption

if TYPE_CHECKING:
    from tidegate.cli.codes import Explained

EXAMPLES = "Examples: tidegate explain R21; tidegate explain resting InsufficientInstanceCapacity"


def explain(
    codes: Annotated[
        list[str] | None,
        typer.Argument(metavar="CODE", help="As it was shown; all codes when left out."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say what a code means, and what to do about it.

    Codes of `validate` (R01), of `why` (resting), of EC2 (VcpuLimitExceeded), of drain reasons
    (block-ends), of roll-outs, notices and imports. Some are used for two things: both are told.
    """
    from tidegate.cli.codes import every
    from tidegate.cli.shown import encoded, unfolded

    found = _found(codes, every()) if codes else every()
    if output.is_data:
        typer.echo(encoded(found, output))
        return
    console = unfolded()
    for each in found:
        does = f". What to do: {each.remedy}" if each.remedy else ""
        console.print(f"{each.code} ({each.family}; {each.shown_by}): {each.meaning}{does}")


def _found(asked: Sequence[str], known: "Sequence[Explained]") -> "tuple[Explained, ...]":
    """Errors: a usage error, for a code that is none."""
    from tidegate.wire.problems import did_you_mean, shown

    by_code: dict[str, list[Explained]] = {}
    for each in known:
        by_code.setdefault(each.code.lower(), []).append(each)
    for code in asked:
        if code.lower() not in by_code:
            near = did_you_mean(code, [each.code for each in known])
            raise typer.BadParameter(f"{shown(code)} is no code of Tidegate's{near}")
    return tuple(one for code in asked for one in by_code[code.lower()])
