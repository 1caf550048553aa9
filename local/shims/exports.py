"""Exports of stacks: one that another stack imports can neither change nor go.

Source: CloudFormation user guide, "Get exported outputs from a deployed CloudFormation stack".
"""

from collections.abc import Iterator, Mapping
from typing import Any

from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import cloudformation_backends


class ExportInUse(ValidationError):
    """The value that another stack has imported would be another one, or gone."""


def of(stack: Any) -> dict[str, Any]:
    """Name -> value of what a stack exports."""
    return {each.name: each.value for each in stack.exports}


def settle(stack: Any, before: Mapping[str, Any]) -> None:
    """After an update other stacks find the exports that there are now, and no others.

    `before`: those before it. Errors: ExportInUse, and nothing is changed; only now, since the new
    values were not known before.
    """
    backend: Any = cloudformation_backends[stack.account_id][stack.region_name]
    after = of(stack)
    for export, value in before.items():
        if after.get(export) != value and (users := _users(backend, export)):
            does = "updated" if export in after else "deleted"
            text = f"Export {export} cannot be {does} as it is in use by {', '.join(users)}"
            raise ExportInUse(message=text)
    for gone in before.keys() - after.keys():
        backend.exports.pop(gone, None)
    backend.exports.update({each.name: each for each in stack.exports})


def _users(backend: Any, export: str) -> list[str]:
    """The stacks whose templates import it."""
    stacks = list(backend.stacks.values())
    return [each.name for each in stacks if export in _imports(each.template_dict)]


def _imports(value: Any) -> Iterator[Any]:
    match value:
        case {"Fn::ImportValue": name}:
            yield name
        case Mapping():
            for each in value.values():
                yield from _imports(each)
        case list():
            for each in value:
                yield from _imports(each)
