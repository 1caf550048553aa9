"""People of the bench and their jobs."""

from bench.vm.machines import SHORT_S, Machines
from local.waiting import wait_for

# Without acceleration Slurm's commands take a second each, a job ten.
JOB_S = 240.0
HOME = "/shared/home/alice"


def words(text: str) -> str:
    """One line, its words in order."""
    return " ".join(sorted(text.split()))


def people(machines: Machines) -> str:
    """alice and bob by useradd, whom the agent then publishes to the nodes."""
    return machines.head.sh(
        "for of in 2001:alice 2002:bob; do getent passwd ${of#*:} >/dev/null ||"
        " useradd -u ${of%:*} -m -s /bin/bash ${of#*:}; done;"
        " for try in {1..60}; do"
        " grep -qs bob /shared/.tidegate/users/passwd && break; sleep 1; done;"
        " stat -c '%n %U %a' /shared/home/alice | paste -sd' '"
    )


def job(machines: Machines, options: str, script: str) -> str:
    """What a job of alice's printed; of its tasks and steps too."""
    line = (
        f"cd {HOME} && rm -f out* && sbatch --wait -o out.%a {options} >said 2>&1;"
        " cat out.* || cat said"
    )
    body = f"#!/bin/bash\n{script}\n"
    done = machines.head.run(["bash", "-c", line], user="alice", input=body, patience_s=JOB_S)
    return (done.stdout + done.stderr).strip()


def start_job(machines: Machines, seconds: int, *, until: str = "") -> str:
    """The id of a job that runs for so long on all of the node, or until it is told that word."""
    runs = f"sleep {seconds}"
    if until:
        runs = f'for n in $(seq {seconds}); do grep -qs "{until}" slow && break; sleep 1; done'
    line = f"cd {HOME} && sbatch --parsable -o slow -c 4 --wrap '{runs}; echo through'"
    job_id = machines.head.sh(line, user="alice")
    wait_for(lambda: job_state(machines, job_id) == "RUNNING", SHORT_S)
    return job_id


def job_state(machines: Machines, job_id: str) -> str:
    return machines.head.sh(
        f"scontrol -o show job {job_id} | grep -oP '(?<=JobState=)\\w+' || true"
    )


def ended(machines: Machines, job_id: str) -> str:
    """The state in which a job ends, and what it wrote to the shared files."""
    wait_for(lambda: job_state(machines, job_id) not in ("RUNNING", "COMPLETING", ""), JOB_S)
    return f"{job_state(machines, job_id)} {machines.head.sh(f'cat {HOME}/slow')}"
