# shellcheck shell=bash
# needs: task_env owner_rule
# only_with: JOB_ROLES
# Jobs act on AWS as a role of their own, where the pool or their account has one (JOB_ROLES: words
# like vision=ARN, and =ARN for all others): see job_credentials.py. Their tasks find it by their
# environment (task_env), each for its own job and as long as that is on the node. What runs in containers of
# pyxis finds it by a hook of enroot's: it sees neither this machine's files nor what a TaskProlog says.

readonly PROLOG=/etc/tidegate/prolog.d/60-job-role.sh EPILOG=/etc/tidegate/epilog.d/60-job-role.sh
readonly UNIT=/etc/systemd/system/tidegate-job-credentials.service
# A port that only root may open: who opened it while the service is away could collect tokens. Below
# those of Lustre (1018 to 1023, FSx's guide), and taken before the kernel's NFS client can, which binds
# any from 665 on at each mount (its sunrpc.min_resvport): the stage file_systems comes after this.
readonly JOBS=$RUN_DIR/jobs PORT=1017 TRIES=100
readonly OWN=/etc/tidegate/job-role.sh HOOK=/etc/enroot/hooks.d/50-tidegate-role.sh

prolog() {
    printf '#!/bin/bash\nreadonly jobs=%q cluster=%q\n' "$JOBS" "$CLUSTER"
    cat <<'END_OF_PROLOG'
# A secret that only the job's user can read. What it is called in CloudTrail: 64 letters at most.
folder=$jobs/$SLURM_JOB_ID
secret=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
session=$cluster-$SLURM_JOB_ID-${SLURM_JOB_USER:-$SLURM_JOB_UID}
session=${session//[^A-Za-z0-9+=,.@_-]/-}
install -d -m 711 "$jobs" "$folder"
install -m 600 /dev/stdin "$folder/uid" <<<"$SLURM_JOB_UID"
install -m 600 /dev/stdin "$folder/session" <<<"${session:0:64}"
# Without a line's end: SDKs send the file as it is, and a header holds none.
install -m 400 -o "$SLURM_JOB_UID" /dev/stdin "$folder/token" < <(printf %s "$SLURM_JOB_ID.$secret")
exit 0
END_OF_PROLOG
}

epilog() {
    printf '#!/bin/bash\nreadonly jobs=%q\n' "$JOBS"
    cat <<'END_OF_EPILOG'
rm -rf "${jobs:?}/$SLURM_JOB_ID"
exit 0
END_OF_EPILOG
}

# For a shell of the job's: a task of a heterogeneous job knows its leader's id, the Prolog its component's.
own() {
    printf '# . %s\n' "$OWN"
    cat <<EOF_OWN
for tidegate_id in "\$SLURM_JOB_ID" \$(env | sed -n 's/^SLURM_JOB_ID_HET_GROUP_[0-9]*=//p'); do
    if [ -r "$JOBS/\$tidegate_id/token" ]; then
        export AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:$PORT/
        export AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="$JOBS/\$tidegate_id/token"
        : "\${AWS_REGION:=$AWS_REGION}" "\${AWS_DEFAULT_REGION:=$AWS_REGION}"
        export AWS_REGION AWS_DEFAULT_REGION
        break
    fi
done
EOF_OWN
}

# Runs as the job's user, before the container is entered.
# Source: enroot's documents, "Pre-start hooks"; its conf/hooks/extra/50-slurm-pmi.sh does the like.
hook() {
    printf '#!/bin/bash\nreadonly own=%q\n' "$OWN"
    cat <<'END_OF_HOOK'
set -eu
names=(AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE)
unset "${names[@]}"
[[ -n ${SLURM_JOB_ID:-} ]] || exit 0
. "$own"
token=${AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE:-}
[[ -n $token ]] || exit 0
for name in "${names[@]}"; do
    echo "$name=${!name}"
done >>"$ENROOT_ENVIRON"
echo "$token $token none x-create=file,bind,ro,nosuid,nodev,noexec,private" >>"$ENROOT_MOUNTS"
END_OF_HOOK
}

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: credentials of the jobs' role
StartLimitIntervalSec=0
[Service]
ExecStart=$(command -v python3) $PWD/files/job_credentials.py $PORT $JOBS $JOB_ROLES -- /bin/bash $PWD/files/assume-role.sh
Restart=always
RestartSec=1
LimitNOFILE=65536
OOMScoreAdjust=-900
EOF_UNIT
}

# What it says to who shows no token.
answers() {
    [[ $(curl -s --noproxy '*' -m 2 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/") == 403 ]]
}

check() {
    has_file "$OWN" own && { [[ $CONTAINERS != pyxis ]] || has_file "$HOOK" hook; } &&
        has_file "$PROLOG" prolog && has_file "$EPILOG" epilog && has_file "$UNIT" unit &&
        answers
}

apply() {
    install -d -m 711 "$JOBS"
    install -d "${PROLOG%/*}" "${EPILOG%/*}"
    own | put_file "$OWN" 644
    if [[ $CONTAINERS == pyxis ]]; then
        install -d "${HOOK%/*}"
        hook | put_file "$HOOK" 755
    fi
    prolog | put_file "$PROLOG" 755
    epilog | put_file "$EPILOG" 755
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    systemctl restart tidegate-job-credentials
    # systemd calls it active also when it ends in a second, since somebody else has the port.
    local try
    for ((try = 0; try < TRIES; try++)); do
        ! answers || return 0
        sleep 0.1
    done
    echo "nobody answers jobs on port $PORT: $(ss -Hatnp "sport = :$PORT" 2>&1)"
    return 1
}
