# shellcheck shell=bash
# needs: slurmd
# wait_s: 120
# Watches for the spot notice on nodes that can get one.

apply() {
    [[ $MARKET == spot ]] || return 0
    cat >/etc/systemd/system/tidegate-spot-watch.service <<EOF_UNIT
[Unit]
Description=Tidegate: drain this node when EC2 announces its reclaim
[Service]
ExecStart=$PWD/files/spot-watch.sh $INSTANCE_ID $SPOT_POLL_S
Restart=on-failure
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-spot-watch
}
