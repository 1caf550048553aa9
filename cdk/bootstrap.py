"""From the cluster file to what head and nodes are told at their first boot.

Free of the CDK: the names may be tokens or plain text.
"""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from cdk.site_checks import idle_check, pair_check, template_check
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import InstanceType
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.compat_facts import INSTALLED_BRANCH, facts_of
from tidegate.wire.config import ClusterFile
from tidegate.wire.hooks import Hook as FileHook
from tidegate.wire.login import LoginKind
from tidegate.wire.node_models import HEAD_OS, GpuModel
from tidegate.wire.places import is_local_zone
from tidegate.wire.topology_rules import tells_place
from userdata.containers import Containers
from userdata.directory import Directory, asked
from userdata.monitoring import METRICS_DIR, Monitoring, RemoteWrite
from userdata.render import (
    BundleAt,
    GpuSettings,
    HeadValues,
    Hook,
    LoginValues,
    MungeSecret,
    NodePool,
    NodeShape,
    NodeValues,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
)
from userdata.repository import repository_with

# slurm.conf needs a bound on nodes even where the cluster file has none.
UNLIMITED_NODES = 1000
# What a shutdown may take before a node's boot begins again (userdata/node/power_off.sh), and some.
SHUTDOWN_S = 180
# Slurm keeps it in 16 bits, of which two values mean none at all (parse_value.c, slurm.h).
RESUME_TIMEOUT_MAX_S = 65533
DATA_DIR = "/srv/tidegate"
SLURMCTLD_LOG = "/var/log/slurm/slurmctld.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNames:
    """What head and nodes both need: the Munge secret's ARN, the file system's id, the bus.

    `lustre`: what is mounted of it, where and with which options.
    """

    munge_secret: str
    file_system_id: str
    bus: str
    lustre: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNames:
    """Where the agent puts digests and hears orders."""

    bucket: str
    bus: str
    urgent_queue_url: str
    routine_queue_url: str


def log_group(file: ClusterFile) -> str:
    """Where nodes that ship their logs put them."""
    return f"/tidegate/{file.cluster.name}/nodes"


def zone_name(cluster: str) -> str:
    """The private DNS zone of a cluster."""
    return f"tidegate-{cluster}.internal"


def head_host(file: ClusterFile) -> str:
    """The name under which nodes find the head, whatever its address."""
    head = file.existing.head
    return head.host if head else f"head.{zone_name(file.cluster.name)}"


def shapes(pool: Pool, *, has_efa: bool = False) -> tuple[NodeShape, ...]:
    """The pool's instance types for Slurm; small nodes fill first, so that large ones empty."""
    return tuple(
        NodeShape(
            each.name,
            each.cpus,
            each.slurm_memory_mib,
            each.gpus // instances_of(each),
            each.gpu_type,
            weight=1 + each.gpus,
            instances=instances_of(each),
            profiles=tuple((of.gpu_type, each.gpus * of.most) for of in each.profiles),
            shards=each.gpus * each.shards_per_gpu,
            shared_gres=each.shared_gres,
            gres_name=each.gres,
            has_nvswitch=facts_of(each.name).has_nvswitch,
            efa_devices=facts_of(each.name).efa_interfaces if has_efa else 0,
            min_driver=facts_of(each.name).min_driver,
        )
        for each in pool.instance_types
    )


def instances_of(instance_type: InstanceType) -> int:
    """Of each GPU that is partitioned (MIG); 1 of one that is whole."""
    whole = load_catalogue()[instance_type.name].instance_type.gpus
    return max(1, instance_type.gpus // whole) if whole else 1


# 23.11's main scheduler starts nothing where there are no accounts, and leaves it to backfill,
# which looks every 30 s (docs/real-slurm.md, i).
SOON_BY_BACKFILL = ("SchedulerParameters", "bf_interval=5")


def _settings(file: ClusterFile) -> tuple[tuple[str, str], ...]:
    """The file's lines of slurm.conf, behind what its release needs."""
    slurm = file.slurm
    settings = tuple(slurm.settings.items())
    said = {key.lower() for key, _ in settings}
    if _has_slurm_metrics(file) and "metricstype" not in said:
        settings = (("MetricsType", "metrics/openmetrics"), *settings)
    has_accounts = slurm.accounting or "accountingstoragetype" in said
    is_slow = slurm.version.startswith("23.11") and not has_accounts
    if is_slow and "schedulerparameters" not in said:
        return (SOON_BY_BACKFILL, *settings)
    return settings


def _has_slurm_metrics(file: ClusterFile) -> bool:
    """From 25.11 on slurmctld serves some itself, unless PrivateData hides jobs or nodes.

    Source: Slurm's Metrics Guide, "Prerequisites".
    """
    is_private = "privatedata" in {key.lower() for key in file.slurm.settings}
    return file.monitoring.prometheus and file.slurm.version >= "25.11" and not is_private


def _monitoring(file: ClusterFile) -> Monitoring | None:
    if not file.monitoring.prometheus:
        return None
    found, write = file.monitoring, file.monitoring.remote_write
    return Monitoring(
        file.cluster.name,
        found.retention_days,
        has_slurm=_has_slurm_metrics(file),
        remote_write=RemoteWrite(write.url, write.region, write.role or "") if write else None,
    )


def _has_task_prolog(file: ClusterFile) -> bool:
    """Not where pyxis is: it enters the container before Slurm runs the script, which is not in
    there (its issues 83 and 163), and since 24.11 the task fails then.
    """
    of_gpus = any(each.wanted_profiles or each.has_mps for each in file.gpu.values())
    return bool(file.efa or file.job_roles or of_gpus) and not file.containers


def slurm_values(file: ClusterFile) -> SlurmConfValues:
    """slurm.conf of the cluster."""
    cluster = file.cluster
    return SlurmConfValues(
        cluster=cluster.name,
        head_host=head_host(file),
        pools=tuple(
            SlurmPool(
                name=pool.name,
                shapes=shapes(pool),
                markets=tuple(dict.fromkeys(market.feature for market in pool.markets)),
                labels=pool.labels,
                max_job_nodes=pool.max_job_nodes,
            )
            for pool in cluster.pools
        ),
        partitions=tuple(
            SlurmPartition(
                each.name, each.pools, each.is_default, file.partition_settings.get(each.name, ())
            )
            for each in cluster.partitions
        ),
        qos=file.qos,
        max_nodes=cluster.limits.nodes or UNLIMITED_NODES,
        state_dir=f"{DATA_DIR}/slurmctld",
        accounting=file.slurm.accounting,
        has_task_prolog=_has_task_prolog(file),
        settings=_settings(file),
        cgroup=tuple(file.slurm.cgroup.items()),
        static=file.slurm.static,
        has_estimate=file.slurm.submit_estimate,
        advice=file.slurm.advice.lines(file.advised) if file.slurm.advice else None,
        has_topology=file.slurm.topology is not None,
        resume_timeout_s=min(int(cluster.timings.boot_bound_s) + SHUTDOWN_S, RESUME_TIMEOUT_MAX_S),
    )


def agent_environment(file: ClusterFile, agent: AgentNames) -> dict[str, str]:
    """By it the agent finds its way in the cloud."""
    return {
        "TIDEGATE_CLUSTER": file.cluster.name,
        "TIDEGATE_BUCKET": agent.bucket,
        "TIDEGATE_BUS": agent.bus,
        "TIDEGATE_URGENT_QUEUE_URL": agent.urgent_queue_url,
        "TIDEGATE_ROUTINE_QUEUE_URL": agent.routine_queue_url,
        "TIDEGATE_SHARED_DIR": file.shared_dir,
        "TIDEGATE_SLURMCTLD_LOG": SLURMCTLD_LOG,
        "AWS_DEFAULT_REGION": file.region,
        **({"TIDEGATE_REPORT_EVERY": file.report.every.value} if file.report else {}),
        **({"TIDEGATE_METRICS_DIR": METRICS_DIR} if file.monitoring.prometheus else {}),
    }


def gpu_settings(model: GpuModel) -> GpuSettings:
    """In the words of nvidia-smi."""
    return GpuSettings(
        power_limit_w=model.power_limit_w or 0,
        clock_mhz=model.clock_mhz or 0,
        compute_mode=(model.compute_mode or _mode_for(model)).upper().replace("-", "_"),
        mig=model.mig or "",
        mig_profiles=model.mig_profiles,
        shards_per_gpu=model.shards_per_gpu or 0,
        mps_per_gpu=model.mps_per_gpu or 0,
        has_mps=model.has_mps,
    )


def _mode_for(model: GpuModel) -> str:
    """With MPS only its server may use a GPU, so that no program runs beside it."""
    return "exclusive-process" if model.mps else ""


def _shared(file: ClusterFile, names: SharedNames, zones: Iterable[str] = ()) -> Shared:
    """`zones`: where nodes may be; EFS has mount targets in no Local Zone."""
    more = (
        (each.kind, each.source, each.directory, ",".join(each.options))
        for each in file.file_systems
        if each.kind != "lustre"
    )
    has_local_zone = any(map(is_local_zone, zones))
    return Shared(
        names.file_system_id,
        file.shared_dir,
        lustre=names.lustre,
        file_systems=tuple(more),
        efs_zone=file.head_zone if has_local_zone else "",
    )


def hooks_of(hooks: Iterable[FileHook]) -> tuple[Hook, ...]:
    """As the boot takes them: a script in the cluster file goes along with them."""
    return tuple(
        Hook(
            each.source or f"inline:{b64encode(each.inline.encode()).decode()}",
            each.timeout_s,
            each.sha256,
            each.args,
        )
        for each in hooks
    )


def directory_of(file: ClusterFile) -> Directory | None:
    """What sssd is told on every machine; None: there is no directory."""
    found = file.directory
    if found is None:
        return None
    return asked(
        uris=found.uris,
        search_base=found.search_base,
        schema=found.schema,
        bind_dn=found.bind_dn,
        secret=found.secret,
        ca_certificate=found.ca_certificate,
        access_filter=found.access_filter,
        options=found.options,
    )


def head_values(
    file: ClusterFile,
    shared: SharedNames,
    agent: AgentNames,
    data_volume: str,
    *,
    agent_at: BundleAt,
) -> HeadValues:
    """What the head is told."""
    return HeadValues(
        slurm=slurm_values(file),
        munge=MungeSecret(shared.munge_secret),
        shared=_shared(file, shared),
        agent=agent_at,
        agent_env=tuple(agent_environment(file, agent).items()),
        bus=shared.bus,
        data_volume=data_volume,
        installs=(file.head.image or file.image_id) is None,
        repository=repository_with(file.slurm.version, file.slurm.repository(HEAD_OS)),
        data_dir=DATA_DIR,
        containers=containers_of(file),
        directory=directory_of(file),
        on_head_configured=hooks_of(file.head_hooks),
        monitoring=_monitoring(file),
        check=template_check(file),
        idle_check=idle_check(file),
        pair_check=pair_check(file),
    )


def login_values(file: ClusterFile, shared: SharedNames, kind: LoginKind) -> LoginValues:
    """What login nodes of a kind are told."""
    return LoginValues(
        slurm=slurm_values(file),
        munge=MungeSecret(shared.munge_secret),
        shared=_shared(file, shared),
        bus=shared.bus,
        installs=(kind.model.image or file.head.image or file.image_id) is None,
        repository=repository_with(file.slurm.version, file.slurm.repository(HEAD_OS)),
        containers=Containers(file.containers),
        users=file.users,
        directory=directory_of(file),
        on_login_configured=hooks_of(kind.hooks),
    )


def containers_of(file: ClusterFile) -> Containers:
    """What head and nodes are told of containers."""
    cache = file.container_cache
    return Containers(file.containers, *((cache.unused_days, cache.max_gib) if cache else ()))


def node_values(file: ClusterFile, shared: SharedNames, pool: Pool) -> NodeValues:
    """What every node of a pool is told."""
    image, os = file.image_of(pool.name), file.os_of(pool.name)
    return NodeValues(
        cluster=file.cluster.name,
        head_host=head_host(file),
        shapes=shapes(pool, has_efa=pool.name in file.efa),
        pools=(NodePool(pool.name, pool.labels),),
        munge=MungeSecret(shared.munge_secret),
        shared=_shared(file, shared, pool.zones),
        bus=shared.bus,
        installs=image is None,
        os=os,
        repository=repository_with(file.slurm.version, file.slurm.repository(os)),
        driver_branch=INSTALLED_BRANCH if file.installs_driver and image is None else "",
        containers=containers_of(file),
        users=file.users,
        log_group=log_group(file) if file.ships_logs else "",
        gpu=gpu_settings(file.gpu[pool.name]),
        has_one_thread=any(each.vcpus_per_cpu > 1 for each in pool.instance_types),
        on_node_start=hooks_of(file.hooks[pool.name].on_node_start),
        on_node_configured=hooks_of(file.hooks[pool.name].on_node_configured),
        job_roles=tuple(file.job_roles.get(pool.name, {}).items()),
        topology=tuple(each.name for each in pool.instance_types if tells_place(each))
        if file.slurm.topology
        else None,
        directory=directory_of(file),
        prefetch=file.cluster.prefetch,
        health_actions=tuple(sorted(file.slurm.health_actions.items())),
        has_exporters=file.monitoring.prometheus,
        boot_bound_s=int(file.cluster.timings.boot_bound_s),
        orphan_after_s=int(file.cluster.timings.orphan_after_s),
    )
