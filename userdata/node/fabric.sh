# shellcheck shell=bash
# needs: gpu
# only_with: FABRIC
# wait_s: 120
# time_limit_s: 120
# NVSwitch machines need the fabric manager, of the driver's very version: with another one CUDA fails
# with error 802 although nvidia-smi shows all GPUs.

check() {
    systemctl is-active --quiet nvidia-fabricmanager && is_complete
}

# On every GPU. A100 say N/A of a fabric that is complete (bottlerocket pull request 3873), old drivers
# have no such section: then the unit is all there is to ask. 3: a GPU says that it is not.
is_complete() {
    local text
    text=$(timeout 60 nvidia-smi -q) || return 2
    awk -F' *: *' '
        /^ *Fabric *$/ {is_fabric = 1}
        is_fabric && /^ *State / {state = $2; if (state != "Completed" && state != "N/A") is_bad = 1}
        is_fabric && /^ *Status / {
            if (state == "Completed" && $2 != "Success") is_bad = 1
            is_fabric = 0
        }
        END {exit 3*is_bad}' <<<"$text"
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
