"""The values of which slurm.conf is made, checked when made."""

from dataclasses import dataclass

from userdata.patterns import (
    FEATURE,
    GPU_TYPE,
    HOST,
    INSTANCE_TYPE,
    MIG_TYPE,
    NAME,
    OPTIONAL_VERSION,
    PARTITION,
    PATH,
    STATIC_LINE,
    check,
    check_each,
    check_positive,
    check_settings,
)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """An instance type as Slurm sees it.

    `memory_mib` is what Slurm may hand out, below what EC2 advertises. `gpu_type` is the
    lower-case GRES type, "" when there is no GPU. `weight` is Slurm's: lower is used first.
    `gres_name`: gpu, or neuron for AWS's own accelerators. `has_nvswitch`: needs the fabric
    manager. `efa_devices`: that must be there, 0 for a pool that does not use them.
    `min_driver`: the oldest NVIDIA driver that knows the GPU, "" if unknown. `instances`: of
    each GPU that is partitioned (MIG), 1 of one that is whole; `gpu_type` is then theirs.
    `profiles`: of GPUs that each node cuts as it is told, the most that a node may have of each
    type of instances. `shards`: that Slurm gives away of all its GPUs, as GRES `shared_gres`.
    """

    instance_type: str
    cpus: int
    memory_mib: int
    gpus: int = 0
    gpu_type: str = ""
    weight: int = 1
    gres_name: str = "gpu"
    has_nvswitch: bool = False
    efa_devices: int = 0
    min_driver: str = ""
    instances: int = 1
    profiles: tuple[tuple[str, int], ...] = ()
    shards: int = 0
    shared_gres: str = "shard"

    def __post_init__(self) -> None:
        check("instance_type", self.instance_type, INSTANCE_TYPE)
        check("gpu_type", self.gpu_type, GPU_TYPE)
        check("gres_name", self.gres_name, GPU_TYPE)
        check("shared_gres", self.shared_gres, GPU_TYPE)
        check("min_driver", self.min_driver, OPTIONAL_VERSION)
        check_positive("cpus, memory_mib, weight", self.cpus, self.memory_mib, self.weight)
        check_positive("instances", self.instances)
        if (self.gpus > 0) != bool(self.gpu_type):
            raise ValueError(f"{self.instance_type}: gpus and gpu_type go together")

    @property
    def mig_types(self) -> tuple[str, ...]:
        """GRES types of the MIG instances that its nodes may have, also of one that fills a GPU."""
        alike = (self.gpu_type,) if MIG_TYPE.search(self.gpu_type) else ()
        return (*alike, *(gpu_type for gpu_type, _ in self.profiles))

    @property
    def gres(self) -> str:
        """The node's GRES in Slurm's words, "" without a GPU.

        Of profiles a placeholder has the most of each, though no node has all of that. Shares have
        the type of their GPUs, without which no job that names it (`shard:a10g:1`) is accepted.
        """
        if self.profiles:
            return ",".join(
                f"{self.gres_name}:{gpu_type}:{most}" for gpu_type, most in self.profiles
            )
        devices = self.gpus * self.instances
        whole = f"{self.gres_name}:{self.gpu_type}:{devices}" if devices else ""
        shares = f"{self.shared_gres}:{self.gpu_type}:{self.shards}"
        return f"{whole},{shares}" if self.shards else whole


@dataclass(frozen=True, slots=True)
class SlurmPool:
    """A pool as slurm.conf promises it: the largest job gets `max_job_nodes` nodes."""

    name: str
    shapes: tuple[NodeShape, ...]
    markets: tuple[str, ...]
    labels: tuple[str, ...] = ()
    max_job_nodes: int = 16

    def __post_init__(self) -> None:
        check("pool", self.name, NAME)
        check_each(f"markets of pool {self.name}", self.markets, FEATURE)
        check_each(f"labels of pool {self.name}", self.labels, FEATURE)
        check_positive("max_job_nodes", self.max_job_nodes)


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A partition over the nodes of one or more pools. `settings`: the rest of its line."""

    name: str
    pools: tuple[str, ...]
    is_default: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check("partition", self.name, PARTITION)
        check_each(f"pools of partition {self.name}", self.pools, NAME)
        if not self.pools:
            raise ValueError(f"partition {self.name}: needs a pool")
        check_settings(f"partition {self.name}", self.settings)

    @property
    def line(self) -> str:
        """All that is said of it beside its name and nodes."""
        usual = {
            "Default": "YES" if self.is_default else "NO",
            "MaxTime": "INFINITE",
            "State": "UP",
        }
        return " ".join(f"{key}={value}" for key, value in {**usual, **dict(self.settings)}.items())


# What the cluster file already says, what nodes and the agent rely on, and Slurm's own power
# saving, which would start and stop nodes beside Tidegate.
_OURS = frozenset(
    {
        *("authinfo", "authtype", "backupaddr", "backupcontroller", "clustername", "controladdr"),
        *("controlmachine", "credtype", "downnodes", "epilog", "frontendname", "grestypes"),
        *("include", "logtimeformat", "maxnodecount", "nodename", "nodeset", "partitionname"),
        *("prolog", "rebootprogram"),
        *("resumefailprogram", "resumeprogram", "returntoservice", "selecttype", "slurmctldaddr"),
        *("slurmctldhost", "slurmctldlogfile", "slurmctldpidfile", "slurmctldport"),
        *("slurmdlogfile", "slurmdpidfile", "slurmdspooldir", "slurmduser", "slurmuser"),
        *("statesavelocation", "suspendprogram", "suspendtime", "treewidth"),
    }
)


def _check_ours(settings: tuple[tuple[str, str], ...]) -> None:
    for key, value in settings:
        if key.lower() in _OURS:
            raise ValueError(f"settings {key}: must not be set, Tidegate sets it")
        if key.lower() == "slurmctldparameters" and "enable_configless" not in value.split(","):
            raise ValueError(f"settings {key}: must keep enable_configless, is {value!r}")


@dataclass(frozen=True, slots=True)
class SlurmConfValues:
    """What slurm.conf is made of. The defaults are those of a cluster on EC2.

    `head_host`: the name by which nodes reach the head; its first label becomes the head's
    own host name. `max_nodes`: the most live nodes the cluster may have. `accounting`: by
    a slurmdbd on the head. `has_task_prolog`: nodes add to the environment of tasks. `settings`
    and `cgroup`: keys and values for slurm.conf and cgroup.conf, which take the place of our
    defaults of the same key. `static`: lines of slurm.conf for nodes and partitions that are
    somebody else's. `qos`: those that partitions name; slurmctld does not start without one's own.
    `has_estimate`: whoever submits a job is told what it will cost. `advice`: what jobs ask instead
    of what they say, in the lines of `tidegate.wire.advice`; None: as they say. `has_topology`:
    jobs get nodes that are close to each other in EC2's network, as these tell it (25.05 on).
    `resume_timeout_s`: how long a node that is rebooted may take.
    """

    cluster: str
    head_host: str
    pools: tuple[SlurmPool, ...]
    partitions: tuple[SlurmPartition, ...]
    max_nodes: int
    accounting: bool = False
    has_task_prolog: bool = False
    slurmctld_port: int = 6817
    state_dir: str = "/var/spool/slurmctld"
    settings: tuple[tuple[str, str], ...] = ()
    cgroup: tuple[tuple[str, str], ...] = ()
    static: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    has_estimate: bool = False
    advice: tuple[str, ...] | None = None
    has_topology: bool = False
    resume_timeout_s: int = 1080

    def __post_init__(self) -> None:
        check("cluster", self.cluster, NAME)
        check_each("qos", self.qos, FEATURE)
        if bad := [line for line in self.static if not STATIC_LINE.fullmatch(line)]:
            raise ValueError(f"static: not a line of a node or a partition: {bad[0]!r}")
        check("head_host", self.head_host, HOST)
        check("state_dir", self.state_dir, PATH)
        check_settings("settings", self.settings)
        check_settings("cgroup", self.cgroup)
        _check_ours(self.settings)
        if self.has_task_prolog and any(key.lower() == "taskprolog" for key, _ in self.settings):
            raise ValueError(
                "settings TaskProlog: by ours tasks hear of EFA, MIG, MPS and job roles"
            )
        check_positive("max_nodes, slurmctld_port", self.max_nodes, self.slurmctld_port)
        known = {pool.name for pool in self.pools}
        unknown = {name for part in self.partitions for name in part.pools} - known
        if unknown:
            raise ValueError(f"partitions: unknown pools {sorted(unknown)}")

    @property
    def has_submit(self) -> bool:
        """Whether slurmctld runs a script of ours at each submission."""
        return self.has_estimate or self.advice is not None

    @property
    def head_name(self) -> str:
        """The head's own host name: slurmctld refuses to run under another one."""
        return self.head_host.split(".")[0]
