# shellcheck shell=bash
# needs: slurmd
# wait_s: 120
# time_limit_s: 120
# Watches whether the head is there, see head-watch.sh.

readonly POLL_S=30

readonly UNIT=/etc/systemd/system/tidegate-head-watch.service

apply() {
    cat >"$UNIT" <<EOF_UNIT
[Unit]
Description=Tidegate: power off when the head is silent and nothing runs
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/bash $PWD/files/head-watch.sh $ORPHAN_AFTER_S $POLL_S
Restart=always
RestartSec=5
OOMScoreAdjust=-900
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-head-watch
}
