# shellcheck shell=bash
# needs: packages identity
# The head's Prometheus and its node exporter, from the distribution's packages. Both listen on this
# machine alone. Prometheus reaches no metadata service (owner_rule.sh), so it has no right on AWS: the
# agent tells it the nodes, and the relay signs what it writes elsewhere (remote_write.sh). It gives way
# to slurmctld where memory or processors are short.
#
# When it ends it would wait a minute for a workspace that takes nothing, which is longer than Debian's unit
# waits for it, and that unit kills nobody: the next one would find the port taken.
#
# Whether they still run is systemd's business: a Prometheus that crashes must not fail a head's boot.

readonly METRICS=/run/tidegate/metrics CONFIG=/etc/prometheus/tidegate.yml
readonly RULES=/etc/prometheus/tidegate.rules.yml
readonly OPTIONS=/etc/default/prometheus EXPORTER_OPTIONS=/etc/default/prometheus-node-exporter
# A file system that hangs must not hang a scrape. Overlays of containers lie at paths left out anyway.
readonly NO_DISKS="--collector.filesystem.fs-types-exclude=nfs|lustre|fuse|tmpfs|ramfs|squashfs|autofs"
readonly DROP_IN=/etc/systemd/system/prometheus.service.d/tidegate.conf

options() {
    printf 'ARGS="%s"' "--config.file=$CONFIG --web.listen-address=127.0.0.1:9090 --storage.tsdb.retention.time=${METRICS_DAYS}d --storage.tsdb.retention.size=4GB --storage.remote.flush-deadline=3s"
}

exporter_options() {
    printf 'ARGS="%s"' "--web.listen-address=127.0.0.1:9100 --collector.textfile.directory=$METRICS --collector.disable-defaults --collector.textfile --collector.cpu --collector.loadavg --collector.meminfo --collector.filesystem $NO_DISKS --collector.diskstats --collector.netdev"
}

drop_in() {
    printf '[Service]\nMemoryMax=25%%\nCPUWeight=20\nOOMScoreAdjust=500'
}

is_ours() {
    [[ -e $DROP_IN ]]
}

check() {
    if [[ -z $METRICS_DAYS ]]; then
        ! is_ours
        return
    fi
    [[ -d $METRICS ]] && cmp -s files/prometheus.yml "$CONFIG" && cmp -s files/tidegate.rules.yml "$RULES" &&
        has_file "$OPTIONS" options && has_file "$EXPORTER_OPTIONS" exporter_options &&
        has_file "$DROP_IN" drop_in
}

apply() {
    if [[ -z $METRICS_DAYS ]]; then
        systemctl disable prometheus prometheus-node-exporter || true
        systemctl stop prometheus prometheus-node-exporter || true
        rm -f "$DROP_IN" "$METRICS"/*
        systemctl daemon-reload
        return
    fi
    install -d -o "$AGENT_USER" -m 755 "$METRICS"
    install -d "${DROP_IN%/*}" "${CONFIG%/*}"
    put_file "$CONFIG" 644 <files/prometheus.yml
    put_file "$RULES" 644 <files/tidegate.rules.yml
    put_file "$OPTIONS" 644 <<<"$(options)"
    put_file "$EXPORTER_OPTIONS" 644 <<<"$(exporter_options)"
    put_file "$DROP_IN" 644 <<<"$(drop_in)"
    systemctl daemon-reload
    systemctl enable prometheus prometheus-node-exporter || true
    systemctl restart prometheus prometheus-node-exporter || echo "they do not start: journalctl -u prometheus"
}
