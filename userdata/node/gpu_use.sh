# shellcheck shell=bash
# needs: gpu shared
# Which job has which GPU, and how much it is used: see gpu-use.sh.
# No node ends by this.

readonly GPU_JOBS=/run/tidegate/gpu-jobs UNIT=/etc/systemd/system/tidegate-gpu-use.service
readonly PROLOG=/etc/tidegate/prolog.d/60-gpu-jobs.sh EPILOG=/etc/tidegate/epilog.d/30-gpu-jobs.sh

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

check() {
    ((GPUS == 0)) || { has_file "$PROLOG" prolog && has_file "$EPILOG" epilog &&
        has_file "$UNIT" unit && systemctl is-active --quiet tidegate-gpu-use; }
}

apply() {
    install -d -m 755 "$GPU_JOBS" "${PROLOG%/*}" "${EPILOG%/*}"
    prolog | put_file "$PROLOG" 755
    epilog | put_file "$EPILOG" 755
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-gpu-use || true
}
