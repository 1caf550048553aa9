# shellcheck shell=bash
# needs: identity packages on_node_start?
# only_with: LUSTRE
# wait_s: SHARED_WAIT_S
# time_limit_s: 60
# FSx for Lustre, where the cluster has one. Its client is a module of the kernel: an image that
# lacks it cannot get it at a boot in time.

check() {
    mountpoint -q "$LUSTRE_DIR" && timeout 5 stat -f "$LUSTRE_DIR" >/dev/null
}

apply() {
    command -v mount.lustre >/dev/null ||
        refuse "the image has no Lustre client (mount.lustre): bake one that does, for its kernel"
    mkdir -p "$LUSTRE_DIR"
    timeout --kill-after=5 50 mount -t lustre -o _netdev,noatime,flock,nosuid,nodev "$LUSTRE" "$LUSTRE_DIR"
}
