# shellcheck shell=bash
# A node is never stopped. One that was rebooted would come back without the owner rule, so it
# powers off, which terminates it. First of all stages: a crash may come at any time.

stage_reboot() {
    cat >/etc/systemd/system/tidegate-rebooted.service <<'EOF_UNIT'
[Unit]
Description=Tidegate: end a node that was rebooted
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "tidegate node was rebooted: powers off" >>/dev/console; systemctl poweroff'
[Install]
WantedBy=multi-user.target
EOF_UNIT
    systemctl enable tidegate-rebooted
}
