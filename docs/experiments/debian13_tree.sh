#!/bin/bash
# Make a Debian 13 tree with Slurm 24.11 for TREE=DIR ./run.sh ...   (root; 1-3 minutes, about 1.5 GB)
# usage: debian13_tree.sh DIR [MIRROR]        the mirror defaults to debootstrap's own
set -euo pipefail

readonly PACKAGES=(slurmctld slurmd slurmdbd slurm-client slurm-wlm-mysql-plugin munge mariadb-server
    nftables dnsmasq-base jq libnss-extrausers iproute2 iputils-ping util-linux curl procps python3)

dir=${1:?usage: debian13_tree.sh DIR [MIRROR]}
mirror=${2:-}

if [[ -e $dir/.complete ]]; then
    echo "$dir is complete already"
    exit 0
fi

debootstrap --variant=minbase trixie "$dir" ${mirror:+"$mirror"}

# Nothing may start while packages are being installed, and the tree needs the host's way to the mirror.
printf '#!/bin/sh\nexit 101\n' > "$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"
cp -L /etc/resolv.conf "$dir/etc/resolv.conf"

# shellcheck disable=SC2016  # expanded by the inner shell
unshare --mount --pid --fork --kill-child=SIGKILL bash -euo pipefail -c '
    dir=$1
    shift
    mount -t proc proc "$dir/proc"
    mount --rbind /dev "$dir/dev"
    export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
    chroot "$dir" apt-get -q update
    chroot "$dir" apt-get -q -y install --no-install-recommends "$@"
' install "$dir" "${PACKAGES[@]}"

rm -rf "$dir"/var/cache/apt/archives/*.deb
touch "$dir/.complete"
chroot "$dir" dpkg-query -W slurmctld slurmd slurmdbd munge mariadb-server
