#!/bin/bash
# A hook of pools with p6e-gb200 (on_node_configured): brings a Prolog that starts NVIDIA's IMEX service
# over the nodes of each job. GPUs of several nodes reach each other's memory by NVLink only while it
# runs on all of these nodes with the same list of addresses.
# With --slurm-channels no channel is made for all jobs: Slurm's switch/nvidia_imex gives each its own.
# Sources: NVIDIA, "IMEX Service for NVLink Networks", "Deployment Models", "IMEX Channels"; AWS PCS user
# guide, "Configure UltraServer instances".
set -euo pipefail

command -v nvidia-imex-ctl >/dev/null || {
    echo "the image has no nvidia-imex: take one with the package of its driver's version" >&2
    exit 1
}
folder=${PROLOG_DIR:-/etc/tidegate/prolog.d}
install -d -m 755 "$folder"
slurm_channels=''
[[ ${1:-} != --slurm-channels ]] || slurm_channels=yes
printf '#!/bin/bash\nslurm_channels=%s\n' "$slurm_channels" >"$folder/30-imex.sh"
cat >>"$folder/30-imex.sh" <<'END_OF_PROLOG'
# Restarted under another job, the service would cut it off from memory that it shares: so a job has it
# only on nodes of its own. A job of one node needs none.
names=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}")
[[ $names == *$'\n'* ]] || exit 0
# From 26.05 on Slurm says it in SLURM_JOB_EXCLUSIVE, and calls also jobs that share their nodes NO in
# SLURM_JOB_OVERSUBSCRIBE.
case ${SLURM_JOB_EXCLUSIVE:-before ${SLURM_JOB_OVERSUBSCRIBE:-}} in
    NODE | TOPO | 'before NO' | 'before TOPO') ;;
    *)
        echo "job $SLURM_JOB_ID shares its nodes: it has no IMEX; submit it with --exclusive"
        exit 0
        ;;
esac
list=${IMEX_NODES:-/etc/nvidia-imex/nodes_config.cfg}
for name in $names; do
    address=$(getent ahostsv4 "$name") || {
        echo "node $name of job $SLURM_JOB_ID has no address" >&2
        exit 1
    }
    echo "${address%%[[:space:]]*}"
done >"$list.new" || exit
mv "$list.new" "$list"
channels=${IMEX_CHANNELS:-/dev/nvidia-caps-imex-channels}
if [[ ! $slurm_channels && ! -e $channels/channel0 ]]; then
    major=$(awk '$2 == "nvidia-caps-imex-channels" { print $1 }' "${PROC_DEVICES:-/proc/devices}")
    [[ -n $major ]] && mkdir -p "$channels" && mknod -m 666 "$channels/channel0" c "$major" 0 || {
        echo "the driver has no IMEX channels" >&2
        exit 1
    }
fi
timeout 75 systemctl restart nvidia-imex
END_OF_PROLOG
chmod 755 "$folder/30-imex.sh"
