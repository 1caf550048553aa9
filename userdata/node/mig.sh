# shellcheck shell=bash
# needs: gpu fabric early
# only_with: LAYOUT
# time_limit_s: 480
# GPUs cut into instances by NVIDIA's own tool, as the shape says. A layout is never changed on a node
# that takes jobs. gres.conf names each instance by the files that it needs, as Slurm's AutoDetect
# would: the GPU's, and those that open the GPU instance and its compute instance; types in the order in
# which the node tells Slurm of them. /etc/tidegate/mig has their UUIDs in the same order: CUDA knows
# them by these. At each boot anew: a layout may outlive it, the numbers of the files need not.

readonly CONFIGURATION=/etc/tidegate/mig.yaml UUIDS=/etc/tidegate/mig
readonly CAPABILITIES=/proc/driver/nvidia/capabilities REBOOTED=/var/lib/tidegate/mig-rebooted

configuration() {
    local part of first=0 gpus
    printf 'version: v1\nmig-configs:\n  tidegate:\n'
    for part in $LAYOUT; do
        gpus=${part%%=*}
        printf '    - devices: [%s]\n      mig-enabled: true\n      mig-devices:\n' \
            "$(seq -s, "$first" $((first + gpus - 1)))"
        for of in $(tr / ' ' <<<"${part#*=}"); do
            printf '        "%s": %s\n' "${of%:*}" "${of##*:}"
        done
        first=$((first + gpus))
    done
}

check() {
    [[ -s $RUN_DIR/mig ]] && has_file "$CONFIGURATION" configuration &&
        nvidia-mig-parted assert -f "$CONFIGURATION" -c tidegate >/dev/null 2>&1
}

apply() {
    command -v nvidia-mig-parted >/dev/null ||
        refuse "the image has no nvidia-mig-parted, which partitions GPUs: bake one that does"
    configuration | put_file "$CONFIGURATION" 644
    without_monitors nvidia-mig-parted apply -f "$CONFIGURATION" -c tidegate || reboot_for_mode
    describe | sort -s -k 1,1 >"$RUN_DIR/mig"
    cut -d' ' -f2 "$RUN_DIR/mig" | put_file "$UUIDS" 644
    while read -r profile _ files; do
        echo "Name=gpu Type=${GPU_TYPE%%_[1-7]g.*}_${profile//+/.} MultipleFiles=$files"
    done <"$RUN_DIR/mig" | put_file /etc/slurm/gres.node.conf 644
}

without_monitors() {
    local stopped code=0
    # shellcheck disable=SC2086
    stop_units $MONITORS
    "$@" || code=$?
    # shellcheck disable=SC2086
    start_units $stopped
    return "$code"
}

# The mode of an A100 waits for a reset of the GPUs, which a virtual machine may not be let make and
# the driver refuses while a program has it open; it is kept over a reboot, and is on after it. Newer GPUs need
# no reset, and lose the mode by a reboot. Once in a launch, or GPUs that do not take it would boot for ever; a
# stopped node starts by another launch, on other hardware. Source: mig-parted, deployments/systemd; NVIDIA's
# MIG User Guide, "Enable MIG Mode".
reboot_for_mode() {
    local launch
    is_mode_pending && launch=$(imds_if_any tags/instance/tidegate:launch) || return 1
    [[ ! -e $REBOOTED || $(cat "$REBOOTED") != "$launch" ]] || return 1
    install -d "${REBOOTED%/*}"
    put_file "$REBOOTED" 644 <<<"$launch"
    touch "$RUN_DIR/reboots"
    console "stage mig reboots: the MIG mode of the GPUs waits for it"
    systemctl reboot
    sleep 240
    rm "$RUN_DIR/reboots"
    return 1
}

is_mode_pending() {
    local modes
    modes=$(nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv,noheader) &&
        [[ $modes == *'Disabled, Enabled'* ]]
}

# A line for each instance: profile, UUID, device files. `nvidia-smi -L` has profiles and UUIDs by GPU
# and index, `nvidia-smi -q` the ids of GPU instance and compute instance by the same two.
describe() {
    local gpu index profile uuid ids gi ci gi_file ci_file
    ids=$(ids_by_index) # once: a call takes a second and more where there are eight GPUs
    instances_by_uuid | while read -r gpu profile index uuid; do
        read -r gi ci < <(awk -v g="$gpu" -v i="$index" '$1 == g && $2 == i {print $3, $4}' <<<"$ids")
        gi_file=$(file_of "gpu$gpu/mig/gi$gi/access")
        ci_file=$(file_of "gpu$gpu/mig/gi$gi/ci$ci/access")
        echo "$profile $uuid /dev/nvidia$gpu,$gi_file,$ci_file"
    done
}

# GPU, profile, index, UUID.
instances_by_uuid() {
    nvidia-smi -L |
        sed -nE 's/^GPU ([0-9]+):.*/gpu \1/p
            s/.*MIG +([^ ]+) +Device +([0-9]+): \(UUID: ([^)]+)\)/\1 \2 \3/p' |
        awk '$1 == "gpu" {gpu = $2; next} {print gpu, $1, $2, $3}'
}

# GPU, index, GPU instance, compute instance. GPUs are told in the order of their numbers.
ids_by_index() {
    nvidia-smi -q | awk '/^GPU / {gpu++} $1 == "Index" {index_ = $NF}
        /GPU Instance ID/ {gi = $NF} /Compute Instance ID/ {print gpu - 1, index_, gi, $NF}'
}

# file_of PATH: the device file that opens a capability of the driver, which makes it when asked.
file_of() {
    local minor file
    minor=$(sed -n 's/^DeviceFileMinor: *//p' "$CAPABILITIES/$1")
    file=/dev/nvidia-caps/nvidia-cap$minor
    [[ -e $file ]] || nvidia-modprobe -f "$CAPABILITIES/$1"
    echo "$file"
}
