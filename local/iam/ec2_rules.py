"""Which actions on which resources IAM checks for EC2's calls.

Source: Service Authorization Reference, "Amazon EC2".
"""

from collections.abc import Iterator, Sequence

from moto.ec2.exceptions import EC2ClientError

from local.iam import kms_rules
from local.iam.launches import fleet_launches, request_tags, run_launch, tagging, tags_context
from local.iam.patterns import NotModelledError
from local.iam.requests import Call, Check

ON_INSTANCES = frozenset(
    {"RebootInstances", "StartInstances", "StopInstances", "TerminateInstances"}
)

# The type in the ARN of what an id belongs to.
TYPES = {
    "eni": "network-interface",
    "fleet": "fleet",
    "i": "instance",
    "lt": "launch-template",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}


def checks_of(call: Call) -> Sequence[Check]:
    if call.name.startswith("Describe"):
        # No Describe call has resources of its own.
        return [Check(f"ec2:{call.name}", "*", {"ec2:Region": call.region})]
    if call.name in ON_INSTANCES:
        return list(_on_instances(call))
    if call.name == "GetConsoleOutput":
        return [_on(call, call.params["InstanceId"])]
    if call.name in ("CreateTags", "DeleteTags"):
        return list(_on_tags(call))
    if call.name in ("CreateFleet", "RunInstances"):
        return _launching(call)
    raise NotModelledError(f"ec2:{call.name}")


def _on_instances(call: Call) -> Iterator[Check]:
    for instance_id in call.params["InstanceIds"]:
        yield _on(call, instance_id)
        if call.name == "StartInstances":
            yield from kms_rules.of_start(call, instance_id)


def _on(call: Call, resource_id: str) -> Check:
    """An id that does not exist has no tags, so that a condition on one is not met."""
    prefix = resource_id.split("-")[0]
    if prefix not in TYPES:
        raise NotModelledError(f"ec2:{call.name} on {resource_id}")
    resource = f"{TYPES[prefix]}/{resource_id}"
    context = {"ec2:Region": call.region, **tags_context(call, resource)}
    return Check(f"ec2:{call.name}", call.arn(resource), context)


def _on_tags(call: Call) -> Iterator[Check]:
    tags = {tag["Key"]: tag.get("Value", "") for tag in call.params.get("Tags") or ()}
    for resource_id in call.params["Resources"]:
        check = _on(call, resource_id)
        yield Check(check.action, check.resource, {**check.context, **request_tags(tags)})


def _launching(call: Call) -> Sequence[Check]:
    try:
        checks = _fleet(call) if call.name == "CreateFleet" else _run(call)
        return list({(one.action, one.resource, str(one.context)): one for one in checks}.values())
    except EC2ClientError:
        # No such launch template, which EC2 says itself.
        return [Check(f"ec2:{call.name}", "*", {"ec2:Region": call.region})]


def _run(call: Call) -> Iterator[Check]:
    launch = run_launch(call)
    yield from launch.checks("ec2:RunInstances", is_launch=False)
    yield from launch.consequences()


def _fleet(call: Call) -> Iterator[Check]:
    """A fleet of type `instant` launches as its caller, with RunInstances."""
    launches = list(fleet_launches(call))
    tags = {
        one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one.get("Tags") or ()}
        for one in call.params.get("TagSpecifications") or ()
    }
    fleet = {"ec2:Region": call.region, **request_tags(tags.get("fleet", {}))}
    yield Check("ec2:CreateFleet", call.arn("fleet/*"), fleet)
    for launch in launches:
        yield from launch.checks("ec2:CreateFleet", is_launch=False)
    for kind, of_kind in tags.items():
        yield tagging(call, kind, of_kind, "CreateFleet")
    for launch in launches:
        yield from launch.checks("ec2:RunInstances", is_launch=True)
        yield from launch.consequences()
