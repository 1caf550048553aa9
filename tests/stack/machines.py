"""What head, nodes and the network do under roles of their own, call by call.

Their scripts run in the boot tests and in `make demo`; here it is about their rights.
"""

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID

from local.iam.roles import role_arns
from local.stack_world import StackWorld
from tests.stack import story
from tests.stack.world import NAME, PACKAGES, PACKAGES_KEY
from tidegate.core.model.errors import TidegateError

BUNDLE = f"bundle-of-{NAME}.tgz"
FLOWS = f"/tidegate/{NAME}/flows"
NODE_LOGS = f"/tidegate/{NAME}/nodes"


def whole(world: StackWorld) -> story.Missing:
    """A head and a node boot, a night passes, and the network tells of its traffic."""
    yield from _tried("no word that nothing is decided yet", world.decisions.newest)
    yield from story.opening(world)
    yield from boot(world, world.head_id, "HeadRole")
    yield from _tried(
        "no word on the head's own files",
        lambda: world.head("ssm").get_parameter(Name=f"/tidegate/{NAME}/head"),
    )
    yield from _tried("nobody tells who ran", lambda: story.hand_in(world))
    nodes = story.buy(world)
    for node in nodes:
        yield from boot(world, node, "NodesRole")
        yield from ship_logs(world, node)
        story.warn(world, node)
    if not nodes:
        yield "no node for a waiting job"
    yield from _tried("no order taken", lambda: _take_orders(world))
    yield from _tried("nothing of what was decided", world.decisions.newest)
    yield from story.night(world)
    yield from flows(world)


def boot(world: StackWorld, instance_id: str, role: str) -> story.Missing:
    """The Munge key, the scripts, the shared files, and the word that it is ready."""
    secret, bucket = _kept(world, "AWS::SecretsManager::Secret"), _bundles(world)
    get: dict[str, Callable[[], object]] = {
        f"{role}: no Munge key": lambda: world.machine(
            instance_id, "secretsmanager"
        ).get_secret_value(SecretId=secret),
        f"{role}: no scripts": lambda: world.machine(instance_id, "s3").get_object(
            Bucket=bucket, Key=BUNDLE
        ),
        f"{role}: no word of its boot": lambda: world.tell_of_boot(instance_id, "NodeReady"),
    }
    for missing, call in get.items():
        yield from _tried(missing, call)
    yield from fetch_packages(world, world.machine(instance_id, "s3"), role)
    files = _kept(world, "AWS::EFS::FileSystem")
    arn = f"arn:aws:elasticfilesystem:us-east-1:{DEFAULT_ACCOUNT_ID}:file-system/{files}"
    wants = ("ClientMount", "ClientWrite", *(("ClientRootAccess",) if role == "HeadRole" else ()))
    for want in wants:
        if not world.cloud.authorizer.allows(_role(world, role), f"elasticfilesystem:{want}", arn):
            yield f"{role}: no {want} of the shared files"


def fetch_packages(world: StackWorld, s3: Any, role: str) -> story.Missing:
    """Slurm's packages and their key, as the stage `packages` asks S3."""
    observer = world.cloud.observer("s3")
    observer.create_bucket(Bucket=PACKAGES)
    for name in ("slurm/Packages", PACKAGES_KEY):
        observer.put_object(Bucket=PACKAGES, Key=name, Body=b"x")
    calls: dict[str, Callable[[], object]] = {
        "no list of packages": lambda: s3.list_objects_v2(Bucket=PACKAGES, Prefix="slurm/"),
        "no packages": lambda: s3.get_object(Bucket=PACKAGES, Key="slurm/Packages"),
        "no key of packages": lambda: s3.get_object(Bucket=PACKAGES, Key=PACKAGES_KEY),
    }
    for missing, call in calls.items():
        yield from _tried(f"{role}: {missing}", call)


def ship_logs(world: StackWorld, instance_id: str) -> story.Missing:
    """A node's logs, as the CloudWatch agent ships them."""
    return _shipped(world, world.machine(instance_id, "logs"), "node logs", NODE_LOGS, instance_id)


def flows(world: StackWorld) -> story.Missing:
    """A delivery of flow logs, as the VPC user guide describes it."""
    role, service = _role(world, "FlowRole"), "vpc-flow-logs.amazonaws.com"
    if not world.cloud.authorizer.trusts(role, service, {"aws:SourceAccount": DEFAULT_ACCOUNT_ID}):
        yield "the network may not deliver flow logs"
    logs = world.assumed(role, "logs")
    yield from _tried("flow logs: no groups", logs.describe_log_groups)
    yield from _shipped(world, logs, "flow logs", FLOWS, "eni-1-reject")


def _shipped(world: StackWorld, logs: Any, name: str, group: str, stream: str) -> story.Missing:
    """A stream of its own in a group, and a record in it."""
    place = {"logGroupName": group, "logStreamName": stream}
    event = {"timestamp": int(world.started_at_s * 1000), "message": "said"}
    calls: dict[str, Callable[[], object]] = {
        "no stream": lambda: logs.create_log_stream(**place),
        "no list of streams": lambda: logs.describe_log_streams(logGroupName=group),
        "no records": lambda: logs.put_log_events(**place, logEvents=[event]),
    }
    for missing, call in calls.items():
        yield from _tried(f"{name}: {missing}", call)


def _take_orders(world: StackWorld) -> None:
    assert world.orders(), "none was there"


def _tried(missing: str, call: Callable[[], object]) -> Iterator[str]:
    try:
        call()
    except (ClientError, TidegateError, AssertionError) as error:
        yield f"{missing}: {error}"


def _role(world: StackWorld, name: str) -> str:
    (arn,) = [
        arn
        for role, arn in role_arns(world.deployment.resources).items()
        if role.endswith(name) and not role.startswith("Functions")
    ]
    return arn


def _bundles(world: StackWorld) -> str:
    """A bundle lies in the bucket of the deployment's assets."""
    (found,) = {
        each["Environment"]["Variables"]["TIDEGATE_CLUSTER_BUCKET"]
        for each in world.cloud.observer("lambda").list_functions()["Functions"]
    }
    world.cloud.observer("s3").put_object(Bucket=found, Key=BUNDLE, Body=b"")
    return str(found)


def _kept(world: StackWorld, kind: str) -> str:
    (found,) = world.deployment.physical_ids(kind)
    return found
