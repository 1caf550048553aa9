# shellcheck shell=bash
# needs: identity packages owner_rule on_node_start?
# wait_s: SHARED_WAIT_S
# time_limit_s: 40
# The shared file system. One fresh mount target takes minutes to be resolvable, a hanging
# mount is cut and tried again. Behind the owner rule: who reaches the mount helper's proxy says
# who they are themselves. What lies there makes nobody root: any machine of the cluster may
# have written it.

readonly SAFE=nosuid,nodev

check() {
    mountpoint -q "$SHARED_DIR" && timeout 5 stat -f "$SHARED_DIR" >/dev/null && is_safe
}

is_safe() {
    local options
    options=$(findmnt -fno OPTIONS "$SHARED_DIR")
    [[ ,$options, == *,nosuid,* && ,$options, == *,nodev,* ]]
}

apply() {
    local options=_netdev,noresvport,tls,iam,$SAFE$EFS_OPTIONS
    mkdir -p "$SHARED_DIR"
    if mountpoint -q "$SHARED_DIR"; then
        mount -o "remount,bind,$SAFE" "$SHARED_DIR"
        return
    fi
    # The helper leaves its proxy behind, without which every access waits: in a scope of its own no
    # restart of the boot's unit ends it, and at shutdown it goes after the mount.
    timeout --kill-after=5 30 systemd-run -q --scope \
        -p "Before=$(systemd-escape --path --suffix=mount "$SHARED_DIR")" \
        mount -t efs -o "$options" "$FILE_SYSTEM:/" "$SHARED_DIR"
}
