#!/bin/bash
# Tidegate: a node of cluster dev
set -euo pipefail
umask 022

readonly ROLE=node
readonly HEAD=head.ec2.internal:6817
readonly METADATA_USERS=root
readonly SHAPES='g4dn.xlarge 4 15564 1 t4 1
g4dn.12xlarge 48 186777 4 t4 1
g5.12xlarge 48 186777 4 a10g 2'
readonly POOLS='gpu team-ml,fast
cheap -'
readonly REGISTER_WAIT_S=120
readonly SPOT_POLL_S=5
readonly BOOT_BOUND_S=900
readonly MUNGE_SECRET=arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf
readonly MUNGE_FINGERPRINT=''
readonly MUNGE_WAIT_S=120
readonly FILE_SYSTEM=fs-0123456789abcdef0
readonly ACCESS_POINT=''
readonly SHARED_DIR=/shared
readonly SHARED_WAIT_S=300

file_SPOT_WATCH() {
    cat <<'END_OF_SPOT_WATCH'
#!/bin/bash
# usage: tidegate-spot-watch INSTANCE_ID SECONDS
# Looks for the spot notice every SECONDS and then drains this node, which works even when the
# event on the other way is late or lost. Signals and requeues are the service's to order: it
# knows which jobs asked for a signal, and doing it twice would cut their time to checkpoint.
set -uo pipefail

readonly IMDS=http://169.254.169.254/latest
instance_id=$1 poll_s=$2 token=

# The HTTP status; the notice itself goes to $notice.
look() {
    curl -s -m 2 -o "$notice" -w '%{http_code}' -H "X-aws-ec2-metadata-token: $token" \
        "$IMDS/meta-data/spot/instance-action"
}

new_token() {
    token=$(curl -fsS -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 21600' "$IMDS/api/token")
}

drain() {
    scontrol update nodename="$instance_id" state=drain \
        reason="tidegate: spot reclaim at $(jq -r '.time' "$notice")"
}

notice=$(mktemp /run/tidegate/spot.XXXXXX)
while :; do
    case $(look) in
        200) break ;;
        401) new_token; sleep 0.5 ;;
        *) sleep "$poll_s" ;;
    esac
done
until drain; do
    sleep 1
done
END_OF_SPOT_WATCH
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


stage_reboot() {
    cat >/etc/systemd/system/tidegate-rebooted.service <<'EOF_UNIT'
[Unit]
Description=Tidegate: end a node that was rebooted
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "tidegate node was rebooted: powers off" >>/dev/console; systemctl poweroff'
[Install]
WantedBy=multi-user.target
EOF_UNIT
    systemctl enable tidegate-rebooted
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


stage_shape() {
    INSTANCE_TYPE=$(imds instance-type)
    MARKET=$(imds instance-life-cycle)
    POOL=$(imds tags/instance/tidegate:pool)
    # No such tag: the node joins open.
    GATE=$(imds tags/instance/tidegate:gate || true)
    row_of "$INSTANCE_TYPE" "$SHAPES"
    read -r _ CPUS MEMORY_MIB GPUS GPU_TYPE WEIGHT <<<"$ROW"
    row_of "$POOL" "$POOLS"
    read -r _ LABELS <<<"$ROW"
}

row_of() {
    while read -r ROW; do
        [[ ${ROW%% *} != "$1" ]] || return 0
    done <<<"$2"
    echo "this launch template does not know '$1'"
    return 1
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


stage_users() {
    local database
    install -d /var/lib/extrausers /etc/tidegate/prolog.d
    {
        printf '#!/bin/bash\nreadonly published=%q\n' "$SHARED_DIR/.tidegate/users"
        cat <<'END_OF_PROLOG'
for database in passwd group; do
    new=/var/lib/extrausers/.$database.$$
    timeout 5 awk -F: '$3 >= 1000 && $3 < 60000' "$published/$database" >"$new" &&
        mv "$new" "/var/lib/extrausers/$database"
    rm -f "$new"
done
exit 0
END_OF_PROLOG
    } >/etc/tidegate/prolog.d/10-users.sh
    chmod 755 /etc/tidegate/prolog.d/10-users.sh
    /etc/tidegate/prolog.d/10-users.sh 2>/dev/null
    for database in passwd group; do
        sed -i -E "/^$database:/{/extrausers/!s/\$/ extrausers/}" /etc/nsswitch.conf
    done
}


stage_gpu() {
    install -d -m 755 /etc/slurm
    : >/etc/slurm/gres.node.conf
    ((GPUS > 0)) || return 0
    # Without persistence the driver may not have made the device files when slurmd asks.
    timeout 120 nvidia-smi -pm 1
    local files="/dev/nvidia[0-$((GPUS - 1))]"
    ((GPUS > 1)) || files=/dev/nvidia0
    echo "Name=gpu Type=$GPU_TYPE File=$files" >/etc/slurm/gres.node.conf
}


check_gpus() {
    local listed=0 seen
    ((GPUS > 0)) || return 0
    listed=$(timeout 60 nvidia-smi -L | grep -c '^GPU ' || true)
    seen=$(find /dev -maxdepth 1 -name 'nvidia[0-9]*' -type c | wc -l)
    if ((listed != GPUS || seen != GPUS)); then
        echo "$INSTANCE_TYPE has $GPUS GPUs; nvidia-smi lists $listed, /dev has $seen"
        return 1
    fi
}

check_shared() {
    mountpoint -q "$SHARED_DIR" && timeout 10 ls "$SHARED_DIR" >/dev/null && return 0
    echo "$SHARED_DIR is not readable"
    return 1
}

check_owner_rule() {
    if setpriv --reuid=nobody --regid=nogroup --clear-groups curl -s -m 1 -o /dev/null "$IMDS/"; then
        echo "an ordinary user reaches the metadata service"
        return 1
    fi
}

check_clock() {
    local header there
    header=$(curl -s -m 2 -o /dev/null -D - "$IMDS/" | tr -d '\r' | sed -n 's/^Date: //Ip')
    there=$(date -d "${header:-now}" +%s)
    if (($(date +%s) - there > 60 || there - $(date +%s) > 60)); then
        echo "the clock is $(($(date +%s) - there)) s off"
        return 1
    fi
}

stage_health() {
    check_gpus
    check_shared
    check_owner_rule
    check_clock
}


slurmd_conf() {
    local features=$POOL,$INSTANCE_TYPE,${INSTANCE_TYPE%%.*},$MARKET
    [[ $LABELS == - ]] || features+=",$LABELS"
    printf 'CPUs=%s RealMemory=%s Feature=%s Weight=%s' "$CPUS" "$MEMORY_MIB" "$features" "$WEIGHT"
    ((GPUS == 0)) || printf ' Gres=gpu:%s:%s' "$GPU_TYPE" "$GPUS"
    # A member of a gang: it takes no job before all are there and one undrain opens them.
    [[ $GATE != drain ]] || printf ' State=DRAIN'
}

write_slurmd_service() {
    install -d -m 755 /etc/systemd/system/slurmd.service.d
    # The packaged unit starts only where there is a slurm.conf; a configless node has none.
    cat >/etc/systemd/system/slurmd.service.d/tidegate.conf <<EOF_UNIT
[Unit]
ConditionPathExists=
ConditionPathExists=$MAY_START
[Service]
Restart=on-failure
RestartSec=2
EOF_UNIT
    printf "SLURMD_OPTIONS=\"-Z -N %s --conf-server %s --conf '%s'\"\n" \
        "$INSTANCE_ID" "$HEAD" "$(slurmd_conf)" >/etc/default/slurmd
    install -d -m 755 /var/spool/slurmd /var/log/slurm
    systemctl daemon-reload
}

is_registered() {
    local shown
    shown=$(timeout 10 scontrol -o show node "$INSTANCE_ID" 2>&1) &&
        [[ $shown == *DYNAMIC_NORM* && $shown != *State=INVAL* && $shown != *NOT_RESPONDING* ]]
}

stage_slurmd() {
    local deadline=$((SECONDS + REGISTER_WAIT_S))
    write_slurmd_service
    touch "$MAY_START"
    systemctl start slurmd
    until is_registered; do
        if ((SECONDS >= deadline)); then
            echo "slurmctld does not know this node after $REGISTER_WAIT_S s"
            tail -n 2 /var/log/slurm/slurmd.log
            return 1
        fi
        sleep 0.2
    done
}


stage_spot() {
    [[ $MARKET == spot ]] || return 0
    install -d -m 755 /usr/local/sbin
    file_SPOT_WATCH >/usr/local/sbin/tidegate-spot-watch
    chmod 755 /usr/local/sbin/tidegate-spot-watch
    cat >/etc/systemd/system/tidegate-spot-watch.service <<EOF_UNIT
[Unit]
Description=Tidegate: drain this node when EC2 announces its reclaim
[Service]
ExecStart=/usr/local/sbin/tidegate-spot-watch $INSTANCE_ID $SPOT_POLL_S
Restart=on-failure
EOF_UNIT
    systemctl daemon-reload
    systemctl start tidegate-spot-watch
}

run_stages reboot identity shape owner_rule shared munge users gpu health slurmd spot
