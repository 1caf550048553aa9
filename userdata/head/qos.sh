# shellcheck shell=bash disable=SC2153
# What slurmctld asks of slurmdbd: that it knows the cluster, and the QOS that partitions name, without
# limits. slurmctld does not start while a partition bears one that there is not, and lets everybody
# into a partition that allows one that there is not.

# slurmdbd answers, and the stage accounting has told it of this cluster.
knows_cluster() {
    [[ " $(timeout 10 sacctmgr -nP list cluster format=cluster 2>/dev/null | tr '\n' ' ')" == \
        *" $CLUSTER "* ]]
}

missing_qos() {
    local each known
    [[ -n $QOS ]] || return 0
    known=" $(timeout 10 sacctmgr -nP list qos format=name 2>/dev/null | tr '\n' ' ') "
    for each in $QOS; do
        [[ $known == *" $each "* ]] || echo "$each"
    done
}

# Tried for half a minute: the stage accounting may be starting slurmdbd anew meanwhile.
make_qos() {
    local each missing try
    for ((try = 0; try < 60; try++)); do
        missing=$(missing_qos)
        [[ -n $missing ]] || return 0
        for each in $missing; do
            sacctmgr -i add qos "$each" || sleep 0.5
        done
    done
    return 1
}
