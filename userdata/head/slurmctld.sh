# shellcheck shell=bash
# needs: munge config update accounting users directory
# time_limit_s: 90
# slurmctld, up and answering.

check() {
    systemctl is-active --quiet slurmctld && is_answering
}

is_answering() {
    [[ $(timeout 5 scontrol ping 2>&1) == *'is UP'* ]]
}

apply() {
    local deadline=$((SECONDS + 60))
    touch "$MAY_START"
    systemctl start slurmctld
    until is_answering; do
        if ((SECONDS >= deadline)); then
            tail -n 2 /var/log/slurm/slurmctld.log
            return 1
        fi
        sleep 0.1
    done
}
