# shellcheck shell=bash
# needs: gpu fabric
# time_limit_s: 480
# GPUs cut into instances, all in the one layout of the pool, by NVIDIA's own tool for it. A layout
# is never changed on a node that takes jobs. gres.conf names each instance by the files that it
# needs, as Slurm's AutoDetect would: the GPU's, and those that open the GPU instance and its
# compute instance. /etc/tidegate/mig has their UUIDs in the same order: CUDA knows them by these.

readonly LAYOUT=/etc/tidegate/mig.yaml UUIDS=/etc/tidegate/mig
readonly CAPABILITIES=/proc/driver/nvidia/capabilities

layout() {
    cat <<EOF_LAYOUT
version: v1
mig-configs:
  tidegate:
    - devices: all
      mig-enabled: true
      mig-devices:
        "$MIG": $((ACCELERATORS / GPUS))
EOF_LAYOUT
}

check() {
    [[ -z $MIG ]] || {
        [[ -s $UUIDS ]] && has_file "$LAYOUT" "$(layout)" &&
            nvidia-mig-parted assert -f "$LAYOUT" -c tidegate >/dev/null 2>&1
    }
}

apply() {
    command -v nvidia-mig-parted >/dev/null ||
        refuse "the image has no nvidia-mig-parted, which partitions GPUs: bake one that does"
    layout | put_file "$LAYOUT" 644
    nvidia-mig-parted apply -f "$LAYOUT" -c tidegate
    describe >"$RUN_DIR/mig"
    cut -d' ' -f1 "$RUN_DIR/mig" | put_file "$UUIDS" 644
    while read -r _ files; do
        echo "Name=gpu Type=$GPU_TYPE MultipleFiles=$files"
    done <"$RUN_DIR/mig" | put_file /etc/slurm/gres.node.conf 644
}

# A line for each instance: UUID, device files. `nvidia-smi -L` has the UUIDs by GPU and index,
# `nvidia-smi -q` the ids of GPU instance and compute instance by the same two.
describe() {
    local gpu index uuid gi ci gi_file ci_file
    instances_by_uuid | while read -r gpu index uuid; do
        read -r gi ci < <(ids_by_index | awk -v g="$gpu" -v i="$index" '$1 == g && $2 == i {print $3, $4}')
        gi_file=$(file_of "gpu$gpu/mig/gi$gi/access")
        ci_file=$(file_of "gpu$gpu/mig/gi$gi/ci$ci/access")
        echo "$uuid /dev/nvidia$gpu,$gi_file,$ci_file"
    done
}

# GPU, index, UUID.
instances_by_uuid() {
    nvidia-smi -L | sed -nE 's/^GPU ([0-9]+):.*/gpu \1/p; s/.*MIG .* Device +([0-9]+): \(UUID: ([^)]+)\)/\1 \2/p' |
        awk '$1 == "gpu" {gpu = $2; next} {print gpu, $1, $2}'
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
