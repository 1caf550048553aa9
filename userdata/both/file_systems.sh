# shellcheck shell=bash disable=SC2153
# needs: identity packages owner_rule shared scratch? on_node_start? job_role?
# only_with: FILE_SYSTEMS
# wait_s: SHARED_WAIT_S
# time_limit_s: 120
# File systems of the site's own beside the shared one. A line each: efs, nfs, s3files or s3, source,
# directory, options; with tabs between them. Behind the scratch disk, which keeps what was read of S3.

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
    in_scope "$2" mount -t efs -o "_netdev,noresvport,tls,iam,nosuid,nodev${3:+,$3}" "$1:/" "$2"
}

# What a mount helper leaves behind serves the mount: no restart of the boot's unit ends it, and at
# shutdown it goes after the mount.
in_scope() {
    timeout --kill-after=5 30 systemd-run -q --scope \
        -p "Before=$(systemd-escape --path --suffix=mount "$1")" "${@:2}"
}

# mount_nfs SOURCE DIRECTORY OPTIONS
mount_nfs() {
    command -v mount.nfs >/dev/null ||
        refuse "the image has no NFS client (mount.nfs): bake one that does, or leave ${1%%:*} out"
    timeout --kill-after=5 30 mount -t nfs -o "_netdev,nosuid,nodev${3:+,$3}" "$1" "$2"
}

# mount_s3files ID DIRECTORY OPTIONS: the helper adds TLS and the machine's role by itself.
mount_s3files() {
    command -v mount.s3files >/dev/null ||
        refuse "the image's amazon-efs-utils is older than 3.0.0 (no mount.s3files): bake a newer one"
    in_scope "$2" mount -t s3files -o "_netdev,nosuid,nodev${3:+,$3}" "$1" "$2"
}

# mount_s3 BUCKET[/PREFIX] DIRECTORY: to read alone, for all users. FUSE mounts nosuid and nodev by
# itself. On a disk of the node's own what was read stays, for root's eyes, in a folder that no other
# mount has: Mountpoint empties it first (mountpoint-s3, cache_directory.rs).
mount_s3() {
    local cache
    local -a options=(--read-only --allow-other)
    [[ $1 != */* ]] || options+=(--prefix "${1#*/}/")
    command -v mount-s3 >/dev/null ||
        refuse "the image has no Mountpoint for Amazon S3 (mount-s3): bake one that does"
    if mountpoint -q /scratch; then
        cache=/scratch/.tidegate-s3/$(systemd-escape --path "$2")
        install -d -m 700 /scratch/.tidegate-s3 "$cache"
        options+=(--cache "$cache")
    fi
    in_scope "$2" mount-s3 "${1%%/*}" "$2" "${options[@]}"
}
