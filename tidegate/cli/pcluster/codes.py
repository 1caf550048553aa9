"""What `--accept` may name: each kind of loss that makes a cluster dearer or weaker."""

from tidegate.core.model.codes import Coded

WITHOUT_HARM = "without-harm"


class LossCode(Coded):
    """What is lost, and what to do about it; docs/migrating.md lists them."""

    ACCOUNTING = (
        "accounting",
        "accounts and usage begin anew, in slurmdbd on the head",
        "dump with `sacctmgr`, load after the first deployment",
    )
    ADDITIONAL_RESOURCES = (
        "additional-resources",
        "the stack does not hold what your CloudFormation template adds",
        "deploy it as a stack of its own",
    )
    DESKTOP = "desktop", "no DCV", "a workstation beside the cluster"
    DIRECTORY = (
        "directory",
        "a part of the directory's settings is left out, such as a certificate that nobody asks"
        " for, passwords without TLS, or homes that are not shared",
        "`directory`",
    )
    DNS = "dns", "nodes have no names in your hosted zone", "the instance id is the name"
    EFA = "efa", "the type has no EFA interface", "another type"
    EFS_THROUGHPUT = (
        "efs-throughput",
        "the stack's EFS is elastic: paid by what is read and written",
        "`existing.file_system`",
    )
    FUNCTIONS_NETWORK = "functions-network", "functions run outside of your network"
    HEAD_TYPE = (
        "head-type",
        "the head cannot be of its type (one that is not built on Nitro, or bare metal)",
        "`head.instance_type`",
    )
    HOOKS = (
        "hooks",
        "a script that cannot run here, or a moment that is not there (`hooks.md`)",
        "an image that holds what it did",
    )
    IMAGE = "image", "`AmiSearchFilters` are not read: AWS's own image is used", "`image`"
    INSTANCE_TYPE = "instance-type", "a type is not in the catalogue of EC2's", "another type"
    JOB_SIZE = (
        "job-size",
        "Slurm refuses jobs of more nodes than that",
        "fewer instance types, or smaller pools",
    )
    KMS_KEY = "kms-key", "several keys, or none by its ARN", "`kms_key`"
    LAUNCH_TEMPLATE = "launch-template", "your launch template's settings are not used"
    LOGIN_NODES = (
        "login-nodes",
        "left out: SSH from everywhere (as it is when neither the pool nor the head names"
        " `AllowedIps`) or from a list of networks, or what login nodes cannot have",
        "`ssh_from` of `login` or of its kinds",
    )
    LUSTRE_BACKUPS = "lustre-backups", "FSx makes no backups"
    LUSTRE_DATA = (
        "lustre-data",
        "the file system begins empty",
        "copy, or restore it yourself and name it in `file_systems`",
    )
    LUSTRE_PERFORMANCE = (
        "lustre-performance",
        "the usual speed, no compression",
        "make it yourself and name it in `file_systems`",
    )
    LUSTRE_REPOSITORY = (
        "lustre-repository",
        "a link to S3 is left out, or exports by hand go back to where the objects came from",
        "`lustre.data_repositories` (`data-sets.md`); one that is there keeps its own"
        " (`file_systems`)",
    )
    LUSTRE_SIZE = "lustre-size", "it is larger than before, hence dearer", "`lustre.storage_gib`"
    MEMORY = "memory", "Slurm sees the type's memory less a reserve"
    NODE_SETTINGS = "node-settings", "lines for nodes are not written", "`labels` for Features"
    ON_DEMAND_INSTEAD = (
        "on-demand-instead",
        "nodes of a group of blocks or of a nameless block are bought on demand",
        "name each under `reservations`",
    )
    PACKAGES = (
        "packages",
        "Chef recipes and Intel's packages are not installed",
        "an image that holds them",
    )
    PARTITION_SETTINGS = (
        "partition-settings",
        "a setting of a queue that partitions do not have here",
        "see `partitions.md`",
    )
    PLACEMENT_GROUP = "placement-group", "gangs are in a group of the stack's own"
    PROXY = "proxy", "one proxy serves all machines"
    PUBLIC_ADDRESS = (
        "public-address",
        "the subnet alone decides on public addresses",
        "the subnet's setting, or NAT",
    )
    RESOURCE_PREFIX = "resource-prefix", "roles have other names", "a policy by path or tag"
    RIGHTS = (
        "rights",
        "the policies and buckets of a queue are no jobs' rights here, people have none of the"
        " head's (`Imds.Secured: false`), head and login nodes have no roles of yours, and no"
        " `S3Access`",
        "a role that has them as the pools' `job_role` (`job-roles.md`); `head.policies`,"
        " `login.policies`, `node_policies` for what root runs",
    )
    SECURITY_GROUPS = (
        "security-groups",
        "`SecurityGroups` instead of the stack's own, or more than four",
        "`security_groups` of head and pools",
    )
    SHARED_VOLUME = (
        "shared-volume",
        "no EBS volume is shared from the head: EFS is at its place, paid by use, or nothing"
        " (below)",
        "copy what is in it",
    )
    SLURM_SETTINGS = (
        "slurm-settings",
        "a line of slurm.conf is Tidegate's own, or would break it",
        "`slurm.settings`, `slurm.static`",
    )
    SPOT_PRICE = "spot-price", "spot has no highest price but on-demand's", "`limits.usd_per_hour`"
    STORAGE = (
        "storage",
        "a file system is not mounted: a volume of the head's, or not at /home, where yours was"
        " (below)",
        "`file_systems`",
    )
    SYSTEM = (
        "system",
        "nodes have Ubuntu 24.04",
        "an image of your own; for Ubuntu 22.04 and Amazon Linux 2023 also `image: install-...`"
        " (`boot.md`)",
    )
    TAGS = "tags", "tags of a queue alone, or of a form that nodes cannot bear", "`tags`"
    THREADS = (
        "threads",
        "an instance type keeps two threads of each core, where one compute resource with it has"
        " `DisableSimultaneousMultithreading` and another has not",
        "other types in one of them; or for N cores ask for 2 x N CPUs and start N processes or"
        " threads (`-c 16`, `OMP_NUM_THREADS=8`)",
    )
    UNKNOWN_KEY = "unknown-key", "ParallelCluster has no such key"
    VOLUME_PERFORMANCE = (
        "volume-performance",
        "root volumes are gp3; the head's as it comes",
        "`root_iops`, `root_throughput_mib_s`",
    )


CODES = frozenset(LossCode)
