"""What must hold of the head's agent and of accounting, on a head that runs both."""

import re
import time
from collections.abc import Sequence
from itertools import count

from bench.vm.jobs import HOME, job
from bench.vm.machines import NODE_ID, SHORT_S, Machines
from local.boot.agents_way import agent_started_s, planners_bus
from local.waiting import wait_for
from tidegate.core.model.digest import Digest
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Node

_numbers = count(1)
_REASON = str(DrainReason(DrainCode.CLOSED, "tried by a probe"))


def _digest(machines: Machines) -> Digest | None:
    received = planners_bus(machines.network.cloud).newest_digest()
    return received.digest if received else None


def _node(machines: Machines) -> Node | None:
    digest = _digest(machines)
    nodes = digest.reading.nodes if digest else ()
    return next((each for each in nodes if each.name == NODE_ID), None)


def _words(machines: Machines, *of: str) -> str:
    node = _node(machines)
    return "+".join(word for word in of if node and word in node.state.words)


def _ordered(
    machines: Machines, kind: OrderKind, text: str = "", only_if: Sequence[str] = ()
) -> str:
    """What became of an order about the node, by the agent's next report."""
    order = Order(
        f"bench-{next(_numbers)}",
        kind,
        (NODE_ID,),
        time.time() + SHORT_S,
        only_if=tuple(only_if),
        text=text,
    )

    def result() -> str:
        digest = _digest(machines)
        results = digest.results if digest else ()
        return next((each.outcome for each in results if each.order_id == order.order_id), "")

    planners_bus(machines.network.cloud).send_orders([order])
    wait_for(result, SHORT_S)
    return result() or "no answer"


def reported(machines: Machines) -> str:
    """The node and the queue, as the planner reads them."""
    wait_for(lambda: _words(machines, "IDLE"), SHORT_S)
    digest = _digest(machines)
    jobs = ", ".join(each.job_id for each in digest.reading.jobs) if digest else "no report"
    return f"{NODE_ID} {_words(machines, 'IDLE', 'DRAIN', 'DOWN')}; jobs: {jobs or 'none'}"


def orders(machines: Machines) -> str:
    """A drain and an undrain, by what the agent says and by what it then sees."""
    drained = _ordered(machines, OrderKind.DRAIN, _REASON)
    wait_for(lambda: _words(machines, "DRAIN"), SHORT_S)
    node = _node(machines)
    seen = f"{_words(machines, 'IDLE', 'DRAIN')} {node.reason if node else ''} {drained}"
    opened = _ordered(machines, OrderKind.UNDRAIN, _REASON, ("DRAIN",))
    wait_for(lambda: _words(machines, "IDLE", "DRAIN") == "IDLE", SHORT_S)
    return f"{seen}; {_words(machines, 'IDLE', 'DRAIN')} {opened}"


def deleted(machines: Machines) -> str:
    """A node whose instance is gone."""
    said = _ordered(machines, OrderKind.DELETE, "tidegate: gone")
    known = machines.head.sh(f"scontrol -o show node {NODE_ID} >/dev/null && echo known || true")
    return f"{said}; {'in Slurm' if known == 'known' else 'not in Slurm'}"


def _accounted(machines: Machines, job_id: str, asked: str) -> str:
    """What accounting has of a job, once it has it: slurmctld tells it some seconds later."""
    line = f"sacct -nP -j {job_id} -o {asked}"
    wait_for(lambda: machines.head.sh(f"{line} | grep -v RUNNING || true"), SHORT_S)
    return machines.head.sh(line)


def _last_job(machines: Machines) -> str:
    return machines.head.sh("squeue -a -h -t all -u alice -o %A -S -i | head -n 1")


def accounted(machines: Machines) -> str:
    """The state of the job before, without its steps."""
    return _accounted(machines, _last_job(machines), "State -X")


def memory(machines: Machines) -> str:
    """Of a job that holds 200 MiB for longer than it is looked at (JobAcctGatherFrequency)."""
    holds = "python3 -c 'import time; x = bytearray(200 << 20); time.sleep(45)'"
    job(machines, "-c 1 --mem=400", holds)
    rows = _accounted(machines, f"{_last_job(machines)}.batch", "State,MaxRSS")
    found = re.fullmatch(r"(\w+)\|(\d+)K", rows)
    return f"{found[1]} {int(found[2]) >> 10} MiB" if found else rows


def after_reboot(machines: Machines) -> str:
    """Whether another agent reports, and accounting takes a job of now."""
    up_s = float(machines.head.sh("cut -d' ' -f1 /proc/uptime"))
    booted_s = time.time() - up_s
    wait_for(lambda: agent_started_s(machines.network.cloud) > booted_s, SHORT_S)
    is_new = agent_started_s(machines.network.cloud) > booted_s
    job(machines, "-c 1 --mem=100", f"true; cd {HOME}")
    state = _accounted(machines, _last_job(machines), "State -X")
    goes_on = "goes on" if state == "COMPLETED" else f"says {state}"
    return f"{'started anew' if is_new else 'silent'}; accounting {goes_on}"
