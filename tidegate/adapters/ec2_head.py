"""The head's instance on EC2, found by its tags: a replaced head carries the same ones.

Login nodes are of no use without it: they are started and stopped with it, each kind by a request
of its own. EC2 starts none of a request where it cannot start one. Sources:
aws-solutions/instance-scheduler-on-aws#304; cloud-custodian/cloud-custodian#463.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_not_now, message_of, tolerating
from tidegate.core.model.ec2 import (
    CLUSTER_TAG,
    HEAD_ROLE,
    LOGIN_ROLE,
    LOGIN_TAG,
    ROLE_TAG,
    InstanceState,
    login_words,
)
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
            return "the head: EC2 shows no instance with its tags"
        login = [(login_words(kind), ids) for kind, ids in _login_nodes(found)]
        with aws_call():
            refused = [
                f"{whose}: {text}"
                for whose, ids in (("the head", [head["InstanceId"]]), *login)
                if (text := _refused(call, ids))
            ]
        return "; ".join(refused)

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


def _login_nodes(found: "Iterable[InstanceTypeDef]") -> Sequence[tuple[str, list[str]]]:
    """Their ids by kind; "" for those that were deployed before they bore its tag."""
    ids: dict[str, list[str]] = {}
    for each in found:
        if _role(each) == LOGIN_ROLE:
            ids.setdefault(_tag(each, LOGIN_TAG), []).append(each["InstanceId"])
    return [(kind, sorted(those)) for kind, those in sorted(ids.items())]


def _state(instance: "InstanceTypeDef") -> InstanceState:
    return InstanceState(instance["State"]["Name"])


def _role(instance: "InstanceTypeDef") -> str:
    return _tag(instance, ROLE_TAG)


def _tag(instance: "InstanceTypeDef", key: str) -> str:
    return next((tag["Value"] for tag in instance.get("Tags", ()) if tag["Key"] == key), "")


def _newest(instances: "Iterable[InstanceTypeDef]") -> "InstanceTypeDef | None":
    heads = (each for each in instances if _role(each) == HEAD_ROLE)
    ordered = sorted(heads, key=lambda one: (one["LaunchTime"], one["InstanceId"]))
    return ordered[-1] if ordered else None
