"""Parameters of Parameter Store, mended: their tags are a mapping, which moto takes for a list."""

from typing import Any

from local.shims.resource import Resource, register


class Parameter(Resource):
    type = "AWS::SSM::Parameter"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        tags = properties.get("Tags", {})
        self._ssm.put_parameter(
            name=self.name,
            description=properties.get("Description", ""),
            value=properties["Value"],
            parameter_type=properties["Type"],
            allowed_pattern=properties.get("AllowedPattern", ""),
            keyid="",
            overwrite=self._is_there,
            tags=[] if self._is_there else [{"Key": k, "Value": v} for k, v in tags.items()],
            data_type=properties.get("DataType", "text"),
            tier=properties.get("Tier"),
            policies=properties.get("Policies"),
        )
        self.attributes = {"Type": properties["Type"], "Value": properties["Value"]}

    def remove(self) -> None:
        self._ssm.delete_parameter(self.name)

    @property
    def _is_there(self) -> bool:
        return bool(self._ssm.get_parameters([self.name]))

    @property
    def _ssm(self) -> Any:
        return self.place.backend("ssm")


def install() -> None:
    register((Parameter,))
