# shellcheck shell=bash
# The shared file system. One fresh mount target takes minutes to be resolvable, a hanging
# mount is cut and tried again.

mount_shared() {
    timeout --kill-after=5 30 mount -t efs -o "$1" "$FILE_SYSTEM:/" "$SHARED_DIR" &&
        timeout 10 stat -f "$SHARED_DIR" >/dev/null
}

stage_shared() {
    local options=_netdev,noresvport,tls,iam
    [[ -z $ACCESS_POINT ]] || options+=",accesspoint=$ACCESS_POINT"
    mkdir -p "$SHARED_DIR"
    mountpoint -q "$SHARED_DIR" || retry "$SHARED_WAIT_S" mount_shared "$options"
}
