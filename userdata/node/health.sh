# shellcheck shell=bash
# needs: gpu shared owner_rule munge
# time_limit_s: 120
# The gate before Slurm: fails closed, because a sick node costs more jobs than a missing one.

check_gpus() {
    local listed=0 seen
    ((GPUS > 0)) || return 0
    listed=$(timeout 60 nvidia-smi -L | grep -c '^GPU ' || true)
    seen=$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' -type c | wc -l)
    if ((listed != GPUS || seen != GPUS)); then
        echo "$INSTANCE_TYPE has $GPUS GPUs; nvidia-smi lists $listed, /dev has $seen"
        return 1
    fi
}

check_shared() {
    mountpoint -q "$SHARED_DIR" && timeout 10 ls "$SHARED_DIR" >/dev/null && return 0
    echo "$SHARED_DIR is not readable"
    return 1
}

check_owner_rule() {
    if setpriv --reuid=nobody --regid=nogroup --clear-groups curl -s -m 1 -o /dev/null "$IMDS/"; then
        echo "an ordinary user reaches the metadata service"
        return 1
    fi
}

# Munge refuses a credential that is 300 s off.
check_clock() {
    local header there
    header=$(curl -s -m 2 -o /dev/null -D - "$IMDS/" | tr -d '\r' | sed -n 's/^Date: //Ip')
    there=$(date -d "${header:-now}" +%s)
    if (($(date +%s) - there > 60 || there - $(date +%s) > 60)); then
        echo "the clock is $(($(date +%s) - there)) s off"
        return 1
    fi
}

apply() {
    check_gpus
    check_shared
    check_owner_rule
    check_clock
}
