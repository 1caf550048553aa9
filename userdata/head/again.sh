# shellcheck shell=bash
# cloud-init runs user data once. A head that was stopped keeps its disk and is started again, so
# this same script then runs as a unit of its own: the owner rule first, slurmctld behind it.
# The unit must not be ordered before slurmctld, which it starts itself: both would wait.

readonly AGAIN=/usr/local/sbin/tidegate-boot

stage_again() {
    [[ $0 -ef $AGAIN ]] || install -m 700 "$0" "$AGAIN"
    cat >/etc/systemd/system/tidegate-boot.service <<EOF_UNIT
[Unit]
Description=Tidegate: the head, from the owner rule to the agent
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$AGAIN
Restart=on-failure
RestartSec=30
[Install]
WantedBy=multi-user.target
EOF_UNIT
    install -d /etc/systemd/system/slurmctld.service.d
    cat >/etc/systemd/system/slurmctld.service.d/tidegate.conf <<EOF_UNIT
[Unit]
ConditionPathExists=$MAY_START
EOF_UNIT
    systemctl daemon-reload
    systemctl enable tidegate-boot
}
