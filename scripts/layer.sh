#!/usr/bin/env bash
# Makes a layer that machines in namespaces have over this computer's root: what apt adds, without
# touching the computer itself. Root; a minute.
#
#   scripts/layer.sh cloud-init    systemd and cloud-init as process 1 (tests/boot/test_systemd.py)
#   scripts/layer.sh directory     a directory and its client (tests/boot/test_directory.py)
#   scripts/layer.sh active-directory    the same of Active Directory (tests/boot/test_active_directory.py)
#   scripts/layer.sh jupyterhub    what JupyterHub's login node has of Debian (scripts/jupyterhub.sh)
set -euo pipefail

case ${1:-} in
    cloud-init) packages=(cloud-init systemd-sysv) ;;
    directory) packages=(slapd ldap-utils sssd-ldap libnss-sss libpam-sss) ;;
    active-directory)
        packages=(samba-ad-dc samba-ad-provision ldb-tools winbind sssd-ldap libnss-sss libpam-sss)
        ;;
    jupyterhub) packages=(node-configurable-http-proxy sudo) ;;
    *)
        sed -n '5,8s/^# *//p' "$0" >&2
        exit 2
        ;;
esac
readonly layer=/var/tmp/tidegate-$1 build=/var/tmp/tidegate-$1.build

[[ ! -e $layer ]] || { echo "$layer is there"; exit 0; }
mkdir -p "$build"/{upper,work,root}
trap 'umount -R "$build/root" 2>/dev/null; rm -rf "$build"' EXIT
mount -t overlay overlay -o "lowerdir=/,upperdir=$build/upper,workdir=$build/work" "$build/root"
mount -t proc proc "$build/root/proc"
mount --bind /dev "$build/root/dev"
# Nothing starts in there.
printf '#!/bin/sh\nexit 101\n' >"$build/root/usr/sbin/policy-rc.d"
chmod 755 "$build/root/usr/sbin/policy-rc.d"
chroot "$build/root" apt-get -q -q update
DEBIAN_FRONTEND=noninteractive chroot "$build/root" \
    apt-get -q -q -y install --no-install-recommends "${packages[@]}" >/dev/null
umount -R "$build/root"
rm -rf "$build/upper/var/lib/apt/lists" "$build/upper/var/cache" "$build/upper/usr/sbin/policy-rc.d"
mv "$build/upper" "$layer"
