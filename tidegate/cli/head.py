"""The head of a deployed cluster, as commands reach it."""

from tidegate.adapters.clients import client
from tidegate.adapters.ec2_head import Ec2Head
from tidegate.adapters.head_shell import HeadShell
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients


def head_shell(file: ClusterFile, clients: Clients | None = None) -> HeadShell:
    """Its administrator's shell, through Session Manager.

    Errors: BadConfig, EC2 shows no head; Throttled, NotAuthorized.
    """
    return HeadShell(file.region, _instance_id(file, clients))


def _instance_id(file: ClusterFile, clients: Clients | None) -> str:
    if file.existing.head:
        return file.existing.head.instance
    ec2 = clients("ec2") if clients else client("ec2", file.region)
    shown = Ec2Head(ec2, file.cluster.name).shown()
    if shown is None:
        raise BadConfig(f"EC2 shows no head of {file.cluster.name}: is the cluster deployed?")
    instance_id, state = shown
    if state is InstanceState.STOPPED:
        raise BadConfig(
            f"the head {instance_id} is stopped; start the cluster first: tidegate keep-up"
        )
    return instance_id
