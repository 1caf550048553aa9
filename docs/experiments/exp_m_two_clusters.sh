# shellcheck shell=bash
# (m) Two clusters with one Munge key: how does a job that waits in the first come to the second, and what does a
# federation of both make of it?

# shellcheck source=lab_db.sh
source "$HERE/lab_db.sh"

readonly FAR_IP=10.77.0.2 HOME_NODE=10.77.1.1 FAR_NODE=10.77.1.2
readonly SHOWN=JobID:14,State:12,Reason:24,NodeList:10
readonly PLACES='
NodeName=ph-[1-2] State=FUTURE CPUs=4 RealMemory=15000 Feature=cpu
NodeSet=cpuset Feature=cpu
PartitionName=cpu Nodes=cpuset Default=YES MaxTime=INFINITE State=UP'
readonly WITH_DB="${ACCOUNTING_CONF/AccountingStorageEnforce=associations,limits,qos/}$PLACES"

far_up() {
    machine far "$FAR_IP"
    slurm_conf <<<"$1" |
        sed "s/^ClusterName=.*/ClusterName=far/; s/^SlurmctldHost=.*/SlurmctldHost=far($FAR_IP)/" |
        put far /etc/slurm/slurm.conf
    put far /etc/slurm/cgroup.conf <"/proc/$(<"$WORKDIR/machines/head/pid")/root/etc/slurm/cgroup.conf"
    put far /etc/slurm/gres.node.conf <<<'# empty'
    on far install -d -o slurm -g slurm /var/lib/slurm/slurmctld /var/log/slurm
    munge_up far
    on far slurmctld
    wait_for 30 answers far || { on far tail -5 /var/log/slurm/slurmctld.log; return 1; }
}

answers() { on "$1" scontrol ping | grep -q ' UP'; }

node_of() { # NAME IP HEAD_IP
    machine "$1" "$2"
    on "$1" install -d /var/lib/slurm/slurmd /var/log/slurm
    munge_up "$1"
    on "$1" useradd -m -u 5001 alice
    on "$1" slurmd -Z --conf 'CPUs=4 RealMemory=15000 Feature=cpu' --conf-server "$3:6817"
    wait_for 30 has_node "${1/n/}" "$1"
}

has_node() { on "${1/home/head}" sinfo --local -h -n "$2" -o %t | grep -q idle; }

both() { # NOTE
    local name
    for name in head far; do
        say "  $1, $name: $(on "$name" squeue --local -h -a -O "$SHOWN" | tr -s ' ' | paste -sd'|')"
    done
}

# tried COMMAND...: what it says, and how it ends.
tried() {
    local said code=0
    said=$("$@" 2>&1) || code=$?
    say "  ${*:2}: exit $code $(tail -n 1 <<<"$said")"
}

submit() { as alice head sbatch --parsable -D /shared -o /dev/null -t 10 "$@" | cut -d';' -f1; }
at() { { on "$1" scontrol --local show job "$2" -o 2>/dev/null || true; } | grep -o " $3=[^ ]*" | head -n 1; }
runs_at() { [[ $(on "$1" squeue --local -h -a -j "$2" -o %T 2>/dev/null) == RUNNING ]]; }
sees() { [[ -n $(on "$1" squeue --local -h -a -j "$2" -o %T 2>/dev/null) ]]; }

hand_over() { # JOB [OPTIONS...]
    local job=$1
    shift
    as alice head env -C /shared /usr/local/bin/hand-over "$job" /etc/slurm/far.conf "$@"
}

head_up '' accounting_up <<<"$WITH_DB"
far_up "$WITH_DB"
for name in head far; do on "$name" useradd -m -u 5001 alice; done
# Both heads of Tidegate are called head.
put head /etc/slurm/far.conf <<<"ClusterName=far
SlurmctldHost=head($FAR_IP)
AuthType=auth/munge"
put head /usr/local/bin/hand-over 755 <"$HERE/../recipes/second-region/hand-over.sh"

say '-- by a slurm.conf of the other'
job=$(submit --wrap 'sleep 600')
tried hand_over "$job" -t 10 -o /dev/null
both 'handed over'
refused=$(submit --wrap 'sleep 600')
tried hand_over "$refused" -t 10 -p nowhere
both 'refused there'
as alice head scancel "$refused"
node_of nhome "$HOME_NODE" "$HEAD_IP"
running=$(submit --wrap 'sleep 600')
wait_for 30 runs_at head "$running"
tried hand_over "$running" -t 10 -o /dev/null
both 'one that runs'
say "  its priority afterwards: $(at head "$running" Priority)"
array=$(submit --array=1-2 --wrap 'sleep 600')
tried hand_over "$array"
tried hand_over 4711
as alice head scancel --user alice
tried as alice head env SLURM_CONF=/etc/slurm/far.conf scancel --user alice
wait_for 30 has_node home nhome
on head scontrol update nodename=nhome state=drain reason=test

say '-- by the database that both tell'
on head sacctmgr -n list cluster format=cluster,controlhost | tr -s ' ' | paste -sd'|'
tried as alice head sbatch -M far -t 10 -D /shared -o /dev/null --wrap 'sleep 600'
tried as alice head sbatch -M lab,far -t 10 -D /shared -o /dev/null --wrap 'sleep 600'
both 'sent'
tried as alice head scancel -M far --user alice

say '-- as a federation'
on head sacctmgr -i add federation both clusters=lab,far >/dev/null
wait_for 30 bash -c "$(declare -f on); WORKDIR=$WORKDIR; on head scontrol show federation | grep -q Synced:Yes"
job=$(submit --wrap 'sleep 600')
sleep 2
both 'without an option'
as alice head scancel "$job"
job=$(submit --clusters=lab --wrap 'sleep 600')
tried as alice head scontrol update jobid="$job" clusters=lab,far
wait_for 15 sees far "$job" && both 'let in later'
node_of nfar "$FAR_NODE" "$FAR_IP"
wait_for 40 runs_at far "$job"
both 'runs at the other'
tried on nfar squeue -h -j "$job" -o '%T nodes=%N'
tried on nfar squeue --local -h -j "$job" -o '%T nodes=%N'
on far scontrol update nodename=nfar state=drain reason=test
for how in 'requeue Incomplete' '--local requeue Incomplete' requeue; do
    # shellcheck disable=SC2086
    tried on far scontrol $how "$job"
    sleep 8
    say "  restarts: $(at far "$job" Restarts)"
done
both 'requeued by the other'
on far sh -c "echo FederationParameters=fed_display >>/etc/slurm/slurm.conf"
say "  fed_display, far: $(on far squeue -h -a -O "$SHOWN" | tr -s ' ' | paste -sd'|')"
as alice head sbatch --clusters=lab -t 10 -D /shared -o /dev/null --wrap 'sleep 600' >/dev/null
say "  and with one more at home: $(on far squeue -h -a -O "$SHOWN" | tr -s ' ' | paste -sd'|')"
say "  with --local: $(on far squeue --local -h -a -O "$SHOWN" | tr -s ' ' | paste -sd'|')"
array=$(submit --clusters=lab --array=1-2 --wrap 'sleep 600')
tried as alice head scontrol update jobid="$array" clusters=lab,far
sleep 2
both 'an array that waits, let in'
tried as alice head scancel "$job"
sleep 3
both 'cancelled at home'
