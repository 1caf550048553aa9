# shellcheck shell=bash
# needs: packages on_node_start
# time_limit_s: 120
# The instance stores as one fast disk at /scratch, striped over all of them. Told by the names that
# the kernel gives instance stores, so that no volume can be among them. They are empty after
# each stop of an instance, not after a reboot, and whatever is on them goes with it.

readonly SCRATCH=/scratch OF_IMAGE=/opt/dlami/nvme

stores() {
    local link
    for link in /dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*; do
        [[ ! -b $link ]] || readlink -f "$link"
    done | sort -u
}

# array_over DEVICE: after a reboot the kernel has put it together by itself, under a number of its own.
array_over() {
    local holder
    for holder in "/sys/class/block/${1##*/}/holders"/md*; do
        [[ ! -e $holder ]] || { echo "/dev/${holder##*/}"; return; }
    done
    echo /dev/md/scratch
}

check() {
    [[ -z $(stores) ]] || {
        { mountpoint -q "$SCRATCH" || [[ -L $SCRATCH ]]; } && [[ $(stat -Lc %a "$SCRATCH") == 1777 ]]
    }
}

apply() {
    local device
    local -a devices
    mapfile -t devices < <(stores)
    if mountpoint -q "$OF_IMAGE"; then
        # Root's alone, as the image mounts it.
        chmod 1777 "$OF_IMAGE"
        ln -sfn "$OF_IMAGE" "$SCRATCH"
        return
    fi
    device=${devices[0]}
    if ((${#devices[@]} > 1)); then
        device=$(array_over "${devices[0]}")
        [[ -b $device ]] || mdadm --create "$device" --run --level=0 --force \
            --raid-devices="${#devices[@]}" "${devices[@]}"
    fi
    # Disks arrive trimmed, so nothing needs to be discarded (-K).
    [[ $(blkid -p -o value -s TYPE "$device") == xfs ]] || mkfs.xfs -q -K -f "$device"
    mkdir -p "$SCRATCH"
    mount -o noatime,nosuid,nodev "$device" "$SCRATCH"
    chmod 1777 "$SCRATCH"
}
