# shellcheck shell=bash
# needs: shape scratch
# only_with: PREFETCH
# time_limit_s: 60
# Data sets of S3 on the disk of the node's own, see data-sets.sh: those of the jobs that the node is
# bought for, as its tag says, from now on beside the rest of the boot; those of other jobs when they
# start. Nothing waits for them but jobs that want to, by tidegate-data. No node ends by this.

readonly ALLOWED=/etc/tidegate/data-sets ASKED=$RUN_DIR/data-sets SETS=/scratch/tidegate-data
readonly PROLOG=/etc/tidegate/prolog.d/70-data-sets.sh EPILOG=/etc/tidegate/epilog.d/20-data-sets.sh
readonly UNIT=/etc/systemd/system/tidegate-data-sets.service COMMAND=/usr/local/bin/tidegate-data

# hook KIND TEST: runs where the test holds. No job fails by this.
hook() {
    cat <<END_OF_HOOK
#!/bin/bash
[[ $2 ]] && /bin/bash $PWD/files/data-sets.sh $1
exit 0
END_OF_HOOK
}

# What comes of S3 can be written nowhere else, whatever its keys say. Jobs come first.
unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: data sets of S3
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/bash $PWD/files/data-sets.sh load
Restart=always
RestartSec=5
Nice=10
OOMScoreAdjust=500
ProtectSystem=strict
ReadWritePaths=$(readlink -f "$SETS") $ASKED
PrivateTmp=yes
EOF_UNIT
}

# A folder that somebody else has made may lead anywhere.
is_ours() {
    [[ -d $1 && ! -L $1 && $(stat -c %U "$1") == root ]]
}

set_up() {
    local tag
    local -a places
    put_file "$COMMAND" 755 <files/tidegate-data.sh
    mountpoint -q /scratch || [[ -L /scratch ]] || { echo "no disk of its own, so no data sets"; return; }
    [[ -e $SETS ]] || mkdir -m 755 "$SETS"
    is_ours "$SETS" || { echo "$SETS is not root's: no data sets"; return; }
    install -d -m 755 "$ASKED" "$ASKED/asked" "$ASKED/used" "${PROLOG%/*}" "${EPILOG%/*}"
    tr ' ' '\n' <<<"$PREFETCH" | put_file "$ALLOWED" 644
    # shellcheck disable=SC2016 # Slurm's variables, when a job starts and ends
    hook prolog '${SLURM_JOB_COMMENT:-} == *tidegate:data=*' | put_file "$PROLOG" 755
    # Its comment may be another one by then.
    hook epilog "-f $ASKED/used/\${SLURM_JOB_ID:-}" | put_file "$EPILOG" 755
    unit | put_file "$UNIT" 644
    systemctl daemon-reload
    # No tag, no such jobs; one that cannot be read is made up for when they start.
    tag=$(imds_if_any tags/instance/tidegate:data) || tag=
    read -ra places <<<"$tag"
    /bin/bash files/data-sets.sh ask "${places[@]}"
    systemctl start --no-block tidegate-data-sets
}

apply() {
    set_up || echo "data sets are not loaded"
}
