# shellcheck shell=bash disable=SC2153
# Since 23.11 slurmctld makes up a number for its cluster while it has no database, keeps it in
# StateSaveLocation as NAME|NUMBER, and ends with "CLUSTER ID MISMATCH" where a database gives the
# cluster another one; one that has never heard of this cluster says 0, and will. The database's
# counts, since its records bear it; the queue does not, and stays.
# Source: measured on 24.11 (docs/real-slurm.md); aws-parallelcluster-cookbook pull request 2994.

# forget_other_id DIR CLUSTER: before slurmctld starts with a database that answers. Fails where there
# is nothing to forget.
forget_other_id() {
    local kept=$1/clustername known
    known=$(timeout 10 sacctmgr -nP list cluster format=cluster,id | sed -n "s/^$2|//p")
    [[ -n $known && -f $kept && $(<"$kept") == *'|'* && $(<"$kept") != "$2|$known" ]] || return 1
    echo "the database gives this cluster a number of its own: slurmctld forgets $(<"$kept")"
    rm -f "$kept"
}
