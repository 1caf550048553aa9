"""What a cluster file says about Slurm."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from tidegate.core.interruption.save import OUTLIVED_S
from tidegate.core.model.cluster import DEFAULT_HEALTH_REASONS
from tidegate.wire import names
from tidegate.wire.advice import AdviceModel
from tidegate.wire.health_findings import FindingKey, OwnAction
from tidegate.wire.repositories import InstalledOs, RepositoryModel
from tidegate.wire.section import Section
from tidegate.wire.slurm_numbers import slurm_number
from tidegate.wire.slurm_settings import short_times, unshipped_plugins, usable_settings
from tidegate.wire.static_lines import no_name_twice

JOB_SUBMIT = "jobsubmitplugins"
TOPOLOGY_PLUGIN = "topologyplugin"
FIRST_WITH_TOPOLOGY = "25.05"
HEALTH_CHECK = "/etc/tidegate/health-check"
_OFF = ("no", "false", "down", "0")
# What Tidegate's cgroup.conf keeps jobs from (userdata/render.py).
_GUARDS = {
    "constraindevices": "jobs reach GPUs that they did not ask for",
    "constrainramspace": "a job that takes more memory than it has takes it from its neighbours",
}
# 1 and 2: of old for associations and limits.
_ASSOCIATIONS = {"associations", "limits", "qos", "safe", "wckeys", "all", "1", "2"}


class SlurmModel(Section):
    """The Slurm that head and nodes run."""

    version: names.SlurmVersion = Field(
        default="23.11",
        description="Slurm release of head and nodes: 22.05, 23.11, 24.11, 25.05, 25.11 or 26.05",
    )
    accounting: bool = Field(
        default=False, description="slurmdbd and its database on the head's data volume"
    )
    settings: Annotated[
        dict[names.SlurmSetting, names.SettingValue], AfterValidator(usable_settings)
    ] = Field(default_factory=dict, description="lines of slurm.conf, over the usual ones")
    health_reasons: tuple[names.ReasonPrefix, ...] = Field(
        default=DEFAULT_HEALTH_REASONS,
        description="what the drain reasons of your own health checks begin with: such nodes are"
        " replaced, those that a person drains are kept",
    )
    health_actions: dict[FindingKey, OwnAction] = Field(
        default_factory=dict,
        description="what follows on new nodes from a finding, like xid 48 or throttle, instead of"
        " what `tidegate findings` says: ignore, tell, reset, reboot or replace",
    )
    static: Annotated[tuple[names.StaticLine, ...], AfterValidator(no_name_twice)] = Field(
        default=(),
        description="lines of slurm.conf for nodes and partitions that are not Tidegate's:"
        " it leaves them alone",
    )
    cgroup: dict[names.CgroupSetting, names.SettingValue] = Field(
        default_factory=dict, description="lines of cgroup.conf, over the usual ones"
    )
    submit_estimate: bool = Field(
        default=False,
        description="sbatch, srun and salloc say what the job will cost, by a script in slurmctld"
        " (JobSubmitPlugins=lua)",
    )
    advice: AdviceModel | None = Field(
        default=None,
        description="batch jobs of classes that opt in ask what `tidegate advise` has proved, by"
        " the same script; nothing is changed when left out",
    )
    topology: Literal["tree"] | None = Field(
        default=None,
        description="jobs of several nodes get such as are close in EC2's network, as EC2 tells it"
        " (Slurm 26.05)",
    )
    repositories: dict[InstalledOs, RepositoryModel] = Field(
        default_factory=dict,
        description="where images of AWS and Canonical get this release from, by system; Ubuntu"
        " 24.04 has 23.11 itself, and is the head's system",
    )

    @field_validator("submit_estimate", "advice")
    @classmethod
    def _has_its_place[Wanted](cls, wanted: Wanted, info: ValidationInfo) -> Wanted:
        """Other plugins stay beside ours."""
        said = {key.lower(): value for key, value in info.data.get("settings", {}).items()}
        if wanted and "lua" in said.get(JOB_SUBMIT, "").split(","):
            text = (
                "settings.JobSubmitPlugins has lua, and Slurm runs one script of Lua: leave it out"
            )
            raise ValueError(f"{text}, and name yours job_submit.site.lua, which ours runs first")
        return wanted

    @field_validator("topology")
    @classmethod
    def _knows_nodes_places(cls, wanted: str | None, info: ValidationInfo) -> str | None:
        """Source: Slurm 25.05, slurm.conf(5), Topology of a node."""
        version = info.data.get("version")
        if wanted and version is not None and version < FIRST_WITH_TOPOLOGY:
            text = f"{wanted}, and nodes of Slurm {version} cannot say where they are"
            raise ValueError(f"{text}; set slurm.version to 26.05, or leave topology out")
        if wanted and any(k.lower() == TOPOLOGY_PLUGIN for k in info.data.get("settings", ())):
            text = f"{wanted}, and settings has a TopologyPlugin of its own"
            raise ValueError(f"{text}; leave one of the two out")
        return wanted

    @property
    def has_accounting(self) -> bool:
        """By a slurmdbd of ours or of somebody else."""
        return self.accounting or any(k.lower() == "accountingstoragetype" for k in self.settings)

    @property
    def has_own_accounts_only(self) -> bool:
        """Whether a job's account is one that its user is in.

        Source: slurm.conf, AccountingStorageEnforce: limits, qos, safe, wckeys and all bring
        associations with them.
        """
        key = "accountingstorageenforce"
        said = (text for name, text in self.settings.items() if name.lower() == key)
        words = set(next(said, "").lower().split(","))
        return self.has_accounting and bool(words & _ASSOCIATIONS)

    def notes(self) -> Iterator[str]:
        """What lines of slurm.conf take from Tidegate's nodes without a word of Slurm's."""
        said = {key.lower(): (key, value) for key, value in self.settings.items()}
        if "healthcheckprogram" in said:
            yield (
                f"slurm.settings.{said['healthcheckprogram'][0]} takes the place of Tidegate's:"
                " nobody looks for GPUs that are gone or slowed down, ECC errors, a full disk or a"
                " lost mount any more, but for ECC after a job, and for Xids in the kernel's log;"
                f" have it run {HEALTH_CHECK} as well"
            )
        limits = {key.lower(): (key, value.lower()) for key, value in self.cgroup.items()}
        for key, does in _GUARDS.items():
            if key in limits and limits[key][1] in _OFF:
                yield f"slurm.cgroup.{limits[key][0]} is {limits[key][1]}: {does}"
        for line in (*unshipped_plugins(self.settings), *short_times(self.settings)):
            yield f"slurm.settings.{line}"
        if self._has_own_lua:
            yield (
                f"slurm.settings.{said[JOB_SUBMIT][0]} has lua: slurmctld does not start without"
                " /etc/slurm/job_submit.lua, and hooks come later: have it in the head's image"
            )
        silent, silent_s = said.get("slurmdtimeout", ("", ""))
        is_bound = 0 < (slurm_number(silent_s, 16) or 0) <= OUTLIVED_S
        if silent and not is_bound:
            yield (
                f"slurm.settings.{silent} is {silent_s}: as long a dead node of which EC2 says"
                " nothing keeps its jobs, with 0 for ever; Tidegate's own line says 120"
            )
        interval, every_s = said.get("healthcheckinterval", ("", ""))
        if every_s.strip() == "0":
            yield f"slurm.settings.{interval} is 0: Slurm never runs its health check"

    @property
    def _has_own_lua(self) -> bool:
        named = next((v for k, v in self.settings.items() if k.lower() == JOB_SUBMIT), "")
        return "lua" in named.lower().split(",")

    def repository(self, os: str) -> RepositoryModel | None:
        """Where images of this system get the release from; None: the file does not say."""
        return next((each for name, each in self.repositories.items() if name == os), None)
