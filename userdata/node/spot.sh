# shellcheck shell=bash
# Watches for the spot notice on nodes that can get one.

stage_spot() {
    [[ $MARKET == spot ]] || return 0
    install -d -m 755 /usr/local/sbin
    file_SPOT_WATCH >/usr/local/sbin/tidegate-spot-watch
    chmod 755 /usr/local/sbin/tidegate-spot-watch
    cat >/etc/systemd/system/tidegate-spot-watch.service <<EOF_UNIT
[Unit]
Description=Tidegate: drain this node when EC2 announces its reclaim
[Service]
ExecStart=/usr/local/sbin/tidegate-spot-watch $INSTANCE_ID $SPOT_POLL_S
Restart=on-failure
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-spot-watch
}
