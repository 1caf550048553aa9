"""CloudFormation's own rules that moto's engine does not keep: names and updates.

moto names what a template leaves unnamed at random, on every update anew, so that whoever
refers to it keeps the old name. CloudFormation keeps the name for as long as the resource
lives, and updates those who refer to a value when that value changes.
"""

import copy
import hashlib
import warnings
from collections.abc import Callable
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend
from moto.cloudformation.parsing import ResourceMap
from moto.ec2.exceptions import EC2ClientError

from local.shims.volumes import Stuck

# How often a change may travel on from resource to resource in one update.
MAX_ROUNDS = 10

# Source: the quotas of each service; CloudFormation shortens what it generates to them.
NAME_LENGTHS = {
    "AWS::IAM::Role": 64,
    "AWS::Lambda::Function": 64,
    "AWS::Scheduler::Schedule": 64,
    "AWS::SQS::Queue": 75,
    "AWS::S3::Bucket": 63,
    "AWS::ElasticLoadBalancingV2::TargetGroup": 32,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": 32,
}
LONGEST_NAME = 128
SUFFIX_LENGTH = 12

# The old ones of these stay until the clean-up, as all do in CloudFormation. Others go first here:
# the old and the new one would have the same generated name.
# Source: CloudFormation user guide, "Update behaviors of stack resources".
GO_IN_CLEAN_UP = frozenset(
    {"AWS::EC2::Instance", "AWS::EC2::VolumeAttachment", "AWS::EFS::MountTarget"}
)

type Properties = dict[str, Any]

_parse_and_name: Callable[..., Any] = parsing.parse_resource_and_generate_name
_parse_and_create: Callable[..., Any] = parsing.parse_and_create_resource
_parse_and_update: Callable[..., Any] = parsing.parse_and_update_resource
_update: Callable[..., None] = ResourceMap.update
_delete: Callable[..., None] = ResourceMap._delete_resource


def generated_name(resource_type: str, stack_name: str, logical_id: str) -> str:
    """The name of an unnamed resource: always the same for a resource of a stack."""
    seed = f"{stack_name}/{logical_id}".encode()
    suffix = hashlib.sha256(seed).hexdigest()[:SUFFIX_LENGTH]
    room = NAME_LENGTHS.get(resource_type, LONGEST_NAME) - SUFFIX_LENGTH - 1
    name = f"{f'{stack_name}-{logical_id}'[:room]}-{suffix}"
    return name.lower() if resource_type == "AWS::S3::Bucket" else name


def _named(logical_id: str, resource_json: Properties, resources: ResourceMap) -> Any:
    """As moto's, and remembers what the properties resolved to."""
    parsed = _parse_and_name(logical_id, resource_json, resources)
    if not parsed:
        return parsed
    kind, resolved, name = parsed
    _resolved(resources)[logical_id] = copy.deepcopy(resolved)
    is_fifo = str(resolved["Properties"].get("FifoQueue")).lower() == "true"
    if resolved["Type"] == "AWS::SQS::Queue" and is_fifo and not name.endswith(".fifo"):
        name = f"{name}.fifo"
    return kind, resolved, name


def _resolved(resources: ResourceMap) -> dict[str, Properties]:
    """Logical id -> the resource with every reference replaced by its value."""
    known: dict[str, Properties] = resources.__dict__.setdefault("resolved", {})
    return known


def _created(logical_id: str, resource_json: Properties, *rest: Any, **more: Any) -> Any:
    """As moto's; a failure says which resource it is about."""
    try:
        return _parse_and_create(logical_id, resource_json, *rest, **more)
    except EC2ClientError as refusal:
        raise _told(logical_id, refusal) from refusal  # moto has no answer for it here
    except Exception as failure:
        failure.add_note(f"while creating {logical_id} ({resource_json['Type']})")
        raise


def _told(logical_id: str, failure: Exception) -> ValidationError:
    return ValidationError(message=f"{logical_id}: {type(failure).__name__}: {failure}")


class RollbackFailed(ValidationError):
    """Neither the update nor the way back worked."""


class Replaced(Exception):
    """What a type's own update raises where CloudFormation makes a new resource."""


def _updated(
    logical_id: str,
    resource_json: Properties,
    resources: ResourceMap,
    account_id: str,
    region_name: str,
) -> Any:
    """As moto's; a type that cannot be updated is replaced instead of lost.

    New tags replace nothing.
    """
    before = _resolved(resources).get(logical_id, {})
    try:
        updated = _parse_and_update(logical_id, resource_json, resources, account_id, region_name)
    except Replaced:
        updated = None
    if updated is not None:
        return updated
    everything: Any = resources
    old = everything._parsed_resources.get(logical_id)
    if old is not None and _untagged(before) == _untagged(_resolved(resources)[logical_id]):
        return old
    is_kept = resource_json.get("UpdateReplacePolicy") == "Retain"
    if old is not None and resource_json["Type"] not in GO_IN_CLEAN_UP and not is_kept:
        _delete(resources, old, resource_json)
    try:
        made = parsing.parse_and_create_resource(
            logical_id, resource_json, resources, account_id, region_name
        )
    except Exception as failure:
        _resolved(resources)[logical_id] = before  # moto comes again, and nothing is done yet
        raise _told(logical_id, failure) from failure
    if old is not None and resource_json["Type"] in GO_IN_CLEAN_UP and not is_kept:
        _at_the_end(resources, old, resource_json)
    return made


def _untagged(resource: Properties) -> Properties:
    properties: Properties = resource.get("Properties", {})
    return {key: value for key, value in properties.items() if key != "Tags"}


def _update_all(
    resources: ResourceMap, template: Properties, parameters: Properties | None = None
) -> None:
    """As moto's; then everything whose resolved properties changed by it is updated too.

    What was replaced or removed goes at the end, and stays where the update fails. Then all is
    put back as it was. Source: CloudFormation user guide, "Stack failure options".
    """
    everything: Any = resources
    before = copy.deepcopy(everything._template)
    given, known = copy.deepcopy(everything.input_parameters), set(everything._parsed_resources)
    try:
        _update_and_clean_up(resources, template, parameters)
    except Exception as failure:
        _roll_back(resources, before, given, known, failure)
        raise


def _update_and_clean_up(
    resources: ResourceMap, template: Properties, parameters: Properties | None
) -> None:
    replaced = resources.__dict__["clean_up"] = []
    try:
        _update_what_changed(resources, template, parameters)
    finally:
        del resources.__dict__["clean_up"]
    for old, resource_json in reversed(replaced):
        _delete(resources, old, resource_json)


def _roll_back(
    resources: ResourceMap,
    before: Properties,
    given: Properties,
    known: set[str],
    failure: Exception,
) -> None:
    """Update to the template before; what was added goes. Errors: RollbackFailed, with both."""
    everything: Any = resources
    everything.__dict__["rolls_back"] = True
    try:
        with warnings.catch_warnings():  # moto: what was never made cannot be deleted
            warnings.simplefilter("ignore")
            _update_and_clean_up(resources, before, given)
    except Exception as second:  # noqa: BLE001 - whatever it is, both are told
        said = f"UPDATE_ROLLBACK_FAILED: {second}; the update had failed: {failure}"
        raise RollbackFailed(message=said) from failure
    finally:
        del everything.__dict__["rolls_back"]
    for added in everything._parsed_resources.keys() - known:
        del everything._parsed_resources[added]


def _delete_resource(resources: ResourceMap, old: Any, resource_json: Properties) -> None:
    """What an update has removed from the template, or what a way back takes away again.

    Source: CloudFormation reference, "DeletionPolicy attribute": what is Retain stays in both
    cases, and RetainExceptOnCreate goes with the deployment that made it and failed.
    """
    kept = ["Retain"]
    if not resources.__dict__.get("rolls_back"):
        kept.append("RetainExceptOnCreate")
    if resource_json.get("DeletionPolicy") not in kept:
        _at_the_end(resources, old, resource_json)


def _at_the_end(resources: ResourceMap, old: Any, resource_json: Properties) -> None:
    """In an update at its end, since it may fail."""
    clean_up = resources.__dict__.get("clean_up")
    if clean_up is not None:
        clean_up.append((old, resource_json))
    else:
        _delete(resources, old, resource_json)


def _update_what_changed(
    resources: ResourceMap, template: Properties, parameters: Properties | None
) -> None:
    _update(resources, template, parameters)
    for _ in range(MAX_ROUNDS):
        stale = list(filter(lambda name: _is_stale(resources, name), template["Resources"]))
        if not stale:
            return
        everything: Any = resources
        for logical_id in stale:
            everything._parsed_resources[logical_id] = _updated(
                logical_id,
                template["Resources"][logical_id],
                resources,
                everything._account_id,
                everything._region_name,
            )
    raise AssertionError(f"an update does not come to rest: {stale}")


def _is_stale(resources: ResourceMap, logical_id: str) -> bool:
    before = _resolved(resources).get(logical_id)
    if before is None:
        return False
    everything: Any = resources
    now: Any = parsing.clean_json(everything._resource_json_map[logical_id], resources)
    return bool(now["Properties"] != before["Properties"])


def _delete_all(resources: ResourceMap) -> None:
    """The other way round than they were made; moto's order is that of chance."""
    everything: Any = resources
    made, templates = everything._parsed_resources, everything._resource_json_map
    for _ in range(MAX_ROUNDS):
        trouble: Exception | None = None
        for logical_id in reversed([name for name in made if name in templates]):
            if templates[logical_id].get("DeletionPolicy", "").startswith("Retain"):
                continue
            try:
                everything._delete_resource(made[logical_id], templates[logical_id])
            except Stuck:
                raise
            except Exception as failure:  # noqa: BLE001 - what depends on others comes again
                failure.add_note(f"while deleting {logical_id}")
                trouble = failure
            else:
                del made[logical_id]
        if trouble is None:
            return
    assert trouble
    raise trouble


def _update_parameters(
    self: CloudFormationBackend, instance: Any, incoming_params: list[Properties]
) -> dict[str, str]:
    """The CLI asks for the previous value of parameters that were never given but defaulted."""
    values = dict(instance.parameters)
    given = {
        each["ParameterKey"]: each["ParameterValue"]
        for each in incoming_params
        if "ParameterValue" in each
    }
    named = {each["ParameterKey"] for each in incoming_params}
    return {key: value for key, value in values.items() if key in named} | given


def mend() -> None:
    parser: Any = parsing
    resources: Any = ResourceMap
    backend: Any = CloudFormationBackend
    parser.generate_resource_name = generated_name
    parser.parse_resource_and_generate_name = _named
    parser.parse_and_create_resource = _created
    parser.parse_and_update_resource = _updated
    resources.update = _update_all
    resources.delete = _delete_all
    resources._delete_resource = _delete_resource
    backend._resolve_update_parameters = _update_parameters
