# shellcheck shell=bash disable=SC2034,SC2154
off='systemctl poweroff'
systemd-run -q --unit=tidegate-dead-man --on-active="$BOUND_S" \
    /bin/sh -c "echo tidegate not ready after $BOUND_S s >>/dev/console & $off"
(($(df --output=avail / | sed 1d) > 9999)) || { echo tidegate stage bundle failed: disk full >>/dev/console; exec $off; }
