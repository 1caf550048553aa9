"""What a ParallelCluster 3 configuration must look like to be translated.

Source: AWS ParallelCluster guide v3, "Cluster configuration file", Scheduling section.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_pascal

from tidegate.wire.finite import FINITE
from tidegate.wire.problems import Problem, problems_of


class _Part(BaseModel):
    """Names that are not read may hold anything."""

    model_config = ConfigDict(alias_generator=to_pascal, **FINITE)


class Instance(_Part):
    instance_type: str


class ComputeResource(_Part):
    name: str
    instance_type: str | None = None
    instances: list[Instance] | None = None
    min_count: int | None = Field(default=None, ge=0)
    max_count: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _has_types(self) -> Self:
        if not (self.instance_type or self.instances):
            raise ValueError("has neither InstanceType nor Instances")
        return self


class Networking(_Part):
    subnet_ids: list[str] | None = None


class Queue(_Part):
    name: str
    capacity_type: str | None = None
    networking: Networking | None = None
    compute_resources: list[ComputeResource] | None = None


class Settings(_Part):
    scaledown_idletime: int | None = Field(default=None, ge=0)


class Scheduling(_Part):
    slurm_queues: list[Queue] | None = None
    slurm_settings: Settings | None = None


class Configuration(_Part):
    region: str | None = None
    scheduling: Scheduling


def problems(text: Any) -> list[Problem]:
    """What of it cannot be translated, each with its place."""
    try:
        Configuration.model_validate(text, strict=True)
    except ValidationError as error:
        return problems_of(error, Configuration)
    return []
