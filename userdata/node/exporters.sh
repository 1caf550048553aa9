# shellcheck shell=bash
# needs: packages gpu
# Node exporter, and dcgm-exporter where the image has it, for the head's Prometheus. A node without
# them is as good a node: nothing here ends one.

readonly EXPORTER_OPTIONS=/etc/default/prometheus-node-exporter
# A file system that hangs must not hang a scrape. Overlays of containers lie at paths left out anyway.
readonly NO_DISKS="--collector.filesystem.fs-types-exclude=nfs|lustre|fuse|tmpfs|ramfs|squashfs|autofs"
readonly GPU_UNIT=/etc/systemd/system/tidegate-gpu-metrics.service GPU_JOBS=/run/tidegate/gpu-jobs
readonly PROLOG=/etc/tidegate/prolog.d/60-gpu-jobs.sh EPILOG=/etc/tidegate/epilog.d/30-gpu-jobs.sh

# A processor has eight series, and a large node 192 processors: its load says enough.
exporter_options() {
    printf 'ARGS="%s"' "--collector.disable-defaults --collector.loadavg --collector.meminfo --collector.filesystem $NO_DISKS --collector.netdev"
}

has_gpu_exporter() {
    ((GPUS > 0)) && command -v dcgm-exporter >/dev/null
}

# A file for each GPU, with the id of the job that has it. Source: dcgm-exporter's README, "How to
# include HPC jobs in metric labels".
gpu_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: metrics of GPUs
[Service]
ExecStart=$(command -v dcgm-exporter) --address :9400 --hpc-job-mapping-dir $GPU_JOBS
Restart=on-failure
RestartSec=30
EOF_UNIT
}

prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# Which job has which GPU, for its metrics. No job fails by this. Parts of a GPU have other names.
[[ ! -s /etc/tidegate/mig ]] || exit 0
for gpu in ${SLURM_JOB_GPUS//,/ }; do
    [[ $gpu == *[!0-9]* ]] || echo "$SLURM_JOB_ID" >"/run/tidegate/gpu-jobs/$gpu"
done 2>/dev/null
exit 0
END_OF_PROLOG
}

# Only its own: the next job may have the GPU already.
epilog() {
    cat <<'END_OF_EPILOG'
#!/bin/bash
for file in $(grep -lx "$SLURM_JOB_ID" /run/tidegate/gpu-jobs/* 2>/dev/null); do
    rm -f "$file"
done
exit 0
END_OF_EPILOG
}

check() {
    [[ -z $EXPORTERS ]] || { has_node_exporter && has_gpu_metrics; }
}

has_node_exporter() {
    ! command -v prometheus-node-exporter >/dev/null ||
        has_file "$EXPORTER_OPTIONS" "$(exporter_options)"
}

has_gpu_metrics() {
    ! has_gpu_exporter || { has_file "$PROLOG" "$(prolog)" && has_file "$EPILOG" "$(epilog)" &&
        has_file "$GPU_UNIT" "$(gpu_unit)" && [[ -d $GPU_JOBS ]]; }
}

apply() {
    if command -v prometheus-node-exporter >/dev/null; then
        put_file "$EXPORTER_OPTIONS" 644 <<<"$(exporter_options)"
        systemctl restart prometheus-node-exporter || echo "the node exporter does not start"
    fi
    if has_gpu_exporter; then
        install -d -m 755 "$GPU_JOBS" "${PROLOG%/*}" "${EPILOG%/*}"
        prolog | put_file "$PROLOG" 755
        epilog | put_file "$EPILOG" 755
        gpu_unit | put_file "$GPU_UNIT" 644
        systemctl daemon-reload
        systemctl restart tidegate-gpu-metrics || echo "dcgm-exporter does not start"
    fi
}
