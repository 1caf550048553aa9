# shellcheck shell=bash
# needs: slurmd
# wait_s: 120
# time_limit_s: 120
# Goes on looking at the node's health while jobs run: see health-watch.sh.

readonly UNIT=/etc/systemd/system/tidegate-health-watch.service

apply() {
    cat >"$UNIT" <<EOF_UNIT
[Unit]
Description=Tidegate: drain this node when it is sick
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/bash $PWD/files/health-watch.sh
Restart=always
RestartSec=2
OOMScoreAdjust=-900
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-health-watch
}
