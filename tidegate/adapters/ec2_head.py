"""The head's instance on EC2, found by its tags: a replaced head carries the same ones."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_not_now, message_of, tolerating
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG, InstanceState
from tidegate.core.model.frozen import frozen

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

# A head that was replaced may still be shutting down beside its successor.
_CANDIDATES = [
    state.value
    for state in InstanceState
    if state not in (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)
]


@frozen
class Ec2Head:
    """The head of one cluster; of several the one launched last."""

    client: "EC2Client"
    cluster: str

    def state(self) -> InstanceState | None:
        found = self._find()
        return InstanceState(found["State"]["Name"]) if found else None

    def shown(self) -> tuple[str, InstanceState] | None:
        """Its instance id and state; None: EC2 shows none."""
        found = self._find()
        return (found["InstanceId"], InstanceState(found["State"]["Name"])) if found else None

    def start(self) -> str:
        return self._ask(lambda ids: self.client.start_instances(InstanceIds=ids))

    def stop(self) -> str:
        return self._ask(lambda ids: self.client.stop_instances(InstanceIds=ids))

    def _ask(self, call: Callable[[list[str]], object]) -> str:
        found = self._find()
        if found is None:
            return "EC2 shows no instance with the head's tags"
        with aws_call():
            answer = tolerating(lambda: call([found["InstanceId"]]), is_not_now)
        return message_of(answer) if isinstance(answer, ClientError) else ""

    def _find(self) -> "InstanceTypeDef | None":
        pages = self.client.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": f"tag:{CLUSTER_TAG}", "Values": [self.cluster]},
                {"Name": f"tag:{ROLE_TAG}", "Values": [HEAD_ROLE]},
                {"Name": "instance-state-name", "Values": _CANDIDATES},
            ]
        )
        with aws_call():
            found = [
                instance
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation.get("Instances", ())
            ]
        return max(found, key=lambda one: (one["LaunchTime"], one["InstanceId"]), default=None)
