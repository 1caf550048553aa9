# shellcheck shell=bash
# needs: munge config update accounting users directory
# time_limit_s: 90
# slurmctld, up and answering. Its version stands in the shared folder, so that a node whose slurmd it
# does not understand can name both.

readonly VERSION_FILE=$SHARED_DIR/.tidegate/slurm.version

check() {
    systemctl is-active --quiet slurmctld && is_answering && has_file "$VERSION_FILE" version
}

version() {
    local said
    said=$(slurmctld -V) && echo "${said##* }"
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
    install -d -m 755 "${VERSION_FILE%/*}"
    version | put_file "$VERSION_FILE" 644
}
