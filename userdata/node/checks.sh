# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153
# What a healthy node is. Each check prints what is wrong and returns 1, or 2 when it cannot tell.
# Which of them the gate before Slurm asks, which HealthCheckProgram every five minutes, and which the
# epilog, stands in the table of findings. Then health-watch.sh follows the kernel's log.

# shellcheck source=/dev/null
source files/findings.sh
read_findings

readonly MIN_FREE_GIB=${MIN_FREE_GIB:-10}

gpu_query() {
    timeout 60 nvidia-smi "$1" --format=csv,noheader,nounits 2>&1
}

# What three checks want to know of each GPU, in one call: one takes a second where eight are. Nothing
# is in GPU_FACTS when it could not be asked.
readonly GPU_FIELDS=driver_version,ecc.errors.uncorrected.volatile.total,clocks_event_reasons.hw_slowdown

check_facts() {
    GPU_FACTS=$(gpu_query "--query-gpu=$GPU_FIELDS") || {
        echo "$GPU_FACTS"
        GPU_FACTS=
        return 2
    }
}

# gpu_column NUMBER: of GPU_FIELDS, a line for each GPU.
gpu_column() {
    [[ -n ${GPU_FACTS:-} ]] && awk -F', *' -v number="$1" '{print $number}' <<<"$GPU_FACTS"
}

# retest CHECK: whether the same check, a while later and with new facts, finds nothing any more.
retest() {
    sleep 10
    ((GPUS == 0)) || check_facts || return
    "check_$1"
} >/dev/null

check_pci() {
    local seen
    seen=$(lspci -n -d 10de: | grep -cE ' 030[02]:' || true)
    ((seen == GPUS)) || { echo "$INSTANCE_TYPE has $GPUS GPUs; $seen are on the PCI bus"; return 1; }
}

check_gpus() {
    local listed devices
    listed=$(timeout 60 nvidia-smi -L | grep -c '^GPU ' || true)
    devices=$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' -type c | wc -l)
    if ((listed != GPUS || devices != GPUS)); then
        echo "$INSTANCE_TYPE has $GPUS GPUs; nvidia-smi lists $listed, /dev has $devices"
        return 1
    fi
}

# at_least VERSION MINIMUM
at_least() {
    [[ $(printf '%s\n' "$1" "$2" | sort -V | sed -n 1p) == "$2" ]]
}

check_driver() {
    local version
    version=$(gpu_column 1) || return 2
    version=$(sort -u <<<"$version")
    if [[ -n $MIN_DRIVER && $MIN_DRIVER != - ]] && ! at_least "$version" "$MIN_DRIVER"; then
        echo "driver $version; $GPU_TYPE needs $MIN_DRIVER"
        return 1
    fi
}

# What the kernel's log says since the machine started, of its devices.
check_kernel() {
    local log line verdict subject finding source found=''
    log=$(journalctl -k -b -o cat) || return 2
    while IFS= read -r line; do
        [[ $line != "$GPUS_RESET" ]] || found=
        judge "$line"
        [[ $verdict == drain ]] || continue
        found=$finding
        [[ $finding == *'remedy: reset'* ]] || break
    done < <(grep -F "$SIGNS" <<<"$log")
    [[ -z $found ]] || { echo "$found"; return 1; }
}

check_ecc() {
    local counts count
    counts=$(gpu_column 2) || return 2
    for count in $counts; do
        [[ $count == 0 || $count == *N/A* ]] || { echo "$count uncorrected ECC errors"; return 1; }
    done
}

# Ampere and newer; older ones have no such rows. One that waits for a reset to be remapped is no harm:
# nothing is kept in it any more.
check_rows() {
    local rows
    rows=$(gpu_query --query-remapped-rows=remapped_rows.failure) || { echo "$rows"; return 2; }
    # nvidia-smi warns on lines of their own.
    if grep -qxE '[1-9][0-9]*|Yes' <<<"$rows"; then
        echo "rows of memory could not be remapped (per GPU: ${rows//$'\n'/, })"
        return 1
    fi
}

check_throttle() {
    local reasons
    reasons=$(gpu_column 3) || return 2
    if grep -qx Active <<<"$reasons"; then
        echo "a GPU is slowed down by its hardware"
        return 1
    fi
}

# The links of an A100 that is cut (MIG) are off, as they should be (NVIDIA's Fabric Manager guide,
# "Interoperability With MIG"), and no instance reaches another GPU by them.
check_fabric() {
    local links
    ((FABRIC == 1)) || return 0
    systemctl is-active --quiet nvidia-fabricmanager || { echo "fabric manager is down"; return 1; }
    [[ -z $LAYOUT ]] || return 0
    links=$(timeout 60 nvidia-smi nvlink -s) || return 2
    if [[ ${links,,} == *inactive* ]]; then
        echo "a link of NVLink is inactive"
        return 1
    fi
}

# What the GPUs say of it: manager and links may be well all the same. A stage that cannot be read, as in
# a bundle that is broken, ends with 1 and says nothing of them.
check_fabric_state() {
    local code=0
    ((FABRIC == 1)) && [[ -z $LAYOUT ]] || return 0
    # shellcheck source=/dev/null
    (source stages/fabric.sh && is_complete) || code=$?
    ((code == 3)) || return $((code ? 2 : 0))
    echo "a GPU says that its fabric is not complete"
    return 1
}

# /etc/tidegate/mig has a line for each instance: its UUID, in the order of gres.conf. What Slurm is told
# of each type is what nvidia-smi shows of it.
check_mig() {
    local listed uuid types
    [[ -n $LAYOUT ]] || return 0
    listed=$(timeout 60 nvidia-smi -L) || return 2
    while read -r uuid; do
        [[ $listed == *"$uuid"* ]] || { echo "the MIG instance $uuid is gone"; return 1; }
    done </etc/tidegate/mig
    (($(wc -l </etc/tidegate/mig) == ACCELERATORS)) || {
        echo "$ACCELERATORS MIG instances expected, gres.conf has $(wc -l </etc/tidegate/mig)"
        return 1
    }
    types=$(sed -nE 's/^ *MIG +([^ ]+) +Device .*/\1/p' <<<"$listed" | sort | uniq -c |
        awk -v of="${GPU_TYPE%%_[1-7]g.*}" '{gsub("[+]", ".", $2); printf ",gpu:%s_%s:%s", of, $2, $1}')
    if [[ ${types#,} != "$TOLD_GRES" ]]; then
        echo "Slurm is told $TOLD_GRES, nvidia-smi shows ${types#,}"
        return 1
    fi
}

# After a reset or reboot for what only a test shows to be mended (health-watch.sh): DCGM's test of the GPUs' memory,
# where the image has it. Its codes are DCGM's own as 8 bits (dcgm_structs.h): 235, nv-hostengine does not
# answer yet; 205, a GPU is to be isolated; any other than 0 also where the test could not run.
check_diag() {
    local try code=0 own=''
    [[ -e $TO_TEST ]] || return 0
    if [[ -z $LAYOUT ]] && command -v dcgmi; then
        systemctl is-active --quiet nvidia-dcgm || own=1
        systemctl start nvidia-dcgm || true
        for ((try = 0; try < 10; try++)); do
            code=0
            timeout 200 dcgmi diag -r memory || code=$?
            ((code == 235)) || break
            sleep 1
        done
        [[ -z $own ]] || systemctl stop nvidia-dcgm
        own="dcgmi diag -r memory ended with $code, for $(<"$TO_TEST")"
        ((code != 205)) || { echo "$own"; return 1; }
        console "health: $own"
    fi
    rm "$TO_TEST"
}

# Devices of EFA can appear late on p5en. Where the driver is there, each has one that programs open.
# What a port's state says is no use: the driver always answers ACTIVE (efa_verbs.c, efa_query_port).
check_efa() {
    local seen opened try driver=/sys/bus/pci/drivers/efa
    ((EFA > 0)) || return 0
    for try in 1 2 3; do
        seen=$(lspci -n -d 1d0f: | grep -c ' 1d0f:efa' || true)
        opened=$(compgen -G "$driver/*/infiniband/*" | wc -l)
        [[ -d $driver ]] || opened=$EFA
        ((seen != EFA || opened < EFA)) || return 0
        sleep "$try"
    done
    ((seen == EFA)) || { echo "$INSTANCE_TYPE has $EFA EFA devices; $seen are there"; return 1; }
    echo "of $EFA EFA devices the driver has $opened"
    return 1
}

check_neurons() {
    local devices
    [[ $GRES == neuron ]] || return 0
    devices=$(find /dev -maxdepth 1 -name 'neuron[0-9]*' -type c | wc -l)
    if ((devices != ACCELERATORS)); then
        echo "$INSTANCE_TYPE has $ACCELERATORS Neuron devices; $devices are there"
        return 1
    fi
}

check_shared() {
    # Both ask the file system, which may never answer.
    timeout 10 mountpoint -q "$SHARED_DIR" && timeout 10 ls "$SHARED_DIR" >/dev/null && return 0
    echo "$SHARED_DIR is not readable"
    return 1
}

# A file system that has been shut down answers nothing, and one whose journal has ended only reads.
check_scratch() {
    grep -qs ' store$' "$DISKS" && [[ -e /scratch ]] || return 0
    # shellcheck disable=SC2016
    timeout 10 bash -c 'stat -L /scratch && [[ -w /scratch ]]' >/dev/null 2>&1 && return 0
    echo "/scratch cannot be read and written"
    return 1
}

check_disk() {
    local free_gib
    free_gib=$(df --output=avail -BG / | tr -dc '0-9\n' | tail -n 1)
    ((free_gib >= MIN_FREE_GIB)) || {
        echo "$free_gib GiB free on the root disk, of $MIN_FREE_GIB that a node needs (root_gib)"
        return 1
    }
}

check_owner_rule() {
    if setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups curl -s -m 1 -o /dev/null "$IMDS/"; then
        echo "an ordinary user reaches the metadata service"
        return 1
    fi
}

# The mount helper's proxy asks nobody who they are: see the stage owner_rule.
check_files_rule() {
    local port
    for port in $(ss -Hltn 'sport >= 20049 and sport <= 21049' | awk '{sub(/.*:/, "", $4); print $4}'); do
        if setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups \
            timeout 2 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" 2>/dev/null; then
            echo "an ordinary user reaches the proxy of $SHARED_DIR (port $port)"
            return 1
        fi
    done
}

# Munge refuses a credential that is 300 s off.
check_clock() {
    local header off_s
    header=$(curl -s -m 2 -o /dev/null -D - "$IMDS/" | tr -d '\r' | sed -n 's/^Date: //Ip')
    off_s=$(($(date +%s) - $(date -d "${header:-now}" +%s)))
    ((off_s < 60 && off_s > -60)) || { echo "the clock is $off_s s off"; return 1; }
}
