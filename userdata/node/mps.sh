# shellcheck shell=bash
# needs: gpu task_env
# only_with: MPS
# Multi-Process Service: a control daemon for each job, as the job's user and over its GPUs alone. One
# for the whole node would serve one user at a time, and jobs of others would wait for it. Jobs with
# gres/mps share the one of their user on their GPU. Prolog and epilog start and end it; the tasks find
# it by their environment. Beside its pipes it writes logs, though not below `log`: that is a pipe of its.

readonly PROLOG=/etc/tidegate/prolog.d/50-mps.sh EPILOG=/etc/tidegate/epilog.d/40-mps.sh

prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# A job without a GPU needs none, nor one with a whole GPU beside gres/mps.
[[ -n ${SLURM_JOB_GPUS:-} ]] || exit 0
of=$SLURM_JOB_ID
install -d -m 755 /run/tidegate/mps
# Another job of the user may be at its end, and would take the daemon with it.
cd /run/tidegate/mps && exec 9>../mps.lock && flock 9 || exit
if grep -qs ^Name=mps /etc/slurm/gres.node.conf; then
    [[ -n ${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE:-} ]] || exit 0
    of=$SLURM_JOB_UID-$SLURM_JOB_GPUS
    ln -sfn "$of" "$SLURM_JOB_ID"
fi
pipes=/run/tidegate/mps/$of unit=tidegate-mps-$of
if ! systemctl -q is-active "$unit"; then
    rm -rf "$pipes"
    install -d -m 700 -o "$SLURM_JOB_UID" "$pipes"
    systemd-run -q -G --unit="$unit" --uid="$SLURM_JOB_UID" \
        --setenv=CUDA_VISIBLE_DEVICES="$SLURM_JOB_GPUS" --setenv=CUDA_MPS_PIPE_DIRECTORY="$pipes" \
        --setenv=CUDA_MPS_LOG_DIRECTORY="$pipes" /usr/bin/nvidia-cuda-mps-control -f || exit
fi
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
cd /run/tidegate/mps && exec 9>../mps.lock && flock 9 || exit 0
of=$(readlink "$SLURM_JOB_ID") && rm "$SLURM_JOB_ID" || of=$SLURM_JOB_ID
[[ -z $(find . -maxdepth 1 -lname "$of") ]] || exit 0
systemctl stop "tidegate-mps-$of" 2>/dev/null
rm -rf "$of"
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
