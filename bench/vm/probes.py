"""What must hold on real machines, each asked of them and told with what was expected."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.vm import agent
from bench.vm.guest import Guest
from bench.vm.jobs import HOME, JOB_S, ended, job, job_state, people, start_job, words
from bench.vm.machines import BOOT_S, NODE_ID, SHORT_S, Machines, became_ready
from local.boot.machines import READY
from local.waiting import wait_for

SETUID = "/shared/home/alice/becomes-root"


@dataclass(frozen=True, slots=True)
class Probe:
    """`look` says in a line what happened, which `expected` (a regular expression) describes."""

    name: str
    expected: str
    look: Callable[[Machines], str]

    def holds(self, seen: str) -> bool:
        return re.fullmatch(self.expected, seen, re.DOTALL) is not None


def failed_units(guest: Guest) -> str:
    """What cloud-init and systemd think of the boot."""
    return guest.sh(
        "cloud-init status | sed 's/status: //'; systemctl --failed --no-legend --plain"
    )


def node_state(machines: Machines) -> str:
    asked = f"scontrol -o show node {NODE_ID} | grep -oE '(CPUTot|State)=[^ ]*' | paste -sd' '"
    return machines.head.sh(asked)


def known(machines: Machines) -> str:
    """People on the node, whom the prolog of a job brings there."""
    job(machines, "-c 1 --mem=100", "true")
    return machines.node.sh("id -u alice bob 2>&1 | paste -sd' '")


def cores(machines: Machines) -> str:
    """The CPUs of four jobs that run side by side."""
    one = 'sleep 20; grep -oP "Cpus_allowed_list:\\s*\\K.*" /proc/self/status'
    return words(job(machines, "-a 0-3 -c 1 --mem=100", one))


def steps(machines: Machines) -> str:
    one = 'srun -n 4 bash -c "grep -oP \\"Cpus_allowed_list:\\\\s*\\\\K.*\\" /proc/self/status"'
    return words(job(machines, "-n 4 --mem=400", one))


def memory(machines: Machines) -> str:
    """A job that takes four times what it asked for."""
    eats = "python3 -c 'x = bytearray(400 << 20)' && echo had it; scontrol show job $SLURM_JOB_ID"
    job(machines, "-c 1 --mem=100", f"{eats} >/dev/null; sleep 1")
    last = "squeue -a -h -t all -u alice -o %T -S -i | head -n 1"
    wait_for(lambda: machines.head.sh(last) not in ("RUNNING", "COMPLETING"), SHORT_S)
    return machines.head.sh(f"{last}; grep -c 'had it' {HOME}/out.* | tail -n 1")


def limits(machines: Machines) -> str:
    asked = "-c 1 --mem=100"
    return job(machines, asked, "echo $(ulimit -l) $(ulimit -n) $(ulimit -Hn) $(ulimit -u)")


def gpus(machines: Machines) -> str:
    """Which of the two each of two jobs, side by side, can open."""
    opens = (
        "sleep 20; for n in 0 1; do (exec 3<>/dev/nvidia$n) 2>/dev/null && echo $n; done"
        " | paste -sd+"
    )
    return words(job(machines, "-a 0-1 -c 1 --mem=100 --gres=gpu:t4:1", opens))


def no_gpu(machines: Machines) -> str:
    opens = "for n in 0 1; do (exec 3<>/dev/nvidia$n) 2>/dev/null && echo $n; done; echo none"
    return job(machines, "-c 1 --mem=100", opens)


ATTACKS = f"""
tries() {{ "$@" >/dev/null 2>&1 && echo "$NAME"; }}
token='X-aws-ec2-metadata-token-ttl-seconds: 60'
NAME=metadata tries curl -fs -m 2 -X PUT -H "$token" http://169.254.169.254/latest/api/token
NAME=metadata-as-root tries unshare -r curl -fs -m 2 -X PUT -H "$token" \
    http://169.254.169.254/latest/api/token
NAME=proxy tries timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/20049'
NAME=firewall tries unshare -r nft delete table inet tidegate
NAME=munge-key tries cat /etc/munge/munge.key
NAME=user-data tries cat /var/lib/cloud/instance/user-data.txt
NAME=other-home tries touch /shared/home/bob/mine
NAME=published tries bash -c 'echo evil:x:0:0::/:/bin/sh >>/shared/.tidegate/users/passwd'
NAME=setuid tries bash -c '[[ $({SETUID} -u) == 0 ]]'
NAME=boot tries bash -c 'echo >>/opt/tidegate/boot/boot.sh'
echo none-else
"""


def attacks_on_head(machines: Machines) -> str:
    """What another machine may have left on the shared files is there, too: root's, and setuid."""
    machines.head.sh(f"install -m 4755 /usr/bin/id {SETUID}")
    done = machines.head.run(["bash"], user="alice", input=ATTACKS)
    return words(done.stdout)


def attacks_in_job(machines: Machines) -> str:
    return words(job(machines, "-c 1 --mem=200", ATTACKS))


def rotated(guest: Guest, daemon: str, touch: str) -> str:
    """Whether a daemon goes on in a fresh log once logrotate has taken the one before."""
    log = f"/var/log/slurm/{daemon}.log"
    return guest.sh(
        f"head -c 6000000 /dev/zero | tr '\\0' x >>{log}; logrotate /etc/logrotate.conf;"
        f" {{ {touch}; }} >/dev/null 2>&1; sleep 5;"
        f" [[ $(stat -c %s {log}) -lt 6000000 ]] && echo fresh;"
        f" [[ -s {log} ]] && echo written;"
        f" readlink /proc/$(pgrep -o -x {daemon})/fd/* | grep -c '{daemon}.log.*deleted'"
    )


def log_of_head(machines: Machines) -> str:
    return words(rotated(machines.head, "slurmctld", "scontrol update jobid=1 comment=x"))


def log_of_node(machines: Machines) -> str:
    touch = f"systemctl kill -s HUP slurmd; scontrol ping; scontrol show node {NODE_ID}"
    return words(rotated(machines.node, "slurmd", touch))


def restart(machines: Machines) -> str:
    """A job that runs while slurmctld is restarted."""
    job_id = start_job(machines, 45)
    machines.head.sh("systemctl restart slurmctld")
    return ended(machines, job_id)


XID = "NVRM: Xid (PCI:0000:00:1e): 79, pid=1, name=x, GPU has fallen off the bus."


def gpu_lost(machines: Machines) -> str:
    """The kernel of the node says that a GPU is lost while a job runs; then a person opens it."""
    job_id = start_job(machines, 240, until="found sick")
    machines.node.sh(f"echo '{XID}' >/dev/kmsg")
    reason = f"scontrol -o show node {NODE_ID} | grep -oP 'Reason=\\K.*(?= \\[)' || true"
    wait_for(lambda: "Xid 79" in machines.head.sh(reason), SHORT_S)
    said = f"{machines.head.sh(reason)}; {ended(machines, job_id)}"
    machines.head.sh(f"scontrol update nodename={NODE_ID} state=resume")
    return said


def redeploy(machines: Machines) -> str:
    """A job that runs while the boot's unit of head and node is started anew."""
    job_id = start_job(machines, 30)
    again = "systemctl restart tidegate-boot && echo whole"
    said = [guest.sh(again, patience_s=JOB_S) for guest in (machines.head, machines.node)]
    return f"{ended(machines, job_id)}; {failed_units(machines.head)}; {', '.join(said)}"


def reboot(machines: Machines) -> str:
    """A job that runs while the head reboots, and one that waits."""
    job_id = start_job(machines, 60)
    waits = "cd; sbatch --parsable --begin=now+1hour --wrap true"
    waiting = machines.head.sh(waits, user="alice")
    times = machines.head.said().count(READY) + 1
    machines.head.run(["systemd-run", "--on-active=1", "systemctl", "reboot"])
    if not became_ready(machines.head, times):
        return f"not ready: {machines.head.said()[-500:]}"
    return f"{ended(machines, job_id)}; waits {job_state(machines, waiting)}; " + failed_units(
        machines.head
    )


def killed(machines: Machines) -> str:
    """The job of a node whose plug is pulled."""
    job_id = start_job(machines, 600)
    machines.node.pull_the_plug()
    wait_for(lambda: "DOWN" in node_state(machines), JOB_S * 2)
    wait_for(lambda: job_state(machines, job_id) == "PENDING", SHORT_S)
    return f"{job_state(machines, job_id)}; {node_state(machines)}"


# Nodes that must end by themselves: 83 % of the memory that they promise, a clock ten minutes late.
SICK = {"small": (2, 1700, 0), "late": (3, 2048, -600)}


def sick(machines: Machines, name: str) -> str:
    """How a node ended; both boot side by side, whichever is asked for."""
    for each, (number, memory_mib, clock_s) in SICK.items():
        if each not in machines.guests:
            machines.boot_node(each, number, memory_mib, clock_s)
    node = machines.guests[name]
    wait_for(lambda: not node.is_alive or READY in node.said(), BOOT_S)
    said = re.findall(r"stage \w+ failed [^\n\r]*", node.said())
    node.pull_the_plug()
    return " ".join(said) or node.said()[-300:]


# A job that writes to the shared files all the time, beside the boot's units as jobs are.
WRITES = (
    "systemd-run --unit=writes -p KillMode=process bash -c 'mkdir -p /shared/hung; cd /shared/hung;"
    " while :; do head -c 100000 /dev/urandom >data; sleep 1; done'; sleep 5"
)
HUNG_S = 300.0


def hung(machines: Machines) -> str:
    """A node's check, and how long it takes to power off, while the shared files do not answer."""
    node, files = machines.boot_node("hung", 4), machines.guests["files"]
    if not became_ready(node):
        return f"not ready: {node.said()[-500:]}"
    node.sh(WRITES)
    files.freeze()
    try:
        node.sh("timeout 60 /etc/tidegate/health-check periodic")
        told = re.findall(r"health: (shared: [^\n\r]*)", node.said())
        node.run(["systemd-run", "--on-active=1", "systemctl", "poweroff"])
        began_s = time.monotonic()
        wait_for(lambda: not node.is_alive, HUNG_S)
        took_s = time.monotonic() - began_s
    finally:
        files.thaw()
        node.pull_the_plug()
    return f"{'; '.join(told)}; off in {'time' if took_s < 130 else f'{took_s:.0f} s'}"


def memory_in_use(machines: Machines) -> str:
    """Of the idle head, which the bounds of `wire/compat.py` go by: all but what is available."""
    return machines.head.sh("free -m | awk '/^Mem:/ {print $2 - $7 \" MiB\"}'")


CLOSED = "none-else"
REPORT = f"{NODE_ID} IDLE; jobs: none"
PROBES = (
    Probe("the head's boot", "done", lambda machines: failed_units(machines.head)),
    Probe("the node's boot", "done", lambda machines: failed_units(machines.node)),
    Probe("the node in Slurm", r"CPUTot=4 State=IDLE\+DYNAMIC_NORM", node_state),
    Probe("memory in use on the idle head", "[2-7][0-9]{2} MiB", memory_in_use),
    Probe("people have homes on the shared files", f"{HOME} alice 700", people),
    Probe("what the agent reports", REPORT, agent.reported),
    Probe("four jobs, each on a thread of its own", "0 1 2 3", cores),
    Probe("the node knows people", "2001 2002", known),
    Probe("four tasks of a step likewise", "0 1 2 3", steps),
    Probe("a job that takes more memory than it asked for", "OUT_OF_MEMORY; 0", memory),
    Probe("what accounting has of it", "OUT_OF_MEMORY", agent.accounted),
    Probe("what accounting has of a job's memory", "COMPLETED 2[0-9]{2} MiB", agent.memory),
    Probe("a job's limits", "unlimited 131072 131072 unlimited", limits),
    Probe("two jobs, each with a GPU of its own", "0 1", gpus),
    Probe("a job without a GPU opens none", "none", no_gpu),
    Probe("what a user reaches on the head", CLOSED, attacks_on_head),
    Probe("what a job reaches on the node", CLOSED, attacks_in_job),
    Probe("slurmctld's log is rotated", "0 fresh written", log_of_head),
    Probe("slurmd's log is rotated", "0 fresh written", log_of_node),
    Probe(
        "orders to drain the node and to open it",
        r"IDLE\+DRAIN tidegate: tried by a probe \(closed\) done; IDLE done",
        agent.orders,
    ),
    Probe("a job during a restart of slurmctld", "COMPLETED through", restart),
    Probe("a job during a deployment", "COMPLETED through; done; whole, whole", redeploy),
    Probe(
        "a job on a node whose kernel loses a GPU",
        r"tidegate-health: xid: Xid 79: GPU has fallen off the bus .*; COMPLETED .*"
        r"Tidegate: node \S+ was found sick, and no new job starts there: xid: .*; through",
        gpu_lost,
    ),
    Probe("a job while the head reboots", "COMPLETED through; waits PENDING; done", reboot),
    Probe("the agent after it", "started anew; accounting goes on", agent.after_reboot),
    Probe(
        "a node with less memory than it promises",
        r"stage slurmd failed \(exit 78\).*Low RealMemory.*",
        lambda machines: sick(machines, "small"),
    ),
    Probe(
        "a node whose clock is off",
        r"stage health failed \(exit 78\): the clock is -\d+ s off.*",
        lambda machines: sick(machines, "late"),
    ),
    Probe(
        "a node whose shared files do not answer",
        r"shared: /shared is not readable \(degraded; remedy: reboot\); off in time",
        hung,
    ),
    Probe("a job whose node is lost", r"PENDING; CPUTot=4 State=DOWN.*", killed),
    Probe("an order to delete that node", "done; not in Slurm", agent.deleted),
)
