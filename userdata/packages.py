"""What must be on a machine: programs, and the packages that bring them."""

# Ubuntu's names. The EFS mount helper is in AWS's repository, which the stage adds.
# `srun --mpi=pmix` loads PMIx's library, which Slurm's packages only recommend.
PACKAGES = "amazon-efs-utils curl libpmix2 munge nftables nfs-common slurm-client"
PROGRAMS = "curl munge munged mount.efs nft scontrol"
NODE_PACKAGES = f"{PACKAGES} libnss-extrausers mdadm pciutils slurmd xfsprogs"
# Amazon Linux's, and those of Slurm's own slurm.spec. It has a curl that `curl` would replace.
AL2023_NODE_PACKAGES = (
    "amazon-efs-utils mdadm munge nfs-utils nftables pciutils slurm slurm-slurmd xfsprogs"
)
NODE_PROGRAMS = f"{PROGRAMS} lspci setpriv slurmd"


def node_packages(os: str) -> str:
    """What a node of this system lacks at most."""
    return AL2023_NODE_PACKAGES if os == "al2023" else NODE_PACKAGES


# Canonical's images have sshd, and packages that the boot brings are not started by it.
LOGIN_PACKAGES = f"{PACKAGES} libnss-extrausers"
LOGIN_PROGRAMS = f"{PROGRAMS} sbatch sshd"

# Of what a cluster asks for: a program, Ubuntu's packages, Amazon Linux's. Lustre's client is a
# module of the kernel as well, of whose package the stage completes the name.
_DIRECTORY = ("sssd", "libnss-sss libpam-sss sssd-ldap", "sssd-client sssd-ldap")
LUSTRE_PROGRAM = "mount.lustre"
_LUSTRE = (LUSTRE_PROGRAM, "lustre-client-utils lustre-client-modules", "lustre-client")


def asked_for(*, directory: bool, lustre: bool, os: str = "") -> tuple[tuple[str, str], ...]:
    """Programs, and the packages that bring them to this system."""
    each = (*((_DIRECTORY,) if directory else ()), *((_LUSTRE,) if lustre else ()))
    return tuple((name, al2023 if os == "al2023" else ubuntu) for name, ubuntu, al2023 in each)


# Program, package.
HEAD = (("slurmctld", "slurmctld"),)
# What lets the agent run the one program of root's that submits a site's check.
SITE_CHECK = (("sudo", "sudo"),)
ACCOUNTING = (("slurmdbd", "slurmdbd"), ("mariadbd", "mariadb-server"))
