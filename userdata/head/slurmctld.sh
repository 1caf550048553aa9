# shellcheck shell=bash
# slurmctld, up and answering.

is_answering() {
    [[ $(timeout 5 scontrol ping) == *'is UP'* ]]
}

stage_slurmctld() {
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
