# shellcheck shell=bash
# needs: identity packages
# wait_s: SHARED_WAIT_S
# time_limit_s: 40
# The shared file system. One fresh mount target takes minutes to be resolvable, a hanging
# mount is cut and tried again.

check() {
    mountpoint -q "$SHARED_DIR" && timeout 5 stat -f "$SHARED_DIR" >/dev/null
}

apply() {
    local options=_netdev,noresvport,tls,iam
    [[ -z $ACCESS_POINT ]] || options+=",accesspoint=$ACCESS_POINT"
    mkdir -p "$SHARED_DIR"
    timeout --kill-after=5 30 mount -t efs -o "$options" "$FILE_SYSTEM:/" "$SHARED_DIR"
}
