# shellcheck shell=bash
# needs: identity
# wait_s: 300
# time_limit_s: 120
# The head's data volume, which outlives the head: slurmctld's state is on it. It is told by its
# volume id and by nothing else: the order of NVMe devices changes from boot to boot, and the
# first one that looks free may be the root or an instance store. It is formatted only when it
# is provably blank, and taken only when it bears no other cluster's mark.

readonly MARK=$DATA_DIR/.tidegate-volume
readonly BLANK_MIB=1
# Stands in the volume's last sector while it is formatted: what a power cut leaves of mke2fs is
# neither blank nor a file system, and nobody's. The file system ends before it.
readonly FORMATTING="tidegate formats this volume"

# The kernel's link for a volume of EBS; without the dash, as its serial number has it.
link() {
    echo "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${DATA_VOLUME/-/}"
}

mark() {
    printf 'cluster=%s' "$CLUSTER"
}

check() {
    [[ -z ${DATA_VOLUME:-} ]] || {
        mountpoint -q "$DATA_DIR" && has_file "$MARK" mark
    }
}

apply() {
    local device owner
    device=$(readlink -f "$(link)")
    if [[ ! -b $device ]]; then
        echo "$DATA_VOLUME is not attached yet"
        return 1
    fi
    mkdir -p "$DATA_DIR"
    refuse_others "$device"
    format_blank "$device"
    if ! mountpoint -q "$DATA_DIR"; then
        mount -t ext4 -o noatime,nosuid,nodev "$device" "$DATA_DIR"
    fi
    if [[ -e $MARK ]] && ! has_file "$MARK" mark; then
        owner=$(paste -sd' ' "$MARK")
        umount "$DATA_DIR"
        refuse "$device belongs to another: $owner"
    fi
    mark | { cat; echo; } | put_file "$MARK" 644
}

# What is in use by something else: partitions, a raid, a mount elsewhere.
refuse_others() {
    local parts at
    parts=$(lsblk -nro NAME "$1" | wc -l)
    ((parts == 1)) || refuse "$1 has partitions or holders: not Tidegate's"
    at=$(findmnt -nro TARGET -S "$1" | grep -vxF "$DATA_DIR" || true)
    [[ -z $at ]] || refuse "$1 is mounted at $at"
}

# blkid answers 2 for a blank disk, for one that is not there and for one with data that it does
# not know, so that alone proves nothing (blkid(8)).
format_blank() {
    local found code=0 bytes
    if is_cut_off "$1"; then
        echo "$1 was being formatted when the power went: once more"
        format "$1"
        return
    fi
    found=$(blkid -p -o export "$1") || code=$?
    case $code in
        0)
            [[ $found == *TYPE=ext4* ]] || refuse "$1 is not blank: $(tr '\n' ' ' <<<"$found")"
            ;;
        2)
            bytes=$(blockdev --getsize64 "$1")
            [[ -z $(wipefs -n "$1") ]] || refuse "$1 is not blank: wipefs finds signatures"
            if ! is_zero "$1" 0 || ! is_zero "$1" $((bytes - BLANK_MIB * 1048576)); then
                refuse "$1 is not blank: it holds data that blkid does not know"
            fi
            format "$1"
            ;;
        *) refuse "$1 cannot be told: blkid answered $code" ;;
    esac
}

# Blank, or half formatted by us. The mark goes when all of the file system is on the volume.
format() {
    local sectors
    sectors=$(blockdev --getsz "$1")
    write_sector "$1" $((sectors - 1)) <<<"$FORMATTING"
    wipefs -qa "$1"
    mkfs.ext4 -q -m 0 -L tidegate-data "$1" "$((sectors / 2 - BLANK_MIB * 1024))k" </dev/null
    sync "$1"
    write_sector "$1" $((sectors - 1)) </dev/zero
}

is_cut_off() {
    dd if="$1" bs=512 skip=$(($(blockdev --getsz "$1") - 1)) count=1 status=none |
        grep -aqxF "$FORMATTING"
}

# write_sector DEVICE NUMBER: standard input, padded with zeros.
write_sector() {
    dd of="$1" bs=512 seek="$2" count=1 conv=notrunc,sync,fsync status=none
}

# is_zero DEVICE OFFSET
is_zero() {
    cmp -s -n $((BLANK_MIB * 1048576)) -i "$2:0" "$1" /dev/zero
}
