"""A ParallelCluster 3 configuration as a cluster file.

Source: AWS ParallelCluster guide v3, "Cluster configuration file", Slurm scheduler.
"""

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from tidegate.cli.pcluster import custom, pools, scripts, storage
from tidegate.cli.pcluster.keys import MEMORY
from tidegate.cli.pcluster.login import login
from tidegate.cli.pcluster.network import Places, network
from tidegate.cli.pcluster.outcome import OTHER_SLURM, Gap, Loss, Translated, Yaml, judge, reason
from tidegate.cli.pcluster.people import people
from tidegate.cli.pcluster.pools import ARM_MACHINE, is_arm
from tidegate.cli.pcluster.shape import Configuration
from tidegate.core.model.ec2 import Market
from tidegate.wire import names
from tidegate.wire.bare_metal import usual_boot_s
from tidegate.wire.deployment import RETENTION_DAYS, HeadModel
from tidegate.wire.prices import price_usd_per_hour
from tidegate.wire.slurm_model import SlurmModel
from tidegate.wire.slurm_settings import usable_settings, why_slurm_ends

# ParallelCluster's own defaults.
IDLE_MIN, LOG_DAYS = 10, 180
YEAR_S = 365 * 24 * 3600
# The system of Tidegate's usual image; others need a repository with Slurm.
OWN_OS = "ubuntu2404"
SAME_OS = {"ubuntu2204": "install-ubuntu22.04", "alinux2023": "install-al2023"}
STAND_IN_USD = 1.0
COMPLETIONS = "/var/log/slurm/jobs.txt"
# Of a boot without scripts, with some minutes to spare.
BOOT_S = 600

type _Line = tuple[int, str, object]

_VERSION: str = SlurmModel.model_fields["version"].default
_SETTING: TypeAdapter[dict[str, str]] = TypeAdapter(
    dict[names.SlurmSetting, names.SettingValue], config={"defer_build": True}
)


def translate(
    text: Yaml, old: Configuration, *, name: str, region: str, places: Places
) -> Translated:
    """One pool for each compute resource, one partition for each queue."""
    done = Translated({"name": name, "region": region})
    _slurm(old, done)
    _head(old, done)
    _image(old, done)
    network(old, region, places, done)
    storage.shared(old, done)
    custom.of_cluster(old, done)
    login(old, region, places, done)
    people(old, done)
    _monitoring(old, done)
    if old.iam and old.iam.permissions_boundary:
        done.file["permissions_boundary"] = old.iam.permissions_boundary
    pools.pools(old, _idle_s(old), region, places, done)
    _baked(done)
    # ParallelCluster keeps no spare nodes, whatever their idle hours would save in waiting.
    done.file["waiting"] = {"usd_per_job_hour": 0}
    _boot_bound(old, done)
    _prices(region, done)
    judge(text, done)
    return done


def _boot_bound(old: Configuration, done: Translated) -> None:
    """As long as ParallelCluster gives a node, and for all that its scripts may take."""
    said_s = old.timeouts.compute_node_bootstrap_timeout
    scripts_s = [
        sum(each["timeout_s"] for scripts in pool["hooks"].values() for each in scripts)
        for pool in done.file["pools"].values()
        if "hooks" in pool
    ]
    boot_s = max(
        (_boot_s(pool["instance_types"]) for pool in done.file["pools"].values()), default=0
    )
    if not (said_s or scripts_s or boot_s > BOOT_S):
        return
    if said_s and said_s > scripts.MAX_S and scripts_s:
        place = "DevSettings.Timeouts.ComputeNodeBootstrapTimeout"
        means = f"one script may take {scripts.MAX_S} s at most"
        done.lose(place, "without-harm", means, is_heavy=False)
    usual_s = said_s or scripts.BOOTSTRAP_S
    bound_s = max(usual_s, boot_s + max(scripts_s, default=0))
    done.file["timings"] = {"boot_bound_s": bound_s}
    if bound_s > usual_s:
        means = f"a node that hangs is paid for {bound_s} s, not {usual_s}"
        if scripts_s:
            means = f"{means}: the boot and each script may take so long here; lower the timeout_s"
            means = f"{means} of hooks with it"
        else:
            means = f"{means}: bare metal may need it before its system starts"
        done.lose("timings.boot_bound_s", "without-harm", means, is_heavy=False)


def _boot_s(types: Sequence[str]) -> int:
    """So long its boot may take, without scripts."""
    more_s = usual_boot_s({"instance_types": types}) - usual_boot_s({})
    return BOOT_S + int(more_s)


def _idle_s(old: Configuration) -> int:
    minutes = old.settings.scaledown_idletime
    if minutes == -1:  # for ever
        return YEAR_S
    return max(1, (IDLE_MIN if minutes is None else minutes) * 60)


def _slurm(old: Configuration, done: Translated) -> None:
    slurm: Yaml = {}
    if old.settings.database:
        slurm["accounting"] = True
        done.lose(
            "Scheduling.SlurmSettings.Database",
            "accounting",
            "accounts and usage begin anew, in a database on the head's data volume",
        )
    if old.settings.enable_memory_based_scheduling is None:  # then it is off
        place = "Scheduling.SlurmSettings.EnableMemoryBasedScheduling"
        done.losses.append(Loss(place, MEMORY))
    if settings := _settings(old, done):
        slurm["settings"] = settings
    if slurm:
        done.file["slurm"] = slurm
    if secret := old.settings.munge_key_secret_arn:
        done.file.setdefault("existing", {})["munge_secret"] = secret


def _settings(old: Configuration, done: Translated) -> dict[str, str]:
    """The lines that may stand in slurm.conf; what one needs is looked at before it."""
    found: dict[str, str] = {}
    lines = [
        (index, key, value)
        for index, entry in enumerate(old.settings.custom_slurm_settings or ())
        for key, value in entry.items()
    ]
    lines = _completions(lines, done)
    for index, key, value in sorted(lines, key=lambda line: line[1].lower() == "jobcomptype"):
        word = "YES" if value is True else "NO" if value is False else str(value)
        if reason := _refused({**found, key: word}) or why_slurm_ends(key, word, _VERSION):
            place = f"Scheduling.SlurmSettings.CustomSlurmSettings[{index}].{key}"
            done.lose(place, "slurm-settings", reason)
        else:
            found[key] = word
    return found


def _completions(lines: list[_Line], done: Translated) -> list[_Line]:
    """The file of completed jobs, where slurmctld may not write it, is moved to where it may."""
    said = {key.lower(): (index, str(value)) for index, key, value in lines}
    index, kind = said.get("jobcomptype", (0, ""))
    index, file = said.get("jobcomploc", (index, ""))
    asked = {"JobCompLoc": file, "JobCompType": kind} if file else {"JobCompType": kind}
    if kind.lower() != "jobcomp/filetxt" or not _refused(asked):
        return lines
    means = f"jobs that ended are in {COMPLETIONS}: slurmctld may not write {file or 'elsewhere'}"
    place = f"Scheduling.SlurmSettings.CustomSlurmSettings[{index}].JobCompLoc"
    done.lose(place, "slurm-settings", means)
    others = [line for line in lines if line[1].lower() != "jobcomploc"]
    return [*others, (index, "JobCompLoc", COMPLETIONS)]


def _refused(settings: Mapping[str, str]) -> str:
    """Why the last of these lines may not stand in slurm.settings; "" when it may."""
    try:
        _SETTING.validate_python(settings)
        usable_settings(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "value_error":
            return str(first["ctx"]["error"])
        return "is no plain line of slurm.conf: put NodeName and PartitionName into slurm.static"
    except ValueError as error:
        return str(error)
    return ""


def _head(old: Configuration, done: Translated) -> None:
    if old.head_node is None:
        return
    head: Yaml = {}
    if wanted := old.head_node.instance_type:
        try:
            HeadModel.model_validate({"instance_type": wanted})
            head["instance_type"] = wanted
        except ValidationError as error:
            # There nodes are of the head's (InstanceArchitectureCompatibilityValidator).
            head["instance_type"] = ARM_MACHINE if is_arm(old) else "m6i.large"
            means = f"the head is an {head['instance_type']} instead: {reason(error, HeadModel)}"
            done.lose("HeadNode.InstanceType", "head-type", means)
    disk = old.head_node.local_storage
    if disk and disk.root_volume and disk.root_volume.size:
        head["root_gib"] = disk.root_volume.size
    if head:
        done.file["head"] = head


def _image(old: Configuration, done: Translated) -> None:
    """That of all machines and the head's own; a queue's are its pools'. Each holds its Slurm."""
    cluster = old.image.custom_ami if old.image else None
    own = old.head_node.image.custom_ami if old.head_node and old.head_node.image else None
    if cluster:
        done.file["image"] = cluster
        done.gaps.append(Gap(("image",), f"{OTHER_SLURM} ({cluster})", cluster, is_open=False))
    if own and own != cluster:
        done.file.setdefault("head", {})["image"] = own
        text = "the head's image needs Python 3.12, Slurm 23.11 and munge; build one"
        done.gaps.append(Gap(("head", "image"), f"{text} ({own})", own, is_open=False))
    os = old.image.os if old.image else None
    if os and os != OWN_OS and not cluster and not all(each.own_image for each in old.queues):
        means = f"nodes have Ubuntu 24.04, not {os}: programs may have to be built again"
        if same := SAME_OS.get(os):
            means = f"{means}; or say image: {same}, with packages of Slurm (docs/boot.md)"
        done.lose("Image.Os", "system", means)


def _baked(done: Translated) -> None:
    """Nodes need not install at each boot what ParallelCluster's images hold already."""
    is_own = "image" in done.file
    is_of_all = is_own or all("image" in pool for pool in done.file["pools"].values())
    has_proxy = "proxy" in done.file.get("network", {})
    if not (is_of_all or has_proxy):
        done.file["images"] = {}
    is_own_head = is_own or "image" in done.file.get("head", {})
    if storage.has_lustre(done) and not (is_of_all and is_own_head):
        means = (
            "Lustre's client is installed by each boot, and baked by images: AWS's packages must"
            " know the image's kernel (docs/deploying.md)"
        )
        done.lose("SharedStorage", "without-harm", means, is_heavy=False)


def _monitoring(old: Configuration, done: Translated) -> None:
    logs = old.monitoring.logs if old.monitoring else None
    cloud = logs.cloud_watch if logs else None
    if cloud and cloud.enabled is False:
        return
    days = LOG_DAYS if cloud is None or cloud.retention_in_days is None else cloud.retention_in_days
    if days not in RETENTION_DAYS:
        kept = RETENTION_DAYS[-1]
        place = "Monitoring.Logs.CloudWatch.RetentionInDays"
        means = f"logs are kept for {kept} days, not {days or 'for ever'}"
        done.lose(place, "without-harm", means, is_heavy=False)
        days = kept
    done.file["logs"] = {"nodes": True, "retention_days": days}


def _prices(region: str, done: Translated) -> None:
    """Where AWS's list says nothing, until the market is read."""
    for pool in done.file["pools"].values():
        if not {"spot", "on-demand"} & set(pool["capacity_types"]):
            continue
        for each in pool["instance_types"]:
            prices: Yaml = done.file.get("prices_usd_per_hour", {})
            if each in prices or price_usd_per_hour({}, each, Market.ON_DEMAND, region):
                continue
            done.file["prices_usd_per_hour"] = {**prices, each: {"on-demand": None}}
            path = ("prices_usd_per_hour", each, "on-demand")
            done.gaps.append(Gap(path, f"its on-demand price in {region}", STAND_IN_USD))
