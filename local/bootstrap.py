"""From the cluster file to what head and nodes are told at their first boot."""

from local.resources import CloudNames
from tidegate.core.pool import Pool
from tidegate.wire.config import ClusterFile
from userdata.render import (
    HeadValues,
    MungeSecret,
    NodePool,
    NodeShape,
    NodeValues,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
)

HEAD_HOST = "head"
UNLIMITED_NODES = 1000

# A machine in namespaces shares this computer's cgroups and claims GPUs and memory that this
# computer lacks, so slurmd must believe what it is told.
LOCAL_SETTINGS = (
    ("ProctrackType", "proctrack/linuxproc"),
    ("TaskPlugin", "task/none"),
    ("SlurmdParameters", "config_overrides"),
    ("JobAcctGatherType", "jobacct_gather/none"),
    ("MpiDefault", "none"),
)
LOCAL_CGROUP = (("CgroupPlugin", "cgroup/v1"),)


def shapes(pool: Pool) -> tuple[NodeShape, ...]:
    """The pool's instance types for Slurm; small nodes fill first, so that large ones empty."""
    return tuple(
        NodeShape(
            each.name,
            each.vcpus,
            each.slurm_memory_mib,
            each.gpus,
            each.gpu_type,
            weight=1 + each.gpus,
        )
        for each in pool.instance_types
    )


def slurm_values(file: ClusterFile) -> SlurmConfValues:
    """slurm.conf of the cluster file, for daemons in local machines."""
    cluster = file.cluster
    return SlurmConfValues(
        cluster=cluster.name,
        head_host=HEAD_HOST,
        pools=tuple(
            SlurmPool(
                name=pool.name,
                shapes=shapes(pool),
                markets=tuple(market.value for market in pool.markets),
                labels=pool.labels,
                max_job_nodes=pool.max_job_nodes,
            )
            for pool in cluster.pools
        ),
        partitions=tuple(
            SlurmPartition(each.name, each.pools, each.is_default) for each in cluster.partitions
        ),
        max_nodes=cluster.limits.nodes or UNLIMITED_NODES,
        settings=LOCAL_SETTINGS,
        cgroup=LOCAL_CGROUP,
    )


def head_values(
    file: ClusterFile,
    names: CloudNames,
    slurm: SlurmConfValues,
    *,
    agent_command: tuple[str, ...],
    heartbeat_s: float = 60.0,
) -> HeadValues:
    """What the head is told; the agent finds its way in the cloud by its environment."""
    environment = {
        "TIDEGATE_CLUSTER": file.cluster.name,
        "TIDEGATE_BUCKET": names.bucket,
        "TIDEGATE_BUS": names.event_bus,
        "TIDEGATE_URGENT_QUEUE_URL": names.urgent_queue_url,
        "TIDEGATE_ROUTINE_QUEUE_URL": names.routine_queue_url,
        "TIDEGATE_SHARED_DIR": file.shared_dir,
        "TIDEGATE_SLURMCTLD_LOG": "/var/log/slurm/slurmctld.log",
        "TIDEGATE_HEARTBEAT_S": f"{heartbeat_s:g}",
        "AWS_DEFAULT_REGION": file.region,
    }
    return HeadValues(
        slurm=slurm,
        munge=MungeSecret(names.munge_secret),
        shared=_shared(file),
        agent_command=agent_command,
        agent_env=tuple(environment.items()),
    )


def node_values(file: ClusterFile, names: CloudNames, pool: Pool) -> NodeValues:
    """What every node of a pool is told."""
    return NodeValues(
        cluster=file.cluster.name,
        head_host=HEAD_HOST,
        shapes=shapes(pool),
        pools=(NodePool(pool.name, pool.labels),),
        munge=MungeSecret(names.munge_secret),
        shared=_shared(file),
        boot_bound_s=int(file.cluster.timings.boot_bound_s),
    )


def _shared(file: ClusterFile) -> Shared:
    return Shared("fs-local", file.shared_dir)
