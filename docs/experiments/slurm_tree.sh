#!/bin/bash
# Make a Debian 13 tree with a Slurm built from SchedMD's source, for releases that no Debian has.
# usage: slurm_tree.sh SOURCE DIR      SOURCE: an unpacked release, with META (root; 15 CPU minutes, 1.8 GB)
# As Debian builds it, with more than one slurmd to a machine: nodes of an experiment share a munged, and
# without that slurmd takes the credential that another one has seen for a replayed one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly PACKAGES=(build-essential pkgconf libmunge-dev libhwloc-dev libdbus-1-dev libpam0g-dev
    libreadline-dev libmariadb-dev liblua5.4-dev libjson-c-dev libhttp-parser-dev libyaml-dev libjwt-dev
    libssl-dev libbpf-dev)

source=${1:?usage: slurm_tree.sh SOURCE DIR}
dir=${2:?usage: slurm_tree.sh SOURCE DIR}
[[ -f $source/META ]] || { echo "$source has no META: it is no release of Slurm" >&2; exit 2; }

if [[ -e $dir/.built ]]; then
    echo "$dir is complete already"
    exit 0
fi
./debian_tree.sh trixie "$dir"
rm -rf "$dir/root/slurm"
cp -a "$source" "$dir/root/slurm"

# shellcheck disable=SC2016  # expanded by the inner shell
unshare --mount --pid --fork --kill-child=SIGKILL bash -euo pipefail -c '
    dir=$1
    shift
    mount -t proc proc "$dir/proc"
    mount --rbind /dev "$dir/dev"
    export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
    chroot "$dir" apt-get -q -y install --no-install-recommends "$@"
    chroot "$dir" apt-get -q -y remove --autoremove slurmctld slurmd slurmdbd slurm-client slurm-wlm-mysql-plugin
    chroot "$dir" bash -euc "
        cd /root/slurm
        ./configure --quiet --prefix=/usr --sysconfdir=/etc/slurm --localstatedir=/var \
            --enable-multiple-slurmd --disable-debug CFLAGS=-O0
        make -s -j\"\$(nproc)\" V=0
        make -s install
        ldconfig"
' build "$dir" "${PACKAGES[@]}"

rm -rf "$dir/root/slurm" "$dir"/var/cache/apt/archives/*.deb
touch "$dir/.built"
chroot "$dir" slurmctld -V
