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


readonly LOG_DIR=/var/log/tidegate
readonly MAY_START=/run/tidegate/may-start
stage=start

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

start_dead_man() {
    setsid bash -c "sleep $BOOT_BOUND_S
        echo 'tidegate not ready after $BOOT_BOUND_S s' >>/dev/console
        [[ $ROLE == head ]] || systemctl poweroff" </dev/null >/dev/null 2>&1 &
    dead_man=$!
}

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


readonly AGAIN=/usr/local/sbin/tidegate-boot

stage_again() {
    [[ $0 -ef $AGAIN ]] || install -m 700 "$0" "$AGAIN"
    cat >/etc/systemd/system/tidegate-boot.service <<EOF_UNIT
[Unit]
Description=Tidegate: the head, from the owner rule to the agent
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$AGAIN
Restart=on-failure
RestartSec=30
[Install]
WantedBy=multi-user.target
EOF_UNIT
    install -d /etc/systemd/system/slurmctld.service.d
    cat >/etc/systemd/system/slurmctld.service.d/tidegate.conf <<EOF_UNIT
[Unit]
ConditionPathExists=$MAY_START
EOF_UNIT
    systemctl daemon-reload
    systemctl enable tidegate-boot
}


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


readonly FINGERPRINT_FILE=$SHARED_DIR/.tidegate/munge.fingerprint

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


stage_config() {
    [[ ! -e /etc/tidegate/configured ]] || return 0
    install -d -m 755 /etc/slurm
    install -d -o slurm -g slurm -m 700 "$STATE_DIR"
    install -d -o slurm -g slurm -m 755 /var/log/slurm
    file_SLURM_CONF_GZ | base64 -d | gunzip >/etc/slurm/slurm.conf
    file_CGROUP_CONF >/etc/slurm/cgroup.conf
    echo 'Include /etc/slurm/gres.node.conf' >/etc/slurm/gres.conf
    # The head has no GPU, but slurmctld waits up to 60 s for a file that is not there.
    : >/etc/slurm/gres.node.conf
    install -d -m 755 /etc/tidegate
    touch /etc/tidegate/configured
}


is_answering() {
    [[ $(timeout 5 scontrol ping) == *'is UP'* ]]
}

stage_slurmctld() {
    local deadline=$((SECONDS + 60))
    touch "$MAY_START"
    systemctl start slurmctld
    until is_answering; do
        if ((SECONDS >= deadline)); then
            tail -n 2 /var/log/slurm/slurmctld.log
            return 1
        fi
        sleep 0.1
    done
}


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
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-agent
}

run_stages again identity owner_rule shared munge config slurmctld agent
