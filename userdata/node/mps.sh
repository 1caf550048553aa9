# shellcheck shell=bash
# needs: gpu task_env
# only_with: MPS
# Multi-Process Service: a control daemon for each job, as the job's user and over its GPUs alone. One
# for the whole node would serve one user at a time, and jobs of others would wait for it. Prolog and
# epilog start and end it; the tasks find it by their environment.

readonly PROLOG=/etc/tidegate/prolog.d/50-mps.sh EPILOG=/etc/tidegate/epilog.d/40-mps.sh

prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# A job without a GPU needs none.
[[ -n ${SLURM_JOB_GPUS:-} ]] || exit 0
pipes=/run/tidegate/mps/$SLURM_JOB_ID
install -d -m 755 /run/tidegate/mps
install -d -m 700 -o "$SLURM_JOB_UID" "$pipes" "$pipes/log"
systemd-run -q --unit="tidegate-mps-$SLURM_JOB_ID" --uid="$SLURM_JOB_UID" \
    --setenv=CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS" --setenv=CUDA_MPS_PIPE_DIRECTORY="$pipes" \
    --setenv=CUDA_MPS_LOG_DIRECTORY="$pipes/log" /usr/bin/nvidia-cuda-mps-control -f || exit
# It is started, but hears nobody before it has made its pipe: a job that is sooner goes without it.
for ((try = 0; try < 50; try++)); do
    [[ ! -e $pipes/control ]] || exit 0
    sleep 0.1
done
echo "the MPS daemon of job $SLURM_JOB_ID has made no pipe in 5 s" >&2
exit 0
END_OF_PROLOG
}

epilog() {
    cat <<'END_OF_EPILOG'
#!/bin/bash
systemctl stop "tidegate-mps-$SLURM_JOB_ID" 2>/dev/null
rm -rf "/run/tidegate/mps/$SLURM_JOB_ID"
exit 0
END_OF_EPILOG
}

check() {
    ((GPUS == 0)) ||
        { has_file "$PROLOG" prolog && has_file "$EPILOG" epilog; }
}

apply() {
    [[ -x /usr/bin/nvidia-cuda-mps-control ]] ||
        refuse "the image has no nvidia-cuda-mps-control, which comes with the driver's utilities"
    install -d "${PROLOG%/*}" "${EPILOG%/*}"
    prolog | put_file "$PROLOG" 755
    epilog | put_file "$EPILOG" 755
}
