# shellcheck shell=bash disable=SC2153
# needs: identity packages owner_rule shared on_node_start?
# wait_s: SHARED_WAIT_S
# time_limit_s: 120
# File systems of the site's own beside the shared one. A line each: efs or nfs, source, directory,
# options; with tabs between them.

check() {
    local kind source directory options
    while IFS=$'\t' read -r kind source directory options; do
        [[ -n $kind ]] || continue
        is_mounted "$directory" || return 1
    done <<<"$FILE_SYSTEMS"
}

is_mounted() {
    mountpoint -q "$1" && timeout 5 stat -f "$1" >/dev/null
}

apply() {
    local kind source directory options
    while IFS=$'\t' read -r kind source directory options; do
        [[ -n $kind ]] || continue
        if ! is_mounted "$directory"; then
            mkdir -p "$directory"
            # What mounts reads none of these lines.
            "mount_$kind" "$source" "$directory" "$options" </dev/null
        fi
    done <<<"$FILE_SYSTEMS"
}

# mount_efs ID DIRECTORY OPTIONS: as the shared one, see shared.sh.
mount_efs() {
    timeout --kill-after=5 30 systemd-run -q --scope \
        -p "Before=$(systemd-escape --path --suffix=mount "$2")" \
        mount -t efs -o "_netdev,noresvport,tls,iam,nosuid,nodev${3:+,$3}" "$1:/" "$2"
}

# mount_nfs SOURCE DIRECTORY OPTIONS
mount_nfs() {
    command -v mount.nfs >/dev/null ||
        refuse "the image has no NFS client (mount.nfs): bake one that does, or leave ${1%%:*} out"
    timeout --kill-after=5 30 mount -t nfs -o "_netdev,nosuid,nodev${3:+,$3}" "$1" "$2"
}
