#!/bin/bash
# Tells the head each minute how much jobs use their GPUs: the time, then JOB PERCENT for each; `-`:
# not known, which is not idle. Writes as the folder's owner: root has no rights there.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.." || exit 1
# shellcheck source=/dev/null
source ./lib.sh

readonly JOBS=$RUN_DIR/gpu-jobs EVERY_S=60 FOLDER=$SHARED_DIR/.tidegate/gpu-use
GPUS_FOUND=${GPUS_FOUND:-/proc/driver/nvidia/gpus}

# INDEX MINOR: nvidia-smi's number, and that by which Slurm knows the GPU. They meet at the place on the
# bus: nobody promises the order of indexes, and one that is lost may leave a gap in either list.
# Source: NVML's reference, nvmlDeviceGetHandleByIndex_v2; /proc has four digits of the PCI domain.
minors() {
    local index bus
    timeout 30 nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader | while IFS=', ' read -r index bus; do
        bus=${bus,,}
        sed -n "s/^Device Minor:[[:space:]]*/$index /p" "$GPUS_FOUND/${bus#0000}/information" 2>/dev/null
    done
}

# MINOR PERCENT: the most of ten looks. sm is `-` of a partitioned GPU. Source: nvidia-smi(1), "dmon".
uses() {
    timeout 90 nvidia-smi dmon -s u -d 5 -c 10 | awk -v minors="$(minors | xargs)" '
        BEGIN { count = split(minors, each, " "); for (i = 1; i < count; i += 2) minor[each[i]] = each[i + 1] }
        $1 == "#" { if ($2 == "gpu") is_known = $3 == "sm"; next }
        !is_known || !($1 in minor) { next }
        {
            looks[$1]++
            if ($2 !~ /^[0-9]+$/) unknown[$1] = 1
            for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/ && $i + 0 > most[$1]) most[$1] = $i + 0
        }
        END { for (i in looks) print minor[i], looks[i] < 10 || i in unknown ? "-" : most[i] + 0 }'
}

# MINOR JOB
held() {
    local file
    for file in "$JOBS"/*; do
        [[ ! -s $file ]] || echo "${file##*/} $(<"$file")"
    done | sort
}

# Of jobs that had their GPUs during all looks.
told() {
    local before used
    before=$(held)
    used=$([[ -z $before ]] || uses)
    echo "$EPOCHSECONDS"
    awk 'NR == FNR { use[$1] = $2; next } { print $2, $1 in use ? use[$1] : "-" }' \
        <(echo "$used") <(comm -12 <(echo "$before") <(held) | grep .)
}

put() {
    local owner group
    [[ -d $FOLDER && ! -L $FOLDER ]] || return 0
    read -r owner group < <(stat -c '%u %g' "$FOLDER") || return 0
    # shellcheck disable=SC2016
    setpriv --reuid="$owner" --regid="$group" --clear-groups timeout 30 bash -c '
        umask 022
        echo "$2" >"$1.new" && mv "$1.new" "$1"' put "$FOLDER/$INSTANCE_ID" "$1"
}

# rest_s BEGAN NOW: until the next time. A clock that was put back makes nobody wait for it to come again.
rest_s() {
    local rest_s=$((EVERY_S - $2 + $1))
    echo $((rest_s < 0 ? 0 : rest_s > EVERY_S ? EVERY_S : rest_s))
}

main() {
    local began_s
    while :; do
        began_s=$EPOCHSECONDS
        [[ -z $(held) ]] || put "$(told)"
        sleep "$(rest_s "$began_s" "$EPOCHSECONDS")"
    done
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main
