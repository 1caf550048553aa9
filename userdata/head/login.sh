# shellcheck shell=bash
# needs: identity
# `sinfo` shows nothing while no node is up: people who log in are told what that means, and where a
# job says why it waits. The function asks Slurm alone, so it needs no right of AWS.

readonly PROFILE=/etc/profile.d/tidegate.sh

profile() {
    cat <<'EOF_PROFILE'
# Tidegate: for people who log in.
why() {
    local said
    said=$(scontrol show job "${1:?which job?}") || return
    if [[ $said == *AdminComment=tidegate:* ]]; then
        said=${said#*AdminComment=tidegate: }
        printf 'job %s %s\n' "$1" "${said%%$'\n'*}"
    else
        squeue -h -j "$1" -o 'job %i: %T, Slurm says %r'
    fi
}
case $- in
*i*)
    echo 'Nodes come when jobs wait for them: sinfo shows none until then, and that is no fault.'
    echo 'Why does a job wait?  why JOBID   (an administrator: tidegate why JOBID, tidegate status)'
    ;;
esac
EOF_PROFILE
}

check() {
    has_file "$PROFILE" profile
}

apply() {
    profile | put_file "$PROFILE" 644
}
