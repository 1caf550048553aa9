# shellcheck shell=bash disable=SC2153
# needs: identity packages on_node_start?
# only_with: LUSTRE
# wait_s: SHARED_WAIT_S
# time_limit_s: 120
# FSx for Lustre, where the cluster has some. A line each: HOST@tcp:/NAME, directory, options; with tabs
# between them.

check() {
    local source directory options
    while IFS=$'\t' read -r source directory options; do
        [[ -z $source ]] || is_mounted "$directory" || return 1
    done <<<"$LUSTRE"
}

is_mounted() {
    mountpoint -q "$1" && timeout 5 stat -f "$1" >/dev/null
}

apply() {
    local source directory options usual=_netdev,noatime,flock,nosuid,nodev
    command -v mount.lustre >/dev/null || refuse "there is no Lustre client (mount.lustre)"
    modinfo lustre >/dev/null 2>&1 || refuse "there is no Lustre module for kernel $(uname -r)"
    while IFS=$'\t' read -r source directory options; do
        [[ -n $source ]] || continue
        if ! is_mounted "$directory"; then
            mkdir -p "$directory"
            # What mounts reads none of these lines.
            timeout --kill-after=5 50 mount -t lustre -o "$usual${options:+,$options}" "$source" "$directory" </dev/null
        fi
    done <<<"$LUSTRE"
}
