# shellcheck shell=bash
# needs:
# A node is never stopped. One that was rebooted would come back without the owner rule, so it
# powers off, which terminates it. It needs nothing, so it is among the first stages: a crash may
# come at any time.

readonly UNIT=/etc/systemd/system/tidegate-rebooted.service

unit() {
    cat <<'EOF_UNIT'
[Unit]
Description=Tidegate: end a node that was rebooted
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "tidegate node was rebooted: powers off" >>/dev/console; systemctl poweroff'
[Install]
WantedBy=multi-user.target
EOF_UNIT
}

check() {
    has_file "$UNIT" "$(unit)" &&
        [[ -L /etc/systemd/system/multi-user.target.wants/${UNIT##*/} ]]
}

apply() {
    unit | put_file "$UNIT" 644
    systemctl enable tidegate-rebooted
}
