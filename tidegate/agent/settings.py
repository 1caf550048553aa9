"""The agent's settings, from its environment file; all problems are shown at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tidegate.core.model.errors import BadConfig
from tidegate.core.offers.periods import Every
from tidegate.wire.finite import FINITE

PREFIX = "TIDEGATE_"

type Word = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=2_048)]
type Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=2_048)]


class Settings(BaseModel):
    """What the head's boot writes to /etc/tidegate/agent.env, as TIDEGATE_<NAME>.

    `head_instance_id` None: asked of the metadata service. `look_queue_url` None: digests
    alone make the planner look.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", **FINITE)

    cluster: Word
    bucket: Word
    bus: Word
    urgent_queue_url: Url
    routine_queue_url: Url
    look_queue_url: Url | None = None
    shared_dir: Path
    slurmctld_log: Path
    head_instance_id: Word | None = None
    heartbeat_s: float = Field(default=60.0, ge=1.0, le=300.0)
    report_every: Every | None = Field(default=None, description="no report when left out")
    metrics_dir: Path | None = Field(default=None, description="none are written when left out")
    slurm_conf: Path | None = Field(default=None, description="where Slurm's default is not it")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """The settings. Errors: BadConfig, with one line per problem.

        Other TIDEGATE_ names are none of ours: the same file may serve other programs.
        """
        given = {
            name: value
            for name in cls.model_fields
            if (value := environment.get(f"{PREFIX}{name.upper()}", "")) != ""
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            problems = [
                f"  {PREFIX}{str(problem['loc'][0]).upper()}  {problem['msg']}"
                for problem in error.errors()
            ]
            head = f"agent environment: {len(problems)} problem{'s' * (len(problems) != 1)}"
            raise BadConfig("\n".join([head, *problems])) from error
