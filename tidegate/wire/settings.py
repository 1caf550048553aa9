"""What the deployed stack tells a Lambda function, as environment variables.

The stack writes them with `environment()`, the function reads them with `from_environment()`:
neither knows their names.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError

from tidegate.core.model.errors import BadConfig
from tidegate.wire.finite import FINITE

PREFIX = "TIDEGATE_"

Filled = Annotated[str, Field(min_length=1)]


class FunctionSettings(BaseModel):
    """Where a function finds its cluster. All values are names and ids, none is a secret.

    `cluster_bucket`, `cluster_key`: the cluster file as it was deployed. `templates`: pool ->
    (launch template id, version, digest), and the same for its capacity blocks. `subnets`: zone ->
    subnet id. `placement_groups`: pool and zone -> group. `topic`: where people are told, "": they
    are not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", **FINITE)

    cluster_bucket: Filled
    cluster_key: Filled
    table: Filled
    bucket: Filled
    bus: Filled
    look_queue_url: Filled
    dead_look_queue_url: Filled
    urgent_queue_url: Filled
    routine_queue_url: Filled
    templates: Json[dict[str, tuple[Filled, Filled, Filled]]]
    subnets: Json[dict[str, Filled]]
    placement_groups: Json[dict[str, Filled]] = Field(default_factory=dict)
    topic: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Errors: BadConfig, with one line per problem."""
        given = {
            name: value
            for name in cls.model_fields
            if (value := environment.get(f"{PREFIX}{name.upper()}")) is not None
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            lines = [
                f"  {PREFIX}{str(problem['loc'][0]).upper()}  {problem['msg']}"
                for problem in error.errors()
            ]
            raise BadConfig("\n".join(["the function's environment is wrong:", *lines])) from error


def environment(
    *,
    templates: Mapping[str, tuple[str, str, str]],
    subnets: Mapping[str, str],
    placement_groups: Mapping[str, str],
    topic: str = "",
    **names: str,
) -> dict[str, str]:
    """The variables of a function. The values may be CDK tokens, and Lambda counts each letter."""
    fields = {
        **names,
        "templates": _tight({pool: list(each) for pool, each in templates.items()}),
        "subnets": _tight(dict(subnets)),
        "placement_groups": _tight(dict(placement_groups)),
        "topic": topic,
    }
    assert fields.keys() == FunctionSettings.model_fields.keys(), "names must be the model's"
    return {f"{PREFIX}{name.upper()}": value for name, value in fields.items() if value}


def _tight(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
