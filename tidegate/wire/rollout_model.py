"""What a cluster file says about how new images and settings come to nodes."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tidegate.core.model.alarms import ALARMS_MAX, RolloutAlarms
from tidegate.core.model.site_check import SiteCheck
from tidegate.wire import names
from tidegate.wire.section import Section

# What no job may run as: they reach the machines' roles, with which jobs would be root everywhere.
SYSTEM_USERS = ("root", "slurm", "munge", "nobody")
INLINE_MAX_CHARS = 4096
# With these a check would be several jobs, which no budget counts, or one whose time limit Slurm
# lowers, so that good nodes run into it. Source: sbatch(1).
_NOT_ONE_JOB = re.compile(
    r"^#SBATCH[ \t]+(?:.*[ \t])?(--array|-a(?=[ \t\d])|--time-min|hetjob|packjob)", re.MULTILINE
)

_CHECK = SiteCheck("")

# Source: CloudWatch API, PutMetricAlarm, AlarmName.
type AlarmName = Annotated[
    str, StringConstraints(min_length=1, max_length=255), AfterValidator(alarm_name)
]


def person(user: str) -> str:
    """Who runs a check. Errors: ValueError, for a user of the system."""
    if user.lower() in SYSTEM_USERS:
        raise ValueError(f"must be a person or a user of your own, is {user}")
    return user


def script_text(text: str) -> str:
    """What sbatch is given. Errors: ValueError, for what is neither a script nor a path."""
    if len(text) > INLINE_MAX_CHARS:
        raise ValueError(
            f"has {len(text)} characters, {INLINE_MAX_CHARS} fit: put it on shared storage, and its"
            " path here"
        )
    is_path = text.startswith("/") and not {*" \t\n\\'\"$`"} & {*text}
    if not is_path and not text.startswith("#!"):
        raise ValueError("must begin with #!, or be an absolute path on shared storage")
    if found := _NOT_ONE_JOB.search(text):
        text = f"must not have #SBATCH {found[1]}"
        raise ValueError(f"{text}: a check is one job, with one time limit")
    return text


class SiteCheckModel(Section):
    """A batch job of your own that runs on the first nodes of each new template."""

    script: Annotated[str, StringConstraints(min_length=1), AfterValidator(script_text)] = Field(
        description="what sbatch runs: the script itself, which begins with #!, or its absolute"
        " path on shared storage; exit code 0: the nodes are good"
    )
    user: Annotated[names.UserName, AfterValidator(person)] = Field(
        description="who runs it: a user of the cluster, never root"
    )
    nodes: Annotated[int, Field(ge=1, le=2)] = Field(
        default=_CHECK.nodes, description="on how many nodes at once: 1, or 2 for a collective"
    )
    time_limit_s: Annotated[float, Field(ge=60, le=86400)] = Field(
        default=_CHECK.time_limit_s,
        description="its time limit, rounded up to minutes; what runs into it has failed",
    )
    wait_s: Annotated[float, Field(ge=60, le=604800)] = Field(
        default=_CHECK.wait_s,
        description="how long it may wait for the nodes; then a person is asked",
    )
    pools: Annotated[tuple[names.PoolName, ...], AfterValidator(names.no_repeats)] = Field(
        default=(), description="whose templates it checks; those of all pools when left out"
    )

    def check(self) -> SiteCheck:
        return SiteCheck(self.user, self.nodes, self.time_limit_s, self.wait_s, self.pools)


def alarm_name(name: str) -> str:
    """Errors: ValueError, for what names no alarm of this account and region."""
    if name.startswith("arn:"):
        raise ValueError("must be a name, not an ARN: of an alarm in this account and region")
    return name


class RolloutModel(Section):
    """How new images and settings come to nodes."""

    alarms: Annotated[
        tuple[AlarmName, ...], Field(max_length=ALARMS_MAX), AfterValidator(names.no_repeats)
    ] = Field(
        default=(),
        description="names of CloudWatch alarms, metric or composite ones, of the cluster's account"
        " and region, at most 5: one that goes into ALARM while a pool is on its way to a new"
        " template stops that; none when left out",
    )
    on_alarm: Literal["roll-back", "pause"] = Field(
        default="roll-back", description="what an alarm does: roll-back, or pause until a person"
    )
    check: SiteCheckModel | None = Field(
        default=None, description="your own check of them; none when left out"
    )

    def rollout_alarms(self) -> RolloutAlarms | None:
        return RolloutAlarms(self.alarms, self.on_alarm == "roll-back") if self.alarms else None
