"""The values that userdata.render puts into scripts and slurm.conf, checked when made."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from userdata.containers import NO_CONTAINERS, Containers
from userdata.directory import Directory
from userdata.monitoring import Monitoring
from userdata.patterns import (
    COMPUTE_MODE,
    ENV_NAME,
    ENV_VALUE,
    FEATURE,
    FINDING,
    FINGERPRINT,
    HOOK_ARGUMENT,
    HOOK_SOURCE,
    HOST,
    INSTANCE_TYPE,
    MIG,
    MIG_PROFILE,
    NAME,
    OPTIONAL_CIDR,
    OPTIONAL_NUMBER,
    OPTIONAL_SHA256,
    OPTIONAL_WORD,
    PATH,
    SHA256,
    USER,
    USERS,
    WORD,
    check,
    check_each,
    check_positive,
)
from userdata.repository import Repository
from userdata.site_check import SiteCheckValues
from userdata.slurm_values import NodeShape, SlurmConfValues

# Source of the events that machines put about their boot; lib.sh writes it.
NODE_SOURCE = "tidegate.node"


@dataclass(frozen=True, slots=True)
class BundleAt:
    """Where in S3 a bundle is, and the SHA-256 by which it is known."""

    bucket: str
    key: str
    sha256: str

    def __post_init__(self) -> None:
        check("bucket", self.bucket, WORD)
        check("key", self.key, WORD)
        check("sha256", self.sha256, SHA256)


@dataclass(frozen=True, slots=True)
class NodePool:
    """A pool as its nodes need to know it: the labels become Slurm features."""

    name: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check("pool", self.name, NAME)
        check_each(f"labels of pool {self.name}", self.labels, FEATURE)


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """What a pool wants of its GPUs; 0 or "" leaves the card's own.

    `compute_mode`: nvidia-smi's words, like EXCLUSIVE_PROCESS. `mig`: the profile into which
    every GPU is cut, `mig_profiles`: those of which each launch says its own layout.
    `shards_per_gpu`, `mps_per_gpu`: that Slurm counts. `has_mps`: nodes start daemons of MPS.
    """

    power_limit_w: int = 0
    clock_mhz: int = 0
    compute_mode: str = ""
    mig: str = ""
    has_mps: bool = False
    mig_profiles: tuple[str, ...] = ()
    shards_per_gpu: int = 0
    mps_per_gpu: int = 0

    def __post_init__(self) -> None:
        check("compute_mode", self.compute_mode, COMPUTE_MODE)
        check("mig", self.mig, MIG)
        check_each("mig_profiles", self.mig_profiles, MIG_PROFILE)
        if min(self.power_limit_w, self.clock_mhz) < 0:
            raise ValueError("power_limit_w, clock_mhz: must not be below 0")

    @property
    def shared(self) -> dict[str, str]:
        """What nodes need that cut or count their GPUs, as settings of the boot."""
        profiles = {"MIG_PROFILES": " ".join(self.mig_profiles)} if self.mig_profiles else {}
        if self.shards_per_gpu:
            return profiles | {"SHARED": f"shard {self.shards_per_gpu}"}
        return profiles | ({"SHARED": f"mps {self.mps_per_gpu}"} if self.mps_per_gpu else {})


@dataclass(frozen=True, slots=True)
class Shared:
    """The file system that head and nodes share (EFS) and where it is mounted.

    `lustre`: those of FSx for Lustre: HOST@tcp:/NAME, directory, options. `file_systems`: more of
    others: efs, nfs, s3files or s3, source, directory, options.
    `wait_s`: how long a mount may take; the name of a mount target that was just made
    resolves only after minutes. `efs_zone`: the one whose mount target is used, "": that of the
    machine's own. `helper_url`: where AWS's packages of the mount helper are,
    `neuron_url`: those of the Neuron driver. `cuda_url`: NVIDIA's for Amazon Linux 2023.
    `lustre_url` and `lustre_key_url`: AWS's packages of Lustre's client for Ubuntu, and their key.
    """

    file_system_id: str
    directory: str = "/shared"
    access_point_id: str = ""
    lustre: tuple[tuple[str, str, str], ...] = ()
    file_systems: tuple[tuple[str, str, str, str], ...] = ()
    efs_zone: str = ""
    wait_s: int = 300
    helper_url: str = "https://amazon-efs-utils.aws.com"
    neuron_url: str = "https://apt.repos.neuron.amazonaws.com"
    cuda_url: str = "https://developer.download.nvidia.com/compute/cuda/repos/amzn2023"
    lustre_url: str = "https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu"
    lustre_key_url: str = (
        "https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc"
    )

    def __post_init__(self) -> None:
        check("file_system_id", self.file_system_id, WORD)
        check("directory", self.directory, PATH)
        check("helper_url", self.helper_url, WORD)
        check("neuron_url", self.neuron_url, WORD)
        check("cuda_url", self.cuda_url, WORD)
        check("lustre_url", self.lustre_url, WORD)
        check("lustre_key_url", self.lustre_key_url, WORD)
        for source, directory, options in self.lustre:
            check_each("lustre", (source, directory), WORD)
            check("options of lustre", options, OPTIONAL_WORD)
        for each in self.file_systems:
            check_each("file_systems", each[:3], WORD)
            check("options of file_systems", each[3], OPTIONAL_WORD)
        check("efs_zone", self.efs_zone, OPTIONAL_WORD)
        if self.access_point_id:
            check("access_point_id", self.access_point_id, WORD)
        check_positive("wait_s", self.wait_s)

    @property
    def efs_options(self) -> str:
        """What the mount helper is told beside what it always is; begins with a comma, or is "".

        Source: EFS user guide, "Mounting One Zone file systems", "Mounting with access points".
        """
        told = {"accesspoint": self.access_point_id, "az": self.efs_zone}
        return "".join(f",{name}={value}" for name, value in told.items() if value)

    @property
    def lustre_source(self) -> dict[str, str]:
        """Where the stage of packages finds Lustre's client on Ubuntu."""
        return {"LUSTRE_URL": self.lustre_url, "LUSTRE_KEY_URL": self.lustre_key_url}

    @property
    def mounts(self) -> dict[str, str]:
        """What lies beside the shared files, a line each, as the stages that mount it read it."""
        tables: dict[str, Iterable[tuple[str, ...]]] = {
            "LUSTRE": self.lustre,
            "FILE_SYSTEMS": self.file_systems,
        }
        return {
            name: "".join("\t".join(row) + "\n" for row in rows) for name, rows in tables.items()
        }


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
        check("secret_id", self.secret_id, WORD)
        check("fingerprint", self.fingerprint, FINGERPRINT)
        check_positive("wait_s", self.wait_s)


@dataclass(frozen=True, slots=True)
class Hook:
    """A script of the site's own. `source`: its address, or inline: and its text in base 64.

    `sha256`: "" when it is not known.
    """

    source: str
    timeout_s: int = 300
    sha256: str = ""
    args: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check("hook", self.source, HOOK_SOURCE)
        check("sha256 of a hook", self.sha256, OPTIONAL_SHA256)
        check_each("arguments of a hook", self.args, HOOK_ARGUMENT)
        check_positive("timeout_s of a hook", self.timeout_s)

    @property
    def line(self) -> str:
        """As hooks.sh reads it."""
        return "\t".join((str(self.timeout_s), self.sha256 or "-", self.source, *self.args))


@dataclass(frozen=True, slots=True)
class NodeValues:
    """What the nodes of one launch template need.

    `bus`: where the node says that it is ready or has failed, "" for nowhere. Pool, gate and
    launch are not in here: they differ by launch and come as the instance
    tags `tidegate:pool` and `tidegate:gate`. `head_host`: a name that keeps pointing at
    the head. `boot_bound_s`: a node that is not ready by then powers itself off. `installs`:
    the image may lack programs, which then come from its repositories. `driver_branch`: of the
    NVIDIA driver to install, like 580; "" when the image has one. `containers`: of pyxis.
    `log_group`: where the node's logs go, "" for nowhere. `orphan_after_s`: see head-watch.sh.
    `users`: "sssd" when the image knows them by that, "" when the head's are published.
    `os`: the image's system where that is known, in the cluster file's words, like "ubuntu22.04".
    `repository`: with Slurm for that system, None for the system's own. `on_...`: its own scripts.
    `job_roles`: ARNs of the IAM roles that jobs act as, by Slurm account; "": all other accounts.
    `topology`: the instance types whose place in its network EC2 tells, None where Slurm knows no
    topology. `directory`: what the boot sets sssd up for, None for what the image has.
    `has_exporters`: of metrics, for the head's Prometheus. `prefetch`: buckets, with a prefix or
    none, of which data sets that jobs name may be loaded. `has_one_thread`: of each core, so that
    its shapes count cores. `health_actions`: what follows from a finding, instead of the table.
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
    containers: Containers = NO_CONTAINERS
    users: str = ""
    log_group: str = ""
    os: str = ""
    repository: Repository | None = None
    gpu: GpuSettings = GpuSettings()
    on_node_start: tuple[Hook, ...] = ()
    on_node_configured: tuple[Hook, ...] = ()
    job_roles: tuple[tuple[str, str], ...] = ()
    topology: tuple[str, ...] | None = None
    directory: Directory | None = None
    has_exporters: bool = False
    prefetch: tuple[str, ...] = ()
    has_one_thread: bool = False
    health_actions: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for finding, action in self.health_actions:
            check("health_actions", finding, FINDING)
            check("health_actions", action, NAME)
        check("cluster", self.cluster, NAME)
        check_each("prefetch", self.prefetch, WORD)
        check_each("topology", self.topology or (), INSTANCE_TYPE)
        for account, role in self.job_roles:
            check("job_roles", account, OPTIONAL_WORD)
            check("job_roles", role, WORD)
        check("head_host", self.head_host, HOST)
        check("bus", self.bus, OPTIONAL_WORD)
        check("driver_branch", self.driver_branch, OPTIONAL_NUMBER)
        check("users", self.users, USERS)
        check("log_group", self.log_group, OPTIONAL_WORD)
        bounds = (self.boot_bound_s, self.register_wait_s, self.orphan_after_s)
        check_positive("boot_bound_s, register_wait_s, orphan_after_s", *bounds)
        check_positive("slurmctld_port, spot_poll_s", self.slurmctld_port, self.spot_poll_s)

    @property
    def own_actions(self) -> dict[str, str]:
        """The cluster file's word on findings, a line each, as findings.sh reads it."""
        lines = "\n".join(" ".join(each) for each in self.health_actions)
        return {"HEALTH_ACTIONS": lines} if lines else {}


@dataclass(frozen=True, slots=True)
class LoginValues:
    """What login nodes need; `slurm` is the head's, the rest as a node's or the head's.

    `users_poll_s`: how often the head's people are read.
    """

    slurm: SlurmConfValues
    munge: MungeSecret
    shared: Shared
    bus: str = ""
    update_poll_s: float = 60.0
    users_poll_s: float = 15.0
    installs: bool = False
    repository: Repository | None = None
    containers: Containers = NO_CONTAINERS
    users: str = ""
    directory: Directory | None = None
    on_login_configured: tuple[Hook, ...] = ()

    def __post_init__(self) -> None:
        check("users", self.users, USERS)
        check("bus", self.bus, OPTIONAL_WORD)
        check_positive("update_poll_s, users_poll_s", self.update_poll_s, self.users_poll_s)


@dataclass(frozen=True, slots=True)
class HeadValues:
    """What the head needs.

    `agent`: the archive with the agent, None for no agent. `agent_env`: what
    /etc/tidegate/agent.env holds; readable by everyone, so nothing secret.
    `agent_user`: see userdata/head/agent.sh for why this is `slurm`. `data_volume`: the id of
    the EBS volume that is mounted at `data_dir`, "" for none. `export_to`: addresses (CIDR) that
    get a folder of it by NFS, "" for nobody. `monitoring`: its Prometheus, None for none.
    `check`: of new templates by the site itself, `idle_check`: of idle nodes, `pair_check`:
    of two of them, None for none.
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
    containers: Containers = NO_CONTAINERS
    directory: Directory | None = None
    on_head_configured: tuple[Hook, ...] = ()
    monitoring: Monitoring | None = None
    check: SiteCheckValues | None = None
    idle_check: SiteCheckValues | None = None
    pair_check: SiteCheckValues | None = None

    def __post_init__(self) -> None:
        check_each("agent_env", (name for name, _ in self.agent_env), ENV_NAME)
        for name, value in self.agent_env:
            check(f"agent_env {name}", value, ENV_VALUE)
        check("agent_user", self.agent_user, USER)
        check("bus", self.bus, OPTIONAL_WORD)
        check("data_volume", self.data_volume, OPTIONAL_WORD)
        check("data_dir", self.data_dir, PATH)
        check("export_to", self.export_to, OPTIONAL_CIDR)
        check_positive("update_poll_s", self.update_poll_s)
