"""What nodes mount beside the shared files, and stand-ins for what mounts it."""

from dataclasses import replace

from userdata.values import Shared

# Stands in for nfs-common's, since no machine here is an NFS client: SOURCE DIR -o OPTIONS.
MOUNT_NFS = """#!/bin/bash
[[ $1 == nas.example.com:/export/data ]] || { echo "mount.nfs: Connection refused" >&2; exit 32; }
mkdir -p /srv/nas
echo "$4" >/etc/local-nfs
mount --bind /srv/nas "$2"
"""
LAKE = ("s3files", "fs-0a1b2c3d4e5f60001", "/lake", "nodirects3read")
SETS = ("s3", "data-sets/imagenet", "/sets", "ro")
NAS = ("nfs", "nas.example.com:/export/data", "/nas", "nfsvers=4.1,hard")

LUSTRE = ("fs-1.fsx.us-east-1.amazonaws.com@tcp:/fsx", "/lustre", "")
# Ubuntu without Lustre's client, whose packages are in a repository of AWS's.
LUSTRELESS = {
    "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n',
    "/usr/sbin/modinfo": "#!/bin/sh\n[ $1 = lustre ] && [ -e /etc/local-lustre ]\n",
    "/usr/bin/apt-cache": (
        "#!/bin/sh\ncase $(cat /etc/local-apt 2>/dev/null):$2 in\n"
        "*no_module*:lustre-client-modules-*) ;;\n*:lustre-client-*) echo $2 ;;\nesac\n"
    ),
}
# What a site's hook may bring to an image of its own.
BRINGS_LUSTRE = """#!/bin/sh
touch /etc/local-lustre
mkdir -p /srv/lustre
printf '#!/bin/sh\\nexec mount --bind /srv/lustre "$2"\\n' >/usr/sbin/mount.lustre
chmod 755 /usr/sbin/mount.lustre
"""
NO_MODULE = LUSTRELESS | {"/etc/local-apt": "no_module=1"}


def with_lustre(shared: Shared, packages_url: str, key_url: str) -> Shared:
    return replace(
        shared,
        lustre=(LUSTRE,),
        lustre_url=f"{packages_url}/lustre/ubuntu",
        lustre_key_url=key_url,
    )
