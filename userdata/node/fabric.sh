# shellcheck shell=bash
# needs: gpu
# wait_s: 120
# time_limit_s: 120
# NVSwitch machines need the fabric manager, of the driver's very version: with another one CUDA fails
# with error 802 although nvidia-smi shows all GPUs.

check() {
    ((FABRIC == 0)) || { systemctl is-active --quiet nvidia-fabricmanager && is_complete; }
}

is_complete() {
    local text
    text=$(timeout 60 nvidia-smi -q)
    # Drivers without that section show none; then the unit is all there is to ask.
    [[ $text != *Fabric* ]] ||
        { ! grep -A1 -w Fabric <<<"$text" | grep -w State | grep -qvw Completed; }
}

apply() {
    local driver manager try
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u)
    manager=$(nv-fabricmanager --version | grep -oE '[0-9]+(\.[0-9]+)+')
    if [[ $driver != "$manager" ]]; then
        refuse "fabric manager $manager, driver $driver: they must be the same"
    fi
    systemctl start nvidia-fabricmanager
    for ((try = 0; try < 60; try++)); do
        ! is_complete || return 0
        sleep 1
    done
    echo "the fabric is not complete"
    return 1
}
