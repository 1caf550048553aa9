# shellcheck shell=bash
# needs: shape
# What every task finds in its environment, by Slurm's TaskProlog: the shell that submits is on the
# head, so a node's /etc/profile.d would never be read. What the job itself has set stays.

readonly PROLOG=/etc/tidegate/task-prolog ENVIRONMENT=/etc/tidegate/task.env

# NCCL and MPI take EFA without being told, and no bridge of a container for their first handshake.
# Whether a device does RDMA libfabric finds out by itself; asked for on one that cannot (of G4dn, G5,
# C5n), it ends the program. Of those of P4d and Trn it makes no use for older programs unless it is asked.
# Source: libfabric, prov/efa, efa_rdm_get_use_device_rdma; AWS Neuron's and NCCL's guides for EFA.
environment() {
    # The metadata service, which would tell the region, is not for jobs.
    [[ -z $JOB_ROLES ]] || printf '%s\n' "AWS_REGION=$AWS_REGION" "AWS_DEFAULT_REGION=$AWS_REGION"
    ((EFA == 0)) ||
        printf '%s\n' FI_PROVIDER=efa FI_EFA_FORK_SAFE=1 'NCCL_SOCKET_IFNAME=^lo,docker'
    ((EFA == 0)) || [[ $GPU_TYPE != a100* && $GPU_TYPE != trainium* ]] || echo FI_EFA_USE_DEVICE_RDMA=1
}

prolog() {
    cat <<'END_OF_PROLOG'
#!/bin/bash
# Runs as the job's user; lines `export NAME=VALUE` become the task's environment.
while IFS='=' read -r name value; do
    [[ -v $name ]] || echo "export $name=$value"
done </etc/tidegate/task.env
devices=${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}
if [[ -s /etc/tidegate/mig && -n $devices ]]; then
    mapfile -t uuids </etc/tidegate/mig
    chosen=
    for device in ${devices//,/ }; do
        chosen+=,${uuids[device]}
    done
    echo "export CUDA_VISIBLE_DEVICES=${chosen#,}"
fi
# What a job inherits of the one that sent it is no use to it.
[[ ${AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE:-} != /run/tidegate/jobs/* ]] ||
    printf 'unset %s\n' AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
unset AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
if [[ -r /etc/tidegate/job-role.sh ]]; then
    . /etc/tidegate/job-role.sh
fi
for name in AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE; do
    [[ ! -v $name ]] || echo "export $name=${!name}"
done
if [[ -d /run/tidegate/mps/$SLURM_JOB_ID ]]; then
    echo "export CUDA_MPS_PIPE_DIRECTORY=/run/tidegate/mps/$SLURM_JOB_ID"
fi
exit 0
END_OF_PROLOG
}

check() {
    [[ -x $PROLOG ]] && has_file "$PROLOG" prolog && cmp -s "$ENVIRONMENT" <(environment)
}

apply() {
    environment | put_file "$ENVIRONMENT" 644
    prolog | put_file "$PROLOG" 755
}
