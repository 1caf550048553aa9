"""Exports of stacks: one that another stack imports can neither change nor go.

Source: CloudFormation user guide, "Get exported outputs from a deployed CloudFormation stack".
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend

_update_stack: Callable[..., Any] = CloudFormationBackend.update_stack


def _update(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """As moto's; refused afterwards, since the new values are not known before."""
    stack = self.get_stack(name)
    before = {each.name: each.value for each in stack.exports}
    updated = _update_stack(self, name, *args, **kwargs)
    after = {each.name: each.value for each in stack.exports}
    for export, value in before.items():
        if after.get(export) != value and (users := _users(self, export)):
            does = "updated" if export in after else "deleted"
            text = f"Export {export} cannot be {does} as it is in use by {', '.join(users)}"
            raise ValidationError(message=text)
    return updated


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


def install() -> None:
    backend: Any = CloudFormationBackend
    backend.update_stack = _update
