#!/bin/bash
# Make a Debian tree with its Slurm for TREE=DIR ./run.sh ...   (root; 1-3 minutes, about 1.5 GB)
# usage: debian_tree.sh SUITE DIR [MIRROR]        trixie: 24.11; sid: 26.05 when this was written
# The mirror defaults to debootstrap's own.
set -euo pipefail

readonly PACKAGES=(slurmctld slurmd slurmdbd slurm-client slurm-wlm-mysql-plugin munge mariadb-server
    nftables dnsmasq-base jq libnss-extrausers iproute2 iputils-ping util-linux curl procps python3)

suite=${1:?usage: debian_tree.sh SUITE DIR [MIRROR]}
dir=${2:?usage: debian_tree.sh SUITE DIR [MIRROR]}
mirror=${3:-}

if [[ -e $dir/.complete ]]; then
    echo "$dir is complete already"
    exit 0
fi

debootstrap --variant=minbase "$suite" "$dir" ${mirror:+"$mirror"}

# sid's lists are good for a week, and a mirror may be behind; the signature is checked all the same.
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
    chroot "$dir" apt-get -q -o Acquire::Check-Valid-Until=false update
    chroot "$dir" apt-get -q -y install --no-install-recommends "$@"
' install "$dir" "${PACKAGES[@]}"

rm -rf "$dir"/var/cache/apt/archives/*.deb
touch "$dir/.complete"
chroot "$dir" dpkg-query -W slurmctld slurmd slurmdbd munge mariadb-server
