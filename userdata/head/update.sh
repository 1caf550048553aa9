# shellcheck shell=bash
# needs: identity
# time_limit_s: 180
# A running head or login node takes up a new deployment within a minute, without a restart: the user
# data, which never changes, is run again and again and finds the bundle that the deployment points
# at. At each boot cloud-init runs it, even where the first one was cut short before there was
# anything else.

readonly STUB=/var/lib/cloud/scripts/per-boot/tidegate
readonly UNIT=/etc/systemd/system/tidegate-update.service

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: take up new deployments
After=network-online.target
[Service]
ExecStart=/bin/sh -c 'while sleep $UPDATE_POLL_S; do $STUB; [ ! -e /etc/tidegate/leaving ] || systemctl --no-block restart tidegate-boot; done'
Restart=always
RestartSec=30
[Install]
WantedBy=multi-user.target
EOF_UNIT
}

# With a database slurmctld ends from 25.05 on where its state's number is there and not its files, which are whole
# five minutes after its first start or at its end: one that was cut off before would be the last. The
# triggers are saved behind all others. Source: SchedMD commit 4344e6addc, save_all_state.
drop_in() {
    cat <<EOF_DROP_IN
[Unit]
ConditionPathExists=$MAY_START
[Service]
ExecStartPre=/bin/sh -c '[ -e $STATE_DIR/trigger_state ] || [ -e $STATE_DIR/trigger_state.old ] || rm -f $STATE_DIR/clustername'
EOF_DROP_IN
}

readonly DROP_IN=/etc/systemd/system/slurmctld.service.d/tidegate.conf

is_held_back() {
    [[ $ROLE != head ]] || has_file "$DROP_IN" drop_in
}

check() {
    has_file "$UNIT" unit && is_held_back && systemctl is-active --quiet tidegate-update
}

# slurmctld waits for the owner rule, whatever else starts it. The boot's unit must not be ordered
# before slurmctld, which it starts itself: both would wait.
apply() {
    unit | put_file "$UNIT" 644
    if ! is_held_back; then
        install -d "${DROP_IN%/*}"
        put_file "$DROP_IN" 644 <<<"$(drop_in)"
    fi
    systemctl enable tidegate-boot tidegate-update  # reloads all units
    systemctl restart tidegate-update
}
