#!/bin/bash
# Tidegate: the head of cluster dev
set -euo pipefail
umask 022

readonly ROLE=head
readonly HEAD_NAME=head
readonly METADATA_USERS='root slurm'
readonly AGENT_USER=slurm
readonly AGENT_COMMAND='/opt/tidegate/bin/tidegate-agent --cluster dev'
readonly STATE_DIR=/var/spool/slurmctld
readonly BOOT_BOUND_S=900
readonly MUNGE_SECRET=arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf
readonly MUNGE_FINGERPRINT=''
readonly MUNGE_WAIT_S=120
readonly FILE_SYSTEM=fs-0123456789abcdef0
readonly ACCESS_POINT=''
readonly SHARED_DIR=/shared
readonly SHARED_WAIT_S=300

file_SLURM_CONF_GZ() {
    cat <<'END_OF_SLURM_CONF_GZ'
...
END_OF_SLURM_CONF_GZ
}

file_CGROUP_CONF() {
    cat <<'END_OF_CGROUP_CONF'
CgroupPlugin=autodetect
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
END_OF_CGROUP_CONF
}

file_AGENT_ENV() {
    cat <<'END_OF_AGENT_ENV'
TIDEGATE_BUCKET="tidegate-dev"
TIDEGATE_BUS="tidegate-dev"
END_OF_AGENT_ENV
}

# Runs stages one after the other. A node that cannot become ready never idles for money:
# whatever ends this script before `ready` is named on the console and powers the node off,
# which terminates it. The head stays up, so that someone can look at it.

readonly LOG_DIR=/var/log/tidegate
stage=start

# Appends: where /dev/console is a file, `>` would cut it.
console() {
    printf 'tidegate %s %s\n' "$(date -u +%FT%T.%3NZ)" "$*" >>/dev/console
}

give_up() {
    if [[ $ROLE == node ]]; then
        systemctl poweroff
    fi
    exit 1
}

on_exit() {
    local code=$?
    trap - EXIT
    if [[ $stage == ready ]]; then
        exit "$code"
    fi
    console "stage $stage failed (exit $code): $(tail -n 3 "$LOG_DIR/$stage.log" | tr '\n' ' ')"
    give_up
}

# Nothing may hang for ever either. cloud-init leaves this child alone when it is done.
start_dead_man() {
    setsid bash -c "sleep $BOOT_BOUND_S
        echo 'tidegate not ready after $BOOT_BOUND_S s' >>/dev/console
        [[ $ROLE == head ]] || systemctl poweroff" </dev/null >/dev/null 2>&1 &
    dead_man=$!
}

# retry SECONDS COMMAND...: until it succeeds, for at most SECONDS. The pauses double up to
# 20 s with full jitter: a hundred nodes that boot together must not ask together.
retry() {
    local deadline=$((SECONDS + $1)) pause_ms=1000 wait_ms
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        wait_ms=$((RANDOM * pause_ms / 32768 + 50))
        sleep "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
        pause_ms=$((pause_ms * 2 > 20000 ? 20000 : pause_ms * 2))
    done
}

run_stages() {
    mkdir -p "$LOG_DIR" /run/tidegate
    trap on_exit EXIT
    start_dead_man
    for stage in "$@"; do
        exec >>"$LOG_DIR/$stage.log" 2>&1 </dev/null
        "stage_$stage"
    done
    stage=ready
    kill -- "-$dead_man" || true
    console "ready after $SECONDS s"
}

# Who am I: from the metadata service, IMDSv2 only. Sets INSTANCE_ID. The node's host name is its instance id, as its Slurm name and its DNS name
# are; the head keeps its own name, because slurmctld runs under no other.

readonly IMDS=http://169.254.169.254/latest

imds_token() {
    IMDS_TOKEN=$(curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token")
}

imds() {
    curl -fsS -m 2 -H "X-aws-ec2-metadata-token: $IMDS_TOKEN" "$IMDS/meta-data/$1"
}

stage_identity() {
    local name
    retry 60 imds_token
    INSTANCE_ID=$(imds instance-id)
    AWS_DEFAULT_REGION=$(imds placement/region)
    export AWS_DEFAULT_REGION
    if [[ ! $INSTANCE_ID =~ ^i-[0-9a-f]{8,17}$ ]]; then
        echo "no instance id: $INSTANCE_ID"
        return 1
    fi
    name=${HEAD_NAME:-$INSTANCE_ID}
    hostname "$name"
    echo "$name" >/etc/hostname
}

# Only the users in METADATA_USERS reach the metadata service. Any job that did could take the
# instance's role, with it the Munge key, and with that be root on the cluster. Before every
# Slurm daemon, so that no job is ever ahead of it.
#
# Only packets that open a connection are asked for their owner. The last packets of a closed
# one have none: were they refused, the metadata service would keep the connection half open
# and the next one from the same port would hang.

stage_owner_rule() {
    local users=${METADATA_USERS// /, }
    # The first two lines make a second run start from nothing.
    nft -f - <<EOF_NFT
table inet tidegate {}
delete table inet tidegate
table inet tidegate {
    chain output {
        type filter hook output priority 0; policy accept;
        ip daddr 169.254.169.254 goto owners
        ip6 daddr fd00:ec2::254 goto owners
    }
    chain owners {
        tcp flags & (syn | ack) != syn accept
        meta skuid { $users } accept
        reject
    }
    # Containers with a bridge of their own.
    chain forward {
        type filter hook forward priority 0; policy accept;
        ip daddr 169.254.169.254 drop
        ip6 daddr fd00:ec2::254 drop
    }
}
EOF_NFT
}

# The shared file system. One fresh mount target takes minutes to be resolvable, a hanging
# mount is cut and tried again.

mount_shared() {
    timeout --kill-after=5 30 mount -t efs -o "$1" "$FILE_SYSTEM:/" "$SHARED_DIR" &&
        timeout 10 stat -f "$SHARED_DIR" >/dev/null
}

stage_shared() {
    local options=_netdev,noresvport,tls,iam
    [[ -z $ACCESS_POINT ]] || options+=",accesspoint=$ACCESS_POINT"
    mkdir -p "$SHARED_DIR"
    mountpoint -q "$SHARED_DIR" || retry "$SHARED_WAIT_S" mount_shared "$options"
}

# The Munge key is root on the cluster: it goes from Secrets Manager into a file that only
# munge reads, and never to the console, a log or the shared folder. Its fingerprint is no
# secret. Without comparing it, a node with the key of another cluster would only fail after
# a minute of slurmd's tries.

readonly FINGERPRINT_FILE=$SHARED_DIR/.tidegate/munge.fingerprint

# Our own retry has jitter, so the CLI's is switched off; but it shall be patient with the
# metadata service, which it otherwise asks for credentials once and for one second. Both kinds of secret are the key as
# it stands; only binary ones are wrapped in base64 by the API.
fetch_munge_key() {
    AWS_MAX_ATTEMPTS=1 AWS_METADATA_SERVICE_TIMEOUT=5 AWS_METADATA_SERVICE_NUM_ATTEMPTS=3 \
        timeout 60 aws secretsmanager get-secret-value \
        --secret-id "$MUNGE_SECRET" --output json >"$1/answer" &&
        jq -j '.SecretString // empty' "$1/answer" >"$1/key" &&
        jq -r '.SecretBinary // empty' "$1/answer" | base64 -d >>"$1/key"
}

check_munge_key() {
    local bytes fingerprint expected=$MUNGE_FINGERPRINT
    bytes=$(stat -c %s "$1")
    fingerprint=$(sha256sum "$1")
    fingerprint=${fingerprint:0:16}
    if ((bytes < 32 || bytes > 1024)); then
        echo "a Munge key of $bytes bytes is refused"
        return 1
    fi
    if [[ $ROLE == node ]]; then
        expected=${expected:-$(<"$FINGERPRINT_FILE")}
    fi
    if [[ -n $expected && $fingerprint != "$expected" ]]; then
        echo "this is the Munge key $fingerprint, the cluster's is $expected"
        return 1
    fi
    if [[ $ROLE == head ]]; then
        install -d -m 755 "${FINGERPRINT_FILE%/*}"
        echo "$fingerprint" >"$FINGERPRINT_FILE"
    fi
}

stage_munge() {
    local dir
    dir=$(umask 077 && mktemp -d /run/tidegate/munge.XXXXXX)
    (umask 077 && retry "$MUNGE_WAIT_S" fetch_munge_key "$dir")
    check_munge_key "$dir/key"
    install -d -o munge -g munge -m 700 /etc/munge
    install -o munge -g munge -m 400 "$dir/key" /etc/munge/munge.key
    rm -rf "$dir"
    systemctl restart munge
    munge -n | unmunge >/dev/null
}

# Slurm's configuration. Nodes get theirs from slurmctld (configless), all but the line of
# gres.conf that points at a file of their own.

stage_config() {
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 700 "$STATE_DIR"
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    file_SLURM_CONF_GZ | base64 -d | gunzip >/etc/slurm/slurm.conf
    file_CGROUP_CONF >/etc/slurm/cgroup.conf
    echo 'Include /etc/slurm/gres.node.conf' >/etc/slurm/gres.conf
    # The head has no GPU, but slurmctld waits up to 60 s for a file that is not there.
    : >/etc/slurm/gres.node.conf
}

# slurmctld, up and answering.

is_answering() {
    [[ $(timeout 5 scontrol ping) == *'is UP'* ]]
}

stage_slurmctld() {
    local deadline=$((SECONDS + 60))
    systemctl start slurmctld
    until is_answering; do
        if ((SECONDS >= deadline)); then
            tail -n 2 /var/log/slurm/slurmctld.log
            return 1
        fi
        sleep 0.1
    done
}

# The agent runs as SlurmUser (`slurm`), and the owner rule lets that user reach the head's
# role. Only root and SlurmUser may delete nodes: a user of its own would need sudo, and as
# root the agent would hold more than it uses (root reads the Munge key and every home).
# Letting `slurm` have the role gives nothing away: who controls slurmctld can start jobs as
# anyone already. No job runs as `slurm`: it cannot log in, and Slurm runs a job as who sent it.

stage_agent() {
    install -d -m 755 /etc/tidegate
    install -d -o "$AGENT_USER" -m 755 "$SHARED_DIR/.tidegate/users"
    file_AGENT_ENV >/etc/tidegate/agent.env
    [[ -n $AGENT_COMMAND ]] || return 0
    cat >/etc/systemd/system/tidegate-agent.service <<EOF_UNIT
[Unit]
Description=Tidegate agent
After=slurmctld.service
[Service]
User=$AGENT_USER
EnvironmentFile=/etc/tidegate/agent.env
StateDirectory=tidegate
ExecStart=$AGENT_COMMAND
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-agent
}

run_stages identity owner_rule shared munge config slurmctld agent
