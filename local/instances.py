"""The instances of the local EC2, for who looks at them several times a second."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moto.ec2.models import ec2_backends

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

type Instances = dict[str, "InstanceTypeDef"]


class Listing:
    """The instances that pass some filters, by id, as DescribeInstances tells them.

    It is asked only when something has changed: to write and to read all instances as XML takes
    20 ms. So moto has to be in this process, and what the filters ask for must not change while
    an instance keeps its state, volumes and number of tags.
    """

    def __init__(self, ec2: "EC2Client", filters: "Sequence[FilterTypeDef]") -> None:
        self._ec2 = ec2
        self._filters = filters
        self._marks: list[object] | None = None
        self._listed: Instances = {}

    def now(self) -> Instances:
        """The instances as they are now."""
        # Before EC2 is asked: what changes meanwhile is then asked for once more.
        marks = _marks()
        if marks != self._marks:
            pages = self._ec2.get_paginator("describe_instances").paginate(Filters=self._filters)
            self._listed = {
                instance["InstanceId"]: instance
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            }
            self._marks = marks
        return dict(self._listed)


def _marks() -> list[object]:
    """What tells whether an instance has come or changed. `list`: other threads add meanwhile."""
    backends: list[Any] = [
        backend for account in list(ec2_backends.values()) for backend in list(account.values())
    ]
    return [
        (
            instance.id,
            instance.state,
            instance.lifecycle,
            tuple(each.volume_id for each in list(instance.block_device_mapping.values())),
            len(backend.tags.get(instance.id, ())),
        )
        for backend in backends
        for reservation in list(backend.reservations.values())
        for instance in list(reservation.instances)
    ]
