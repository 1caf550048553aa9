"""How stacks end: a failed update's status and words, and change sets that find their stack.

moto leaves a stack whose update failed as if it had not been tried, and looks change sets up by
their names alone, which are the same for all stacks of the CDK's command line.

Source: CloudFormation user guide, "Understand CloudFormation stack creation events" and "Continue
rolling back from failed nested stack updates".
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from moto.cloudformation.exceptions import CloudFormationError, ValidationError
from moto.cloudformation.models import CloudFormationBackend, Stack, cloudformation_backends
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import ActionResult, EmptyResult

from local.shims import exports
from local.shims.engine import RollbackFailed

# In these no update is taken: the first must be deleted, the others be rolled back to their end.
STUCK = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED")


class ChangeSetNotFound(CloudFormationError):
    """By this code a caller sees that a change set is gone."""

    code = "ChangeSetNotFound"


_update: Callable[..., None] = Stack.update
_delete_stack: Callable[..., None] = CloudFormationBackend.delete_stack
_create_change_set: Callable[..., Any] = CloudFormationBackend.create_change_set


def _updated(stack: Any, template: str, *rest: Any, **more: Any) -> None:
    """As moto's; a failure is told by the stack's status and events too."""
    refuse_stuck(stack)
    before, exported = stack.template, exports.of(stack)
    try:
        _update(stack, template, *rest, **more)
        exports.settle(stack, exported)
    except Exception as failure:
        if isinstance(failure, exports.ExportInUse):
            _update(stack, before)
        stack.template = before
        stack._parse_template()
        _note_failure(stack, "UPDATE_ROLLBACK", failure)
        raise


def refuse_stuck(stack: Any) -> None:
    """Errors: ValidationError, in CloudFormation's words."""
    if stack.status in STUCK:
        words = f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated."
        raise ValidationError(message=words)


def _note_failure(stack: Any, rollback: str, failure: Exception) -> None:
    """`rollback`: ROLLBACK of a stack that was to be created, else UPDATE_ROLLBACK."""
    ended = "FAILED" if isinstance(failure, RollbackFailed) else "COMPLETE"
    stack._add_stack_event(f"{rollback}_IN_PROGRESS", resource_status_reason=str(failure))
    stack._add_stack_event(f"{rollback}_{ended}")
    stack.status = f"{rollback}_{ended}"
    stack.stack_status_reason = str(failure)


def _created(self: Any, *, stack_name: str, **asked: Any) -> Any:
    """One of this stack, unless it is stuck. Values that are to stay are those that were given.

    moto takes what they resolved to, which is no name of a public parameter any more.
    """
    given = asked.pop("parameters")
    for stack in self.stacks.values():
        if stack.name == stack_name:
            refuse_stuck(stack)
            known = stack.stack_parameters
            stays = {key for key, value in given.items() if known.get(key) == value}
            kept = {key: value for key, value in stack.parameters.items() if key in stays}
            given = {key: value for key, value in given.items() if key not in stays} | kept
    return _create_change_set(self, stack_name=stack_name, parameters=given, **asked)


def _executed(response: Any) -> Any:
    """The change happens; how it ended is told by the stack, as it is by CloudFormation."""
    change_set = _found(response)
    stack, is_new = change_set.stack, change_set.change_set_type == "CREATE"
    change = _filled if is_new else _updated
    given = {"parameters": change_set.parameters, "tags": change_set.tags}
    try:
        change(stack, change_set.template, change_set.role_arn, **given)
    except Exception as failure:  # noqa: BLE001 - the stack tells of each
        if is_new:
            _note_failure(stack, "ROLLBACK", failure)
    else:
        stack.status = "CREATE_COMPLETE" if is_new else "UPDATE_COMPLETE"
    del response.cloudformation_backend.change_sets[change_set.change_set_id]
    return EmptyResult()


def _filled(stack: Any, template: str, *rest: Any, **more: Any) -> None:
    """What a change set of a new stack does: it is there already, without resources."""
    backend: Any = cloudformation_backends[stack.account_id][stack.region_name]
    stack.cross_stack_resources = backend.exports
    stack.resource_map.cross_stack_resources = backend.exports
    stack.resource_map._template.setdefault("Resources", {})
    _update(stack, template, *rest, **more)
    exports.settle(stack, {})


def _described(response: Any) -> Any:
    return ActionResult(_found(response))


def _deleted(response: Any) -> Any:
    """Source: API reference, DeleteChangeSet: one that is not there is no error."""
    with suppress(ChangeSetNotFound):
        found = _found(response)
        del response.cloudformation_backend.change_sets[found.change_set_id]
    return EmptyResult()


def _found(response: Any) -> Any:
    """The change set that a request means. Errors: ChangeSetNotFound."""
    backend = response.cloudformation_backend
    name, stack = response._get_param("ChangeSetName"), response._get_param("StackName")
    for each in backend.change_sets.values():
        if name == each.change_set_id:
            return each
        if name == each.change_set_name and stack in (each.stack.name, each.stack.stack_id):
            return each
    raise ChangeSetNotFound(f"ChangeSet [{name}] does not exist")


def _protected(response: Any) -> Any:
    """UpdateTerminationProtection, which moto lacks."""
    stack = response.cloudformation_backend.get_stack(response._get_param("StackName"))
    stack.enable_termination_protection = response._get_bool_param("EnableTerminationProtection")
    return ActionResult({"StackId": stack.stack_id})


def _stack_deleted(self: Any, name: str) -> None:
    """Refused while the stack is protected. Source: API reference, DeleteStack."""
    for stack in self.stacks.values():
        if name in (stack.name, stack.stack_id) and stack.enable_termination_protection:
            words = f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            raise ValidationError(message=words)
    _delete_stack(self, name)


def install() -> None:
    stack: Any = Stack
    stack.update = _updated
    backend: Any = CloudFormationBackend
    backend.create_change_set = _created
    backend.delete_stack = _stack_deleted
    response: Any = CloudFormationResponse
    response.execute_change_set = _executed
    response.describe_change_set = _described
    response.delete_change_set = _deleted
    response.update_termination_protection = _protected
