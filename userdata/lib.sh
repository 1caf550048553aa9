# shellcheck shell=bash disable=SC2153
# What all stages use. What the machine was told, then what earlier stages found out about it.

# systemd gives services the language of the image, and with it bash writes its clock with a comma.
export LC_ALL=C

# shellcheck disable=SC2034  # other files use these
readonly RUN_DIR=/run/tidegate LOG_DIR=/var/log/tidegate
# Made right before Slurm's daemon is started, which starts only where it is: the packages enable
# their units, and /run is empty after a reboot.
# shellcheck disable=SC2034  # the stages use it
readonly MAY_START=$RUN_DIR/may-start
readonly WRONG_CONFIGURATION=78 # sysexits(3)
readonly IMDS=http://169.254.169.254/latest

# shellcheck disable=SC2034
MUNGE_FINGERPRINT='' EFS_OPTIONS='' LUSTRE='' FILE_SYSTEMS='' REPOSITORY_URL='' SLURM_RELEASE=''
# shellcheck disable=SC2034
MIG_PROFILES='' SHARED='' LAYOUT='' PREFETCH='' CONTAINER_CACHE=''
# shellcheck disable=SC2034
THREADS_PER_CORE='' TOPOLOGY='' JOB_ROLES='' METRICS_DAYS='' REMOTE_WRITE_TOKEN='' EXPORTERS='' ON_NODE_START='' ON_NODE_START_S=60 ON_NODE_CONFIGURED='' ON_NODE_CONFIGURED_S=60
for file in /etc/tidegate/boot.env $RUN_DIR/facts; do
    # shellcheck disable=SC1090
    [[ ! -e $file ]] || source "$file"
done

# Sets `now_ms`: a boot asks a hundred times, and a process for each would be a tenth of its work.
set_now_ms() {
    # shellcheck disable=SC2034  # who asks reads it
    now_ms=$((${EPOCHREALTIME/./} / 1000))
}

# Appends: where /dev/console is a file, `>` would cut it. No `date`: a boot tells twenty lines.
console() {
    local now=$EPOCHREALTIME
    TZ=UTC printf 'tidegate %(%FT%T)T.%.3sZ %s\n' "${now%.*}" "${now#*.}" "$*" >>/dev/console
}

# refuse TEXT: nothing that another try could mend.
refuse() {
    echo "$*"
    exit "$WRONG_CONFIGURATION"
}

# put_fact NAME VALUE: for the stages after this one, until the machine is off.
put_fact() {
    printf '%s=%q\n' "$1" "$2" >>"$RUN_DIR/facts"
}

# pause TRY: doubles up to 20 s with full jitter; a hundred nodes that boot together must not
# ask together.
pause() {
    local bound_ms=$((1000 << ($1 < 6 ? $1 - 1 : 5))) wait_ms
    ((bound_ms < 20000)) || bound_ms=20000
    wait_ms=$((RANDOM * bound_ms / 32768 + 50))
    sleep "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
}

# put_file PATH MODE: standard input becomes the file, all at once; an equal file stays.
put_file() {
    local new=$1.new.$BASHPID
    install -m "$2" /dev/stdin "$new"
    if [[ -e $1 ]] && cmp -s "$new" "$1"; then
        rm "$new"
    else
        mv "$new" "$1"
    fi
}

# has_file PATH COMMAND...: whether the file holds exactly what the command prints. Most checks ask
# for what is not there yet, and of those no process is started.
has_file() {
    local text
    [[ -e $1 ]] && ! IFS= read -rd '' text <"$1" && [[ $text == "$("${@:2}")"$'\n' ]]
}

# rotation DAEMON: logrotate's file for the log of one of Slurm's. Debian's tells the daemon by a file
# that systemd's units do not write, so it goes on writing into what was deleted, and where the signal
# arrives it makes the daemon read its configuration anew. USR2 opens the log anew (slurmctld(8)).
rotation() {
    cat <<EOF_ROTATION
/var/log/slurm/$1.log {
    size 5M
    rotate 12
    compress
    delaycompress
    missingok
    notifempty
    nocreate
    postrotate
        systemctl kill -s USR2 --kill-who=main $1 || true
    endscript
}
EOF_ROTATION
}

# Monitors of the image that have the GPUs open, and then no mode changes and no reset is made ("In use by
# another client"); NVIDIA's own service for MIG stops them too (mig-parted, deployments/systemd/hooks.sh).
# shellcheck disable=SC2034
readonly MONITORS='nvsm nvidia-dcgm dcgm dcgm-exporter'

# stop_units NAME...: those that run, which `stopped` has then.
stop_units() {
    local each
    stopped=''
    for each; do
        if systemctl is-active --quiet "$each"; then
            systemctl stop "$each"
            stopped+=" $each"
        fi
    done
}

start_units() {
    local each
    for each; do
        systemctl start "$each" || echo "$each does not start again"
    done
}

# pyxis: where the plugin of Slurm is that brings --container-image; nothing when it is not there.
pyxis() {
    local file
    for file in /usr/{,local/}lib/{,*/}slurm*/spank_pyxis.so; do
        [[ ! -e $file ]] || { echo "$file"; return; }
    done
}

# apt_get ARGUMENTS: waits for who else holds the lock, tries downloads again, and restarts no service.
apt_get() {
    NEEDRESTART_SUSPEND=1 DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"
}

# link_pyxis: plugstack.conf, one for all machines, names where the head has the plugin, and a node passes
# over one that is not there: so it is in each place where NVIDIA's package, pyxis' Makefile and
# Debian's Slurm put plugins.
link_pyxis() {
    local found folder
    found=$(pyxis)
    for folder in $(pyxis_folders); do
        [[ -e $folder/spank_pyxis.so ]] || { mkdir -p "$folder" && ln -sfn "$found" "$folder/spank_pyxis.so"; }
    done
}

pyxis_folders() {
    local triplet
    triplet=$(uname -m)-linux-gnu
    echo /usr/{local/lib,lib,"lib/$triplet"}/{slurm,slurm-wlm}
}

is_pyxis_linked() {
    local folder
    for folder in $(pyxis_folders); do
        [[ -e $folder/spank_pyxis.so ]] || return 1
    done
}

# pyxis' importer, on nodes; slurm.conf's neighbour plugstack.conf names it where there is a cache.
readonly IMPORTER=/usr/local/libexec/tidegate-import

# plugin_line: of plugstack.conf.
plugin_line() {
    echo "optional $(pyxis)${CONTAINER_CACHE:+ importer=$IMPORTER}"
}

# has_importer: pyxis refuses an option that it does not know, and then there are no containers.
has_importer() {
    grep -qaF 'pyxis: importer' "$(pyxis)"
}

imds_token() {
    curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token"
}

# IMDSv2 only. Mostly asked in a subshell, which could not keep a token: a boot has one.
ask_imds() {
    local token=${IMDS_TOKEN:-}
    [[ -n $token ]] || token=$(imds_token) || return
    curl -fsS -m 2 -H "X-aws-ec2-metadata-token: $token" "$@"
}

# imds NAME...: metadata, in lines; all of them or none of use, since curl ends at the first failure.
imds() {
    ask_imds --fail-early -w '\n' "${@/#/$IMDS/meta-data/}"
}

# The same of what an instance need not have: nothing for a 404, which is an answer.
imds_if_any() {
    local answer code=0
    answer=$(ask_imds -w '\n%{http_code}' "$IMDS/meta-data/$1") || code=$?
    [[ ${answer##*$'\n'} != 404 ]] || return 0
    echo "${answer%$'\n'*}"
    return "$code"
}

# A word as a JSON string. Most are plain, and need no Python; in the language C all others do.
quoted() {
    local text=$1
    if [[ $text == *[![:print:]]* ]]; then
        python3 -IS -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$text"
        return
    fi
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"\n' "$text"
}

# endpoint SERVICE: where an AWS API is.
endpoint() {
    local own=AWS_ENDPOINT_URL_${1^^}
    echo "${!own:-${AWS_ENDPOINT_URL:-https://$1.$AWS_REGION.$AWS_DOMAIN}}"
}

# signed SERVICE ARGUMENT...: asks an AWS API by curl, since a plain image has no AWS CLI, and one
# that has starts it in half a second. The arguments are curl's, see sign.py. The role's keys go by
# a pipe: command lines are there for all to read.
signed() {
    local role keys
    role=$(imds iam/security-credentials/) &&
        keys=$(imds "iam/security-credentials/$role") || return
    printf '%s' "$keys" | python3 -IS ./sign.py "$AWS_REGION" "$@" |
        curl -sS --fail-with-body -K - "${@:2}"
}

# aws_json SERVICE TARGET: sends the JSON on standard input to an AWS API and prints the answer.
aws_json() {
    local body
    body=$(cat)
    signed "$1" -m 20 -H "X-Amz-Target: $2" -H 'Content-Type: application/x-amz-json-1.1' \
        -d "$body" "$(endpoint "$1")/"
}

# put_event KIND MEMBERS: a hint on the cluster's bus about this machine, with the id of the plan
# that bought it. Asks for both itself: the runner began before any stage had found out a fact.
put_event() {
    local id launch detail
    [[ -n ${BUS:-} ]] || return 0
    id=$(imds instance-id) || return
    launch=$(imds tags/instance/tidegate:launch 2>/dev/null || true)
    detail="{\"instance-id\": \"$id\", \"role\": \"$ROLE\", \"plan_id\": $(quoted "${launch%-*}"), $2}"
    aws_json events AWSEvents.PutEvents <<EOF_EVENT >/dev/null
{"Entries": [{"Source": "tidegate.node", "DetailType": "$1", "EventBusName": "$BUS",
              "Detail": $(quoted "$detail")}]}
EOF_EVENT
}
