# shellcheck shell=bash
# shellcheck disable=SC2016  # expanded on the machines
# (c) Users that exist only on the head: jobs on a node that does not know the uid; then libnss-extrausers with files from
# the shared folder, as a symbolic link and as a copy; then the shared folder gone or hanging.

readonly NODE=i-0123456789abcdef0
readonly WHO='id; echo "whoami $(whoami 2>&1), HOME=$HOME, ~ $(cd ~ 2>&1 && pwd)"; echo "python: $(python3 -c "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir)" 2>&1 | tail -1)"'

users_on_head() {
    on head install -d /shared/home /shared/tidegate
    on head groupadd -g 6001 research
    on head groupadd -g 6002 late
    on head useradd -u 5001 -m -d /shared/home/alice -s /bin/bash -G research alice
    on head useradd -u 5002 -m -d /shared/home/bob -s /bin/bash bob
}

# What the head's agent does: ordinary users and groups only, complete files moved into place, password field "*".
publish_users() {
    on head bash -c '
        awk -F: -v OFS=: "\$3 >= 1000 && \$3 < 60000 { \$2 = \"*\"; print }" /etc/passwd >/shared/tidegate/.passwd.new
        awk -F: -v OFS=: "\$3 >= 1000 && \$3 < 60000 { \$2 = \"*\"; print }" /etc/group >/shared/tidegate/.group.new
        chmod 644 /shared/tidegate/.*.new
        mv /shared/tidegate/.passwd.new /shared/tidegate/passwd
        mv /shared/tidegate/.group.new /shared/tidegate/group'
}

batch() { # TITLE USER SBATCH_ARGS...
    local title=$1 user=$2
    shift 2
    rm -f "$WORKDIR/shared/out"
    as "$user" head timeout 60 sbatch --wait -D /shared -o /shared/out "$@" --wrap "$WHO; touch /shared/made-by-$user" >/dev/null ||
        say "    ($title: sbatch --wait exit $?)"
    say "  batch, $title:"
    sed 's/^/    /' "$WORKDIR/shared/out" 2>/dev/null || say '    no output file'
}

step() { # TITLE USER SRUN_ARGS...
    local title=$1 user=$2
    shift 2
    say "  srun, $title:"
    as "$user" head timeout 60 srun -D /shared "$@" sh -c "$WHO" 2>&1 | sed 's/^/    /'
}

on_node() { # COMMAND...: with its answer, its time and its exit status
    local answer status=0 started
    started=$(date +%s.%N)
    answer=$(on $NODE timeout 5 "$@" 2>&1) || status=$?
    say "    \$ $* -> exit $status in $(seconds_since "$started") s${answer:+: $(tail -1 <<<"$answer")}"
}

unknown_uid() {
    say '1. the node does not know the uid'
    batch 'environment of the submitter' alice
    step 'environment of the submitter' alice
    batch '--export=NONE' alice --export=NONE
    batch '--get-user-env' alice --get-user-env
    say "  owner of the file made: $(on head stat -c '%U:%G' /shared/made-by-alice)"
}

use_extrausers() { # HOW: link | copy
    on $NODE sed -i -E 's/^(passwd|group):.*/\1: files extrausers/' /etc/nsswitch.conf
    on $NODE rm -rf /var/lib/extrausers
    if [[ $1 = link ]]; then
        on $NODE ln -s /shared/tidegate /var/lib/extrausers
    else
        on $NODE install -d /var/lib/extrausers
        on $NODE cp /shared/tidegate/passwd /shared/tidegate/group /var/lib/extrausers/
    fi
}

known_uid() {
    say "$1"
    batch 'environment of the submitter' alice
    step 'environment of the submitter' alice
    batch '--export=NONE' alice --export=NONE
    on_node su - alice -c 'id -un'
    on_node ls -l /shared/made-by-alice
}

late_user() {
    on head useradd -u 5003 -m -d /shared/home/carol -s /bin/bash -G research carol
    publish_users
    say '3. a user created while the node is up'
    batch 'at once' carol
    on head usermod -aG late alice
    publish_users
    say "  a group added while the node is up: node says $(on $NODE id -Gn alice); in a job: $(as alice head srun -D /shared id -Gn)"
    on head scontrol reconfigure
    sleep 2
    say "  after scontrol reconfigure, in a job: $(as alice head srun -D /shared id -Gn)"
    sleep 22
    say "  after GroupUpdateTime (20 s here, 600 s by default), in a job: $(as alice head srun -D /shared id -Gn)"
}

hostile_file() {
    say '4. entries for system ids in the shared files'
    on head bash -c 'echo "evil:*:0:0::/root:/bin/bash" >>/shared/tidegate/passwd; echo "low:*:499:499::/:/bin/sh" >>/shared/tidegate/passwd
        echo "root:*:5009:5009::/:/bin/sh" >>/shared/tidegate/passwd; echo "docker:*:0:alice" >>/shared/tidegate/group'
    on_node getent passwd evil
    on_node getent passwd low
    on_node getent passwd root
    on_node id alice
    publish_users
}

logins_and_slurmd() {
    on_node getent passwd root
    on_node id root
    on_node su - root -c true
    on_node getent passwd 5001
    slurmd_down $NODE
    on_node slurmd -Z --conf 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu' --conf-server "$HEAD_IP:6817"
    wait_for 15 node_is $NODE IDLE+DYNAMIC_NORM || true
    say "    node is $(node_state $NODE) after a restart of slurmd"
    say "    job of root: $(on head timeout 20 srun -D /tmp id -un 2>&1 | tail -1); of alice: $(as alice head timeout 20 srun -D /tmp id 2>&1 | tail -1)"
}

shared_folder_trouble() {
    use_extrausers link
    say '6. link; the shared folder is gone (unmounted)'
    on $NODE umount -l /shared
    logins_and_slurmd
    say '7. link; the shared folder hangs (its files are FIFOs: opening them blocks, as on a dead hard mount)'
    on $NODE mkdir -p /shared/tidegate
    on $NODE mkfifo /shared/tidegate/passwd /shared/tidegate/group
    logins_and_slurmd
    say '8. copy, renewed by the Prolog; the shared folder hangs'
    on $NODE rm /var/lib/extrausers
    on $NODE install -d /var/lib/extrausers
    on head cat /shared/tidegate/passwd | put $NODE /var/lib/extrausers/passwd
    on head cat /shared/tidegate/group | put $NODE /var/lib/extrausers/group
    logins_and_slurmd
}

# A copy, renewed by the Prolog (root, before a job's first step on the node): never older than the job.
prolog_copy() {
    say '5. extrausers, a copy that the Prolog renews; the Prolog never fails'
    put $NODE /etc/slurm/prolog.sh 755 <<'PROLOG'
#!/bin/bash
for f in passwd group; do
    timeout 5 cp /shared/tidegate/$f /var/lib/extrausers/.$f.new && mv /var/lib/extrausers/.$f.new /var/lib/extrausers/$f
done
exit 0
PROLOG
    on head useradd -u 5004 -m -d /shared/home/dave -s /bin/bash -G research dave
    publish_users
    batch 'user created after the copy was made' dave
    on head useradd -u 5005 -m -d /shared/home/erin -s /bin/bash -G research erin
    publish_users
    on $NODE rm -f /var/lib/extrausers/passwd
    step 'another new user, and the copy was lost' erin
}

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES
GroupUpdateTime=20
Prolog=/etc/slurm/prolog.sh"
users_on_head
gpu_node_prepare $NODE 10.77.1.1 a10g 4
put $NODE /etc/slurm/prolog.sh 755 <<<'#!/bin/sh'
slurmd_up $NODE 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu'
wait_for 20 node_is $NODE IDLE+DYNAMIC_NORM
unknown_uid
publish_users
use_extrausers link
known_uid '2. extrausers, a link into the shared folder; slurmd was not restarted'
late_user
hostile_file
use_extrausers copy
known_uid '4b. extrausers, a copy'
prolog_copy
shared_folder_trouble
