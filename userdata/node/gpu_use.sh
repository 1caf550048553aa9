# shellcheck shell=bash
# needs: gpu shared
# Which job has which GPU, and how much it is used: see gpu-use.sh. Of Neuron devices: neuron_use.py.
# No node ends by this.

readonly GPU_JOBS=/run/tidegate/gpu-jobs UNIT=/etc/systemd/system/tidegate-gpu-use.service
readonly PROLOG=/etc/tidegate/prolog.d/60-gpu-jobs.sh EPILOG=/etc/tidegate/epilog.d/30-gpu-jobs.sh
readonly NEURON_JOBS=/run/tidegate/neuron-jobs METRICS=/run/tidegate/metrics
readonly NEURON_UNIT=/etc/systemd/system/tidegate-neuron-use.service

# A file for each GPU, with its job's id. Source: dcgm-exporter's README, "How to include HPC jobs in
# metric labels".
prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# No job fails by this. Parts of a GPU have other names, and one in shards or mps has several jobs.
[[ ! -s /etc/tidegate/mig ]] || exit 0
! grep -qs '^Name=[ms]' /etc/slurm/gres.node.conf || exit 0
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

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: the use of GPUs
[Service]
ExecStart=/bin/bash $PWD/files/gpu-use.sh
Restart=always
RestartSec=30
Nice=10
EOF_UNIT
}

# Slurm tells a prolog which GPUs a job has and no other GRES (gres_g_prep_set_env), so here is a file
# for each job, with the name that its cgroup has from 26.05 on.
neuron_prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# No job fails by this.
[[ $SLURM_JOB_ID == *[!0-9]* ]] || echo "${SLURM_JOB_SLUID:-}" 2>/dev/null >"/run/tidegate/neuron-jobs/$SLURM_JOB_ID"
exit 0
END_OF_PROLOG
}

neuron_epilog() {
    cat <<'END_OF_EPILOG'
#!/bin/bash
[[ $SLURM_JOB_ID == *[!0-9]* ]] || rm -f "/run/tidegate/neuron-jobs/$SLURM_JOB_ID"
exit 0
END_OF_EPILOG
}

# AWS's package puts it where no service looks.
neuron_monitor() {
    [[ $GRES != neuron ]] || PATH=$PATH:/opt/aws/neuron/bin type -P neuron-monitor || true
}

neuron_unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: the use of Neuron devices
[Service]
ExecStart=$(command -v python3) $PWD/files/neuron_use.py $METRICS/neuron.prom $NEURON_JOBS $PWD/files/gpu-use.sh $(neuron_monitor) -c $PWD/files/neuron-monitor.json
Restart=always
RestartSec=30
Nice=10
EOF_UNIT
}

check() {
    if [[ -n $(neuron_monitor) ]]; then
        has_file "$PROLOG" neuron_prolog && has_file "$EPILOG" neuron_epilog &&
            has_file "$NEURON_UNIT" neuron_unit && systemctl is-active --quiet tidegate-neuron-use
    else
        ((GPUS == 0)) || { has_file "$PROLOG" prolog && has_file "$EPILOG" epilog &&
            has_file "$UNIT" unit && systemctl is-active --quiet tidegate-gpu-use; }
    fi
}

apply() {
    install -d -m 755 "$GPU_JOBS" "${PROLOG%/*}" "${EPILOG%/*}"
    if [[ -n $(neuron_monitor) ]]; then
        install -d -m 755 "$NEURON_JOBS" "$METRICS"
        neuron_prolog | put_file "$PROLOG" 755
        neuron_epilog | put_file "$EPILOG" 755
        neuron_unit | put_file "$NEURON_UNIT" 644
        systemctl daemon-reload
        systemctl restart tidegate-neuron-use || true
        return
    fi
    prolog | put_file "$PROLOG" 755
    epilog | put_file "$EPILOG" 755
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-gpu-use || true
}
