"""The values that userdata.render puts into scripts and slurm.conf, checked when made."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from userdata.repository import Repository

# Source of the events that machines put about their boot; lib.sh writes it.
NODE_SOURCE = "tidegate.node"

# A value that CloudFormation fills in later (an ARN, a file system id): the CDK writes such a
# token into the text and CloudFormation replaces it with what AWS itself made up.
_CDK_TOKEN = r"\$\{Token\[[A-Za-z0-9_.:+-]+\]\}"
_WORD = re.compile(rf"(?:[A-Za-z0-9_.:/=@+,-]|{_CDK_TOKEN})+")
_OPTIONAL_WORD = re.compile(rf"(?:{_WORD.pattern})?")
_OPTIONAL_VERSION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)*)?")
_OPTIONAL_NUMBER = re.compile(r"[0-9]*")
_OPTIONAL_CIDR = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}/\d{1,2})?")
_STATIC_LINE = re.compile(
    r"(NodeName|PartitionName|NodeSet|DownNodes)=[^\s=#]+( [A-Za-z]+=[^\s#]+)*"
)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_INSTANCE_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}")
_COMPUTE_MODE = re.compile(r"(?:DEFAULT|EXCLUSIVE_PROCESS|PROHIBITED)?")
_GPU_TYPE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}|")
_MIG = re.compile(r"(?:[1-7]g\.[0-9]{1,3}gb(?:[+-][a-z.]+)?)?")
_CONTAINERS, _USERS = re.compile(r"(?:pyxis)?"), re.compile(r"(?:sssd)?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_PATH, _HOST = re.compile(r"/[A-Za-z0-9_./-]+"), re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")
_FINGERPRINT = re.compile(rf"[0-9a-f]{{16}}|{_CDK_TOKEN}|")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CONF_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# One word: Slurm would read what follows a blank as a further setting, a # as a comment, and a
# \ at the end as a continued line.
_CONF_VALUE = re.compile(r"[A-Za-z0-9_./:,=()*%+@-]+")
_ENV_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_ENV_VALUE = re.compile(rf"(?:[^\x00-\x1f\x7f\"'\\$`]|{_CDK_TOKEN})*")


def _check(name: str, value: str, pattern: re.Pattern[str]) -> None:
    if not pattern.fullmatch(value):
        raise ValueError(f"{name}: {value!r} must match {pattern.pattern}")


def _check_each(name: str, values: Iterable[str], pattern: re.Pattern[str]) -> None:
    for value in values:
        _check(name, value, pattern)


def _check_positive(name: str, *values: float) -> None:
    if any(value <= 0 for value in values):
        raise ValueError(f"{name}: must be above 0, is {values}")


def _check_settings(name: str, settings: tuple[tuple[str, str], ...]) -> None:
    """Each key once, whatever its case: Slurm prints an error on stderr for a repeat."""
    seen: set[str] = set()
    for key, value in settings:
        _check(f"{name} key", key, _CONF_KEY)
        _check(f"{name} {key}", value, _CONF_VALUE)
        if key.lower() in seen:
            raise ValueError(f"{name} {key}: must be given once")
        seen.add(key.lower())


def check_word(name: str, value: str) -> str:
    """`value`, when it is one word of shell. Raises ValueError."""
    _check(name, value, _WORD)
    return value


@dataclass(frozen=True, slots=True)
class BundleAt:
    """Where in S3 a bundle is, and the SHA-256 by which it is known."""

    bucket: str
    key: str
    sha256: str

    def __post_init__(self) -> None:
        _check("bucket", self.bucket, _WORD)
        _check("key", self.key, _WORD)
        _check("sha256", self.sha256, _SHA256)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """An instance type as Slurm sees it.

    `memory_mib` is what Slurm may hand out, below what EC2 advertises. `gpu_type` is the
    lower-case GRES type, "" when there is no GPU. `weight` is Slurm's: lower is used first.
    `gres_name`: gpu, or neuron for AWS's own accelerators. `has_nvswitch`: needs the fabric
    manager. `efa_devices`: that must be there, 0 for a pool that does not use them.
    `min_driver`: the oldest NVIDIA driver that knows the GPU, "" if unknown. `instances`: of
    each GPU that is partitioned (MIG), 1 of one that is whole; `gpu_type` is then theirs.
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

    def __post_init__(self) -> None:
        _check("instance_type", self.instance_type, _INSTANCE_TYPE)
        _check("gpu_type", self.gpu_type, _GPU_TYPE)
        _check("gres_name", self.gres_name, _GPU_TYPE)
        _check("min_driver", self.min_driver, _OPTIONAL_VERSION)
        _check_positive("cpus, memory_mib, weight", self.cpus, self.memory_mib, self.weight)
        _check_positive("instances", self.instances)
        if (self.gpus > 0) != bool(self.gpu_type):
            raise ValueError(f"{self.instance_type}: gpus and gpu_type go together")

    @property
    def gres(self) -> str:
        """The node's GRES in Slurm's words, "" without a GPU."""
        devices = self.gpus * self.instances
        return f"{self.gres_name}:{self.gpu_type}:{devices}" if devices else ""


@dataclass(frozen=True, slots=True)
class NodePool:
    """A pool as its nodes need to know it: the labels become Slurm features."""

    name: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check("pool", self.name, _NAME)
        _check_each(f"labels of pool {self.name}", self.labels, _FEATURE)


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """What a pool wants of its GPUs; 0 or "" leaves the card's own.

    `compute_mode`: nvidia-smi's words, like EXCLUSIVE_PROCESS. `mig`: the profile into which
    every GPU is cut. `has_mps`: a Multi-Process Service for each job.
    """

    power_limit_w: int = 0
    clock_mhz: int = 0
    compute_mode: str = ""
    mig: str = ""
    has_mps: bool = False

    def __post_init__(self) -> None:
        _check("compute_mode", self.compute_mode, _COMPUTE_MODE)
        _check("mig", self.mig, _MIG)
        if min(self.power_limit_w, self.clock_mhz) < 0:
            raise ValueError("power_limit_w, clock_mhz: must not be below 0")


@dataclass(frozen=True, slots=True)
class Shared:
    """The file system that head and nodes share (EFS) and where it is mounted.

    `lustre`: what is mounted at `lustre_dir`, HOST@tcp:/NAME, "" for none.
    `wait_s`: how long a mount may take; the name of a mount target that was just made
    resolves only after minutes. `helper_url`: where AWS's packages of the mount helper are,
    `neuron_url`: those of the Neuron driver. `cuda_url`: NVIDIA's for Amazon Linux 2023.
    """

    file_system_id: str
    directory: str = "/shared"
    access_point_id: str = ""
    lustre: str = ""
    lustre_dir: str = "/fsx"
    wait_s: int = 300
    helper_url: str = "https://amazon-efs-utils.aws.com"
    neuron_url: str = "https://apt.repos.neuron.amazonaws.com"
    cuda_url: str = "https://developer.download.nvidia.com/compute/cuda/repos/amzn2023"

    def __post_init__(self) -> None:
        _check("file_system_id", self.file_system_id, _WORD)
        _check("directory", self.directory, _PATH)
        _check("helper_url", self.helper_url, _WORD)
        _check("neuron_url", self.neuron_url, _WORD)
        _check("cuda_url", self.cuda_url, _WORD)
        _check("lustre", self.lustre, _OPTIONAL_WORD)
        _check("lustre_dir", self.lustre_dir, _PATH)
        if self.access_point_id:
            _check("access_point_id", self.access_point_id, _WORD)
        _check_positive("wait_s", self.wait_s)


@dataclass(frozen=True, slots=True)
class MungeSecret:
    """Where the Munge key is: in Secrets Manager, never in user data.

    `fingerprint`: the first 16 hex digits of the key's SHA-256. "" when it is not known at
    deployment: nodes then compare with what the head wrote into the shared folder.
    """

    secret_id: str
    fingerprint: str = ""
    wait_s: int = 120

    def __post_init__(self) -> None:
        _check("secret_id", self.secret_id, _WORD)
        _check("fingerprint", self.fingerprint, _FINGERPRINT)
        _check_positive("wait_s", self.wait_s)


@dataclass(frozen=True, slots=True)
class NodeValues:
    """What the nodes of one launch template need.

    `bus`: where the node says that it is ready or has failed, "" for nowhere. Pool, gate and
    launch are not in here: they differ by launch and come as the instance
    tags `tidegate:pool` and `tidegate:gate`. `head_host`: a name that keeps pointing at
    the head. `boot_bound_s`: a node that is not ready by then powers itself off. `installs`:
    the image may lack programs, which then come from its repositories. `driver_branch`: of the
    NVIDIA driver to install, like 580; "" when the image has one. `containers`: "pyxis", or "".
    `log_group`: where the node's logs go, "" for nowhere. `orphan_after_s`: see head-watch.sh.
    `users`: "sssd" when the image knows them by that, "" when the head's are published.
    `os`: the image's system where that is known, in the cluster file's words, like "ubuntu22.04".
    `repository`: with Slurm for that system, None for the system's own.
    """

    cluster: str
    head_host: str
    shapes: tuple[NodeShape, ...]
    pools: tuple[NodePool, ...]
    munge: MungeSecret
    shared: Shared
    bus: str = ""
    slurmctld_port: int = 6817
    boot_bound_s: int = 900
    register_wait_s: int = 120
    spot_poll_s: float = 5.0
    orphan_after_s: int = 1800
    installs: bool = False
    driver_branch: str = ""
    containers: str = ""
    users: str = ""
    log_group: str = ""
    os: str = ""
    repository: Repository | None = None
    gpu: GpuSettings = GpuSettings()

    def __post_init__(self) -> None:
        _check("cluster", self.cluster, _NAME)
        _check("head_host", self.head_host, _HOST)
        _check("bus", self.bus, _OPTIONAL_WORD)
        _check("driver_branch", self.driver_branch, _OPTIONAL_NUMBER)
        _check("containers", self.containers, _CONTAINERS)
        _check("users", self.users, _USERS)
        _check("log_group", self.log_group, _OPTIONAL_WORD)
        bounds = (self.boot_bound_s, self.register_wait_s, self.orphan_after_s)
        _check_positive("boot_bound_s, register_wait_s, orphan_after_s", *bounds)
        _check_positive("slurmctld_port, spot_poll_s", self.slurmctld_port, self.spot_poll_s)


@dataclass(frozen=True, slots=True)
class SlurmPool:
    """A pool as slurm.conf promises it: the largest job gets `max_job_nodes` nodes."""

    name: str
    shapes: tuple[NodeShape, ...]
    markets: tuple[str, ...]
    labels: tuple[str, ...] = ()
    max_job_nodes: int = 16

    def __post_init__(self) -> None:
        _check("pool", self.name, _NAME)
        _check_each(f"markets of pool {self.name}", self.markets, _FEATURE)
        _check_each(f"labels of pool {self.name}", self.labels, _FEATURE)
        _check_positive("max_job_nodes", self.max_job_nodes)


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A partition over the nodes of one or more pools."""

    name: str
    pools: tuple[str, ...]
    is_default: bool = False

    def __post_init__(self) -> None:
        _check("partition", self.name, _NAME)
        _check_each(f"pools of partition {self.name}", self.pools, _NAME)
        if not self.pools:
            raise ValueError(f"partition {self.name}: needs a pool")


# What the cluster file already says, what nodes and the agent rely on, and Slurm's own power
# saving, which would start and stop nodes beside Tidegate.
_OURS = frozenset(
    {
        *("authinfo", "authtype", "backupaddr", "backupcontroller", "clustername", "controladdr"),
        *("controlmachine", "credtype", "downnodes", "frontendname", "grestypes", "include"),
        *("logtimeformat", "maxnodecount", "nodename", "nodeset", "partitionname", "prolog"),
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
    somebody else's.
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

    def __post_init__(self) -> None:
        _check("cluster", self.cluster, _NAME)
        if bad := [line for line in self.static if not _STATIC_LINE.fullmatch(line)]:
            raise ValueError(f"static: not a line of a node or a partition: {bad[0]!r}")
        _check("head_host", self.head_host, _HOST)
        _check("state_dir", self.state_dir, _PATH)
        _check_settings("settings", self.settings)
        _check_settings("cgroup", self.cgroup)
        _check_ours(self.settings)
        _check_positive("max_nodes, slurmctld_port", self.max_nodes, self.slurmctld_port)
        known = {pool.name for pool in self.pools}
        unknown = {name for part in self.partitions for name in part.pools} - known
        if unknown:
            raise ValueError(f"partitions: unknown pools {sorted(unknown)}")

    @property
    def head_name(self) -> str:
        """The head's own host name: slurmctld refuses to run under another one."""
        return self.head_host.split(".")[0]


@dataclass(frozen=True, slots=True)
class HeadValues:
    """What the head needs.

    `agent`: the archive with the agent, None for no agent. `agent_env`: what
    /etc/tidegate/agent.env holds; readable by everyone, so nothing secret.
    `agent_user`: see userdata/head/agent.sh for why this is `slurm`. `data_volume`: the id of
    the EBS volume that is mounted at `data_dir`, "" for none. `export_to`: addresses (CIDR) that
    get a folder of it by NFS, "" for nobody.
    """

    slurm: SlurmConfValues
    munge: MungeSecret
    shared: Shared
    agent: BundleAt | None = None
    agent_env: tuple[tuple[str, str], ...] = field(default=())
    agent_user: str = "slurm"
    bus: str = ""
    update_poll_s: float = 60.0
    data_volume: str = ""
    data_dir: str = "/srv/tidegate"
    export_to: str = ""
    installs: bool = False
    repository: Repository | None = None
    containers: str = ""

    def __post_init__(self) -> None:
        _check("containers", self.containers, _CONTAINERS)
        _check_each("agent_env", (name for name, _ in self.agent_env), _ENV_NAME)
        for name, value in self.agent_env:
            _check(f"agent_env {name}", value, _ENV_VALUE)
        _check("agent_user", self.agent_user, _USER)
        _check("bus", self.bus, _OPTIONAL_WORD)
        _check("data_volume", self.data_volume, _OPTIONAL_WORD)
        _check("data_dir", self.data_dir, _PATH)
        _check("export_to", self.export_to, _OPTIONAL_CIDR)
        _check_positive("update_poll_s", self.update_poll_s)
