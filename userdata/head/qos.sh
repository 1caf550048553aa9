# shellcheck shell=bash disable=SC2153
# The QOS that partitions name, without limits. slurmctld does not start while a partition bears one
# that there is not, and lets everybody into a partition that allows one that there is not.

missing_qos() {
    local each known
    [[ -n $QOS ]] || return 0
    known=" $(timeout 10 sacctmgr -nP list qos format=name 2>/dev/null | tr '\n' ' ') "
    for each in $QOS; do
        [[ $known == *" $each "* ]] || echo "$each"
    done
}

make_qos() {
    local each
    for each in $(missing_qos); do
        sacctmgr -i add qos "$each"
    done
}
