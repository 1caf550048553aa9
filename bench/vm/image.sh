#!/usr/bin/env bash
# Makes the disk image that the virtual machines of `make vm` boot from: Debian 13 as it is packaged,
# and of stand-ins only what this computer cannot have (GPUs, EFS). Root; two minutes, 1.5 GB.
#
#   bench/vm/image.sh FOLDER     FOLDER/root.img, FOLDER/vmlinuz, FOLDER/initrd
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# What head and nodes need, as Ubuntu's images have it beside their server packages.
readonly packages=(
    systemd-sysv udev dbus linux-image-cloud-amd64 initramfs-tools
    cloud-init netplan.io systemd-resolved dhcpcd-base qemu-guest-agent
    slurmctld slurmd slurmdbd slurm-client mariadb-server munge libpmix2t64
    nftables nfs-common nfs-kernel-server socat libnss-extrausers
    curl python3 jq iproute2 e2fsprogs util-linux-extra kmod bsdextrautils pciutils procps mdadm
    xfsprogs gawk logrotate cron adduser libpam-modules libpam-systemd unattended-upgrades needrestart ca-certificates
)
readonly folder=$1
readonly tree=$folder/tree
packed=${folder%/*}/packages-$(sha256sum <<<"${packages[*]}" | cut -c1-16)
readonly packed
mkdir -p "$folder"
trap 'rm -rf "$tree" "$packed.new"' EXIT

# The packages once for all images of them. apt's own user may not enter this folder.
if [[ ! -e $packed ]]; then
    echo "gets Debian 13's packages for virtual machines" >&2
    TMPDIR=${folder%/*} mmdebstrap --quiet --mode=root --variant=apt \
        --aptopt='APT::Sandbox::User "root"' --include="${packages[*]}" \
        trixie "$packed.new" "${MIRROR:-http://deb.debian.org/debian}"
    rm -rf "$packed.new"/var/cache/apt/archives/*.deb
    mv "$packed.new" "$packed"
fi

cp -a "$packed" "$tree"
cp -r root/. "$tree"
for stand_in in nvidia-smi lspci; do
    install -m 755 "../../local/bin/$stand_in" "$tree/usr/bin"
done
# As `tidegate image plan` leaves an image: the boot's stages start what a machine needs.
chroot "$tree" systemctl -q disable slurmd slurmctld slurmdbd mariadb munge nfs-server
# One image for many machines: what tells them apart comes with their first boot.
: >"$tree/etc/machine-id"
rm -f "$tree/etc/hostname" "$tree/etc/munge/munge.key"
echo '/dev/vda / ext4 defaults 0 1' >"$tree/etc/fstab"

cp -L "$tree"/boot/vmlinuz-* "$folder/vmlinuz"
cp -L "$tree"/boot/initrd.img-* "$folder/initrd"
truncate -s 16G "$folder/root.new"
mke2fs -q -t ext4 -d "$tree" "$folder/root.new"
mv "$folder/root.new" "$folder/root.img"
