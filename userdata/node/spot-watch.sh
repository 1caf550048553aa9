#!/bin/bash
# usage: tidegate-spot-watch INSTANCE_ID SECONDS
# Looks for the spot notice every SECONDS. Then it drains this node, and leaves the jobs to the
# service, which knows the whole cluster. When the service is silent (its event is late or lost,
# the queues cannot be reached) it signals those that asked and requeues them itself. Both at
# once do no harm: the drain's reason says who has the jobs. Without a head it tries until the end.
set -uo pipefail

readonly IMDS=http://169.254.169.254/latest
readonly SERVICE_S=5 MARGIN_S=25
# Who has the jobs stands in the brackets at the end of the drain's reason: for all three see
# tidegate.core.model.drain_reason.
readonly OURS='tidegate: EC2 says that it reclaims this spot instance (noticed until'
readonly SERVICE='tidegate: [^[]* (reclaim)'
readonly SAVING='tidegate: the node saves its jobs (saving)'
readonly REQUEST='(^|[^A-Za-z0-9_])tidegate:ckpt=(([BS]):)?(SIG)?(HUP|INT|QUIT|USR1|USR2|TERM|CONT|XCPU|URG)@([0-9]{1,4})([^A-Za-z0-9_]|$)'
readonly OPTION='^#SBATCH.*[[:space:]]--signal[=[:space:]]["'"'"']?(([RB]+):)?(SIG)?(HUP|INT|QUIT|USR1|USR2|TERM|CONT|XCPU|URG)(@([0-9]{1,5}))?["'"'"']?([[:space:]]|$)'
instance_id=$1 poll_s=$2 token=
declare -A requeue_at asked

# The HTTP status; the notice itself goes to $notice.
look() {
    curl -s -m 2 -o "$notice" -w '%{http_code}' -H "X-aws-ec2-metadata-token: $token" \
        "$IMDS/meta-data/spot/instance-action"
}

new_token() {
    token=$(curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token")
}

await_notice() {
    while :; do
        case $(look) in
            200) break ;;
            401) new_token; sleep 0.5 ;;
            *) sleep "$poll_s" ;;
        esac
    done
    at=$(sed -n 's/.*"time" *: *"\([^"]*\)".*/\1/p' "$notice")
    end_s=$(date -d "$at" +%s) || end_s=$(($(date +%s) + 120))
}

left_s() { echo $((end_s - $(date +%s))); }

drain() { timeout 10 scontrol update nodename="$instance_id" state=drain reason="$1"; }

has_reason() { timeout 10 scontrol show node -o "$instance_id" | grep -q "Reason=$1"; }

# Ids alone: a job's comment may hold anything, also what looks like another job's line.
running() { timeout 10 squeue -h -w "$instance_id" -t R -o %A; }

# What a job asked for: its comment says it, or --signal in its script, in which the last option
# before the first command counts. "scancel's options|signal|seconds", nothing without a request.
request_of() {
    local comment line to='' found=''
    comment=$(timeout 10 squeue -h -j "$1" -o %k) || return
    if [[ $comment =~ $REQUEST ]]; then
        case ${BASH_REMATCH[3]} in B) to=--batch ;; S) to='' ;; *) to=--full ;; esac
        echo "$to|${BASH_REMATCH[5]}|$((10#${BASH_REMATCH[6]}))"
        return
    fi
    while IFS= read -r line; do
        [[ $line == '#'* || -z ${line//[[:space:]]/} ]] || break
        [[ ! $line =~ $OPTION ]] || {
            [[ ${BASH_REMATCH[2]} == *B* ]] && to=--batch || to=''
            found="$to|${BASH_REMATCH[4]}|$((10#${BASH_REMATCH[6]:-60}))"
        }
    done < <(timeout 10 scontrol write batch_script "$1" - 2>/dev/null)
    [[ -z $found ]] || echo "$found"
}

# Of the nodes of a job that save it themselves the one that began first signals it. Slurm's times
# are whole seconds, hence the pause: who began in the same one shows by then.
is_first() {
    local nodes first
    nodes=$(timeout 10 squeue -h -j "$1" -o %N)
    [[ $nodes == *[],]* ]] || return 0
    sleep 1
    first=$(timeout 10 scontrol show node -o "$nodes" |
        sed -n "s/^NodeName=\([^ ]*\) .* Reason=$SAVING \[[^@]*@\([^]]*\)\].*/\2 \1/p" | sort | head -n 1)
    [[ -z $first || ${first#* } == "$instance_id" ]]
}

# Notes when a job is requeued at the latest, and signals one that asked. What Slurm does not
# answer is asked again.
take() {
    local job=$1 latest=$((end_s - MARGIN_S)) now request to sig seconds
    now=$(date +%s)
    requeue_at[$job]=$latest
    request=$(request_of "$job") || return
    if IFS='|' read -r to sig seconds <<<"$request" && [[ -n $sig ]]; then
        ! is_first "$job" || timeout 10 scancel ${to:+"$to"} --signal="$sig" "$job" || return
        ((now + seconds > latest)) || requeue_at[$job]=$((now + seconds))
    fi
    asked[$job]=1
}

# A job that has left this node may run elsewhere by now: then only its start is asked for, which
# a running job refuses. Slurm sets the start two minutes ahead again when the old run has ended,
# hence every second. Never in the second of the requeue: Slurm fails a job that starts in it on a
# node of the old run ("Job credential revoked").
requeue() {
    if [[ $2 == *" $1 "* ]]; then
        timeout 10 scontrol requeue Incomplete "$1"
    else
        timeout 10 scontrol update jobid="$1" starttime=now
    fi
} 2>/dev/null

save_jobs() {
    local job here
    while (($(left_s) > 0)); do
        here=" $(running | tr '\n' ' ') "
        for job in $here; do
            [[ -v asked[$job] ]] || take "$job"
        done
        for job in "${!requeue_at[@]}"; do
            (($(date +%s) < requeue_at[$job])) || requeue "$job" "$here"
        done
        sleep 1
    done
}

# Drains with this reason; 1: the service has drained it already.
claim() {
    while :; do
        ! has_reason "$SERVICE" || return 1
        ! drain "$1" || return 0
        (($(left_s) > 0)) || exit 1
        sleep 1
    done
}

notice=$(mktemp /run/tidegate/spot.XXXXXX)
await_notice
claim "$OURS $at)"
sleep "$SERVICE_S"
! claim "$SAVING" || save_jobs
