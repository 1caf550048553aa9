"""What EC2 Image Builder's pipelines are made of. Nothing is built: a test writes the parameter.

Source: CloudFormation reference, AWS::ImageBuilder; Image Builder's API, CreateComponent and
CreateImageRecipe: what has a name and a version cannot be changed.
"""

from typing import Any

from local.shims.resource import Resource, register


class _Part(Resource):
    """One that is changed in place."""

    name_property = "Name"
    kind = ""

    def put(self, properties: dict[str, Any]) -> None:
        name = self.name.lower().replace("_", "-")
        self.physical_id = self.place.arn("imagebuilder", f"{self.kind}/{name}")
        self.attributes = {"Arn": self.physical_id}


class _Versioned(_Part):
    """One that is made anew under another version."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._properties: dict[str, Any] = {}

    def put(self, properties: dict[str, Any]) -> None:
        before, version = self._properties, properties["Version"]
        said = {name: value for name, value in properties.items() if name != "Tags"}
        if before and before["Version"] == version and before != said:
            raise ValueError(f"{self.kind} {self.name} {version} is there and cannot be changed")
        super().put(properties)
        self._properties = said
        self.attributes = {"Arn": f"{self.physical_id}/{version}"}


class Component(_Versioned):
    type, kind = "AWS::ImageBuilder::Component", "component"


class ImageRecipe(_Versioned):
    type, kind = "AWS::ImageBuilder::ImageRecipe", "image-recipe"


class InfrastructureConfiguration(_Part):
    type = "AWS::ImageBuilder::InfrastructureConfiguration"
    kind = "infrastructure-configuration"


class DistributionConfiguration(_Part):
    type, kind = "AWS::ImageBuilder::DistributionConfiguration", "distribution-configuration"


class ImagePipeline(_Part):
    type, kind = "AWS::ImageBuilder::ImagePipeline", "image-pipeline"


class LifecyclePolicy(_Part):
    type, kind = "AWS::ImageBuilder::LifecyclePolicy", "lifecycle-policy"


def install() -> None:
    register(
        (
            *(Component, ImageRecipe, InfrastructureConfiguration, DistributionConfiguration),
            *(ImagePipeline, LifecyclePolicy),
        )
    )
