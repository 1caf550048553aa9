# shellcheck shell=bash
# needs: packages gpu_use
# only_with: EXPORTERS
# wait_s: 120
# Node exporter, and dcgm-exporter where the image has it, for the head's Prometheus. A node without
# them is as good a node: nothing here ends one.

readonly EXPORTER_OPTIONS=/etc/default/prometheus-node-exporter
# A file system that hangs must not hang a scrape. Overlays of containers lie at paths left out anyway.
readonly NO_DISKS="--collector.filesystem.fs-types-exclude=nfs|lustre|fuse|tmpfs|ramfs|squashfs|autofs"
readonly EFA_UNIT=/etc/systemd/system/tidegate-efa-metrics.service METRICS=/run/tidegate/metrics
readonly GPU_UNIT=/etc/systemd/system/tidegate-gpu-metrics.service GPU_JOBS=/run/tidegate/gpu-jobs

# A processor has eight series, and a large node 192 processors: its load says enough.
exporter_options() {
    local of_files=''
    if ((EFA > 0)) || [[ -d $RUN_DIR/neuron-jobs ]]; then
        of_files=" --collector.textfile --collector.textfile.directory=$METRICS"
    fi
    printf 'ARGS="%s"' "--collector.disable-defaults --collector.loadavg --collector.meminfo --collector.filesystem $NO_DISKS --collector.netdev$of_files"
}

efa_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: metrics of EFA
[Service]
ExecStart=/bin/bash $PWD/files/efa-metrics.sh $METRICS/efa.prom
Restart=on-failure
RestartSec=30
Nice=10
EOF_UNIT
}

has_gpu_exporter() {
    ((GPUS > 0)) && command -v dcgm-exporter >/dev/null
}

# Which job has which GPU it reads in the folder that the stage gpu_use makes.
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

tell_efa() {
    ((EFA > 0)) || return 0
    install -d -m 755 "$METRICS"
    efa_unit | put_file "$EFA_UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-efa-metrics || echo "the metrics of EFA do not start"
}

# Once a boot: whether they run, nobody waits for.
check() {
    [[ -e $RUN_DIR/exporters ]]
}

apply() {
    if command -v prometheus-node-exporter >/dev/null; then
        tell_efa
        put_file "$EXPORTER_OPTIONS" 644 <<<"$(exporter_options)"
        systemctl restart prometheus-node-exporter || echo "the node exporter does not start"
    fi
    if has_gpu_exporter; then
        gpu_unit | put_file "$GPU_UNIT" 644
        systemctl daemon-reload
        systemctl restart tidegate-gpu-metrics || echo "dcgm-exporter does not start"
    fi
    touch "$RUN_DIR/exporters"
}
