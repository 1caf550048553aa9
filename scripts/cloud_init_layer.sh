#!/usr/bin/env bash
# Makes the layer that lets this computer's root boot with systemd and cloud-init in namespaces: what
# apt adds, without touching the computer itself. tests/boot/test_systemd.py uses it. Root; a minute.
#
#   scripts/cloud_init_layer.sh [FOLDER]
set -euo pipefail

readonly layer=${1:-/var/tmp/tidegate-cloud-init} build=${1:-/var/tmp/tidegate-cloud-init}.build

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
    apt-get -q -q -y install --no-install-recommends cloud-init systemd-sysv >/dev/null
umount -R "$build/root"
rm -rf "$build/upper/var/lib/apt/lists" "$build/upper/var/cache" "$build/upper/usr/sbin/policy-rc.d"
mv "$build/upper" "$layer"
