"""What must be on a machine: programs, and the packages that bring them."""

# Ubuntu's names. The EFS mount helper is in AWS's repository, which the stage adds.
PACKAGES = "amazon-efs-utils curl munge nftables nfs-common slurm-client"
PROGRAMS = "curl munge munged mount.efs nft scontrol"
NODE_PACKAGES = f"{PACKAGES} libnss-extrausers mdadm pciutils slurmd xfsprogs"
NODE_PROGRAMS = f"{PROGRAMS} lspci setpriv slurmd"
# Program, package.
HEAD = (("slurmctld", "slurmctld"),)
ACCOUNTING = (("slurmdbd", "slurmdbd"), ("mariadbd", "mariadb-server"))
