# shellcheck shell=bash
# (b) Resolving node names (= EC2 instance ids): with DNS as EC2's resource names give it, with DNS that does not know
# them, and with a name server that never answers. No node has a name in /etc/hosts but localhost.

readonly ONE=i-0123456789abcdef0 TWO=i-0123456789abcdef1 DNS_IP=10.77.0.53

dns_up() { # RECORDS: yes | no
    local records=()
    [[ $1 = no ]] || records=("--host-record=$ONE.ec2.internal,10.77.1.1" "--host-record=$TWO.ec2.internal,10.77.1.2")
    machine dns "$DNS_IP"
    on dns dnsmasq --no-resolv --no-hosts --local=/ec2.internal/ --local=// --user=root "${records[@]}"
}

nodes_up() { # NAMESERVER
    local name
    gpu_node_prepare $ONE 10.77.1.1 a10g 4
    gpu_node_prepare $TWO 10.77.1.2 a10g 4
    for name in $ONE $TWO head; do
        printf 'nameserver %s\nsearch ec2.internal\n' "$1" | put "$name" /etc/resolv.conf
        printf '127.0.0.1 localhost\n' | put "$name" /etc/hosts
    done
    printf '127.0.0.1 localhost\n%s head\n' "$HEAD_IP" | put head /etc/hosts
    for name in $ONE $TWO; do
        local started
        started=$(date +%s.%N)
        slurmd_up "$name" 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu'
        wait_for 60 node_is "$name" 'IDLE+DYNAMIC_NORM' || say "  $name did not register"
        say "  slurmd start to registered: $(seconds_since "$started") s"
    done
}

# What torchrun and mpirun do: the first of the node list is where everybody connects to.
job_script() {
    put head /shared/job.sh 755 <<'JOB'
#!/bin/bash
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
echo "batch: hostname $(hostname); nodes $SLURM_JOB_NODELIST; first $first"
echo "batch: getent $(getent hosts "$first" || echo fails), fqdn $(hostname -f 2>&1)"
srun -N2 --ntasks-per-node=1 bash -c 'echo "step on $(hostname): getent $0 $(getent hosts $0 || echo fails)"' "$first"
echo "batch: srun -N2 exit $?"
srun -N2 --ntasks-per-node=1 python3 /shared/rank.py "$first"
echo "batch: rendezvous exit $?"
srun -N2 --ntasks-per-node=1 python3 /shared/rank.py \
    "$(scontrol show node "$first" | grep -o 'NodeAddr=[^ ]*' | cut -d= -f2)"
echo "batch: rendezvous by NodeAddr exit $?"
JOB
    put head /shared/rank.py <<'PY'
import os, socket, sys, time
first, rank = sys.argv[1], int(os.environ["SLURM_PROCID"])
began = time.time()
try:
    if rank == 0:
        with socket.create_server(("0.0.0.0", 29500)) as server:
            server.settimeout(15)
            peer = server.accept()[1][0]
            print(f"rank 0: connected from {peer}")
    else:
        time.sleep(0.5)
        socket.create_connection((first, 29500), timeout=12)
        print("rank 1: connected")
except OSError as error:
    sys.exit(f"rank {rank}: {error} after {time.time() - began:.1f} s")
PY
}

scenario() { # TITLE NAMESERVER
    local job
    say "$1"
    nodes_up "$2"
    say "  head: getent $(on head timeout 20 getent hosts $ONE || echo fails)"
    job=$(as user head sbatch --parsable -N2 --gres=gpu:a10g:4 -D /shared -o /shared/out.txt /shared/job.sh)
    wait_for 150 job_ended "$job" || say "  the job has not ended within 150 s: $(job_state "$job")"
    sed 's/^/  /' "$WORKDIR/shared/out.txt"
    say "  head: srun -N2 hostname: $({ as user head timeout 60 srun -N2 -D /shared hostname 2>&1 || echo "exit $?"; } | sort | tr '\n' ' ')"
    on head scancel "$job" 2>/dev/null || true
    on head scontrol update nodename=$ONE,$TWO state=down reason=next
    wait_for 30 node_is $TWO DOWN+DYNAMIC_NORM
    on head scontrol delete nodename=$ONE,$TWO
    machine_down $ONE
    machine_down $TWO
}

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES"
on head useradd -m user
job_script
dns_up yes
scenario '1. DNS serves <id>.ec2.internal, search domain ec2.internal' $DNS_IP
machine_down dns
dns_up no
scenario '2. DNS answers, but knows no node' $DNS_IP
on dns nft 'add table inet silent; add chain inet silent input { type filter hook input priority 0; policy drop; }'
scenario '3. the name server never answers' $DNS_IP
