"""A resource type of CloudFormation, as moto's parser wants to meet it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from moto.backends import get_backend
from moto.cloudformation import parsing
from moto.utilities.utils import get_partition


@dataclass(frozen=True, slots=True)
class Place:
    """The account and region that a stack is deployed to."""

    account: str
    region: str

    def backend(self, service: str) -> Any:
        """moto's backend of `service`; global services are kept per partition."""
        backends: Any = get_backend(service)  # type: ignore[call-overload]
        whole = service in ("iam", "route53", "s3", "sts")
        return backends[self.account][get_partition(self.region) if whole else self.region]

    def arn(self, service: str, resource: str) -> str:
        partition = get_partition(self.region)
        return f"arn:{partition}:{service}:{self.region}:{self.account}:{resource}"


class Resource:
    """Base of resource types that moto lacks; a subclass says how it is put and removed.

    `put` creates the resource or brings it to `properties`, and sets `physical_id` (what Ref
    gives) and `attributes` (what GetAtt gives).
    """

    type: ClassVar[str]
    name_property: ClassVar[str] = ""

    cf_resource_type: str
    logical_resource_id: str

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.place = place
        self.physical_id = name
        self.attributes: dict[str, Any] = {}

    def put(self, properties: dict[str, Any]) -> None:
        """Nothing, for types without any effect that could be seen here."""

    def remove(self) -> None:
        """Nothing, for what leaves with the resource that it belongs to."""

    # From here on moto's words, which its parser calls.

    @property
    def physical_resource_id(self) -> str:
        return self.physical_id

    @classmethod
    def cloudformation_type(cls) -> str:
        return cls.type

    @classmethod
    def cloudformation_name_type(cls) -> str:
        return cls.name_property

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return True

    def get_cfn_attribute(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def is_created(self) -> bool:
        return True

    @classmethod
    def create_from_cloudformation_json(
        cls,
        resource_name: str,
        cloudformation_json: Mapping[str, Any],
        account_id: str,
        region_name: str,
        **_: Any,
    ) -> Self:
        made = cls(resource_name, Place(account_id, region_name))
        made.put(dict(cloudformation_json["Properties"]))
        return made

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: Self,
        new_resource_name: str,
        cloudformation_json: Mapping[str, Any],
        **place: str,
    ) -> Self:
        """A new name replaces the resource, as in CloudFormation."""
        if new_resource_name != original_resource.name:
            original_resource.remove()
            return cls.create_from_cloudformation_json(
                new_resource_name, cloudformation_json, place["account_id"], place["region_name"]
            )
        original_resource.put(dict(cloudformation_json["Properties"]))
        return original_resource

    def delete(self, account_id: str, region_name: str) -> None:
        self.remove()


def register(types: Iterable[type[Resource]]) -> None:
    """Make `types` known to moto's parser, in front of its own models of the same types."""
    models: Any = parsing.get_model_map()
    everyone: Any = parsing.get_model_list()
    for each in types:
        models[each.type] = each
        everyone.insert(0, each)
