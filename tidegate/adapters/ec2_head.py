"""The head's instance on EC2, found by its tags: a replaced head carries the same ones.

Login nodes are of no use without it: they are started and stopped with it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_not_now, message_of, tolerating
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, LOGIN_ROLE, ROLE_TAG, InstanceState
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
        """The head's; that of a login node where this one has not followed the head."""
        found = self._of_roles(HEAD_ROLE, LOGIN_ROLE)
        head = _newest(found)
        if head is None:
            return None
        state, login = _state(head), {_state(each) for each in found if _role(each) == LOGIN_ROLE}
        left_behind = {
            InstanceState.RUNNING: InstanceState.STOPPED,
            InstanceState.STOPPED: InstanceState.RUNNING,
        }.get(state)
        return left_behind if left_behind in login else state

    def shown(self) -> tuple[str, InstanceState] | None:
        """Its instance id and state; None: EC2 shows none."""
        found = self._head()
        return (found["InstanceId"], _state(found)) if found else None

    def start(self) -> str:
        return self._ask(lambda ids: self.client.start_instances(InstanceIds=ids))

    def stop(self) -> str:
        return self._ask(lambda ids: self.client.stop_instances(InstanceIds=ids))

    def _ask(self, call: Callable[[list[str]], object]) -> str:
        """A login node that EC2 refuses keeps no head, and is asked for again by its state."""
        found = self._of_roles(HEAD_ROLE, LOGIN_ROLE)
        head = _newest(found)
        if head is None:
            return "EC2 shows no instance with the head's tags"
        login = sorted(each["InstanceId"] for each in found if _role(each) == LOGIN_ROLE)
        with aws_call():
            refused = _refused(call, [head["InstanceId"]])
            of_login = _refused(call, login) if login else ""
        return refused or (of_login and f"of the login nodes: {of_login}")

    def _head(self) -> "InstanceTypeDef | None":
        return _newest(self._of_roles(HEAD_ROLE))

    def _of_roles(self, *roles: str) -> "list[InstanceTypeDef]":
        pages = self.client.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": f"tag:{CLUSTER_TAG}", "Values": [self.cluster]},
                {"Name": f"tag:{ROLE_TAG}", "Values": roles},
                {"Name": "instance-state-name", "Values": _CANDIDATES},
            ]
        )
        with aws_call():
            return [
                instance
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation.get("Instances", ())
            ]


def _refused(call: Callable[[list[str]], object], ids: list[str]) -> str:
    answer = tolerating(lambda: call(ids), is_not_now)
    return message_of(answer) if isinstance(answer, ClientError) else ""


def _state(instance: "InstanceTypeDef") -> InstanceState:
    return InstanceState(instance["State"]["Name"])


def _role(instance: "InstanceTypeDef") -> str:
    return next((tag["Value"] for tag in instance.get("Tags", ()) if tag["Key"] == ROLE_TAG), "")


def _newest(instances: "Iterable[InstanceTypeDef]") -> "InstanceTypeDef | None":
    heads = (each for each in instances if _role(each) == HEAD_ROLE)
    ordered = sorted(heads, key=lambda one: (one["LaunchTime"], one["InstanceId"]))
    return ordered[-1] if ordered else None
