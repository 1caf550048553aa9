"""What squeue and sinfo show of the simulated slurmctld's tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.devices import SHARED_GRES, Devices
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Job, Licence, Node, NodeState, Reading
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit
from tidegate.sim.slurm_shares import SharedGpus
from tidegate.sim.slurm_table import Table

LICENCE = "matlab"


def reading(table: Table) -> Reading:
    nodes = tuple(node_row(node) for _, node in sorted(table.nodes.items()))
    held = sum(job.submit.licences for job in table.active.values() if job.node_names)
    licences = (Licence(LICENCE, table.licences - held),) if table.licences else ()
    jobs, reserved = tuple(_rows(table)), tuple(table.reservations)
    return Reading("sim", jobs, nodes, table.associations, licences, reserved)


def is_satisfiable(asked: Submit, table: Table) -> bool:
    """Some placeholder group of the partition holds the job and is as large as its -N."""
    partition = table.cluster.partition(table.partition(asked))
    for pool in table.cluster.pools:
        if partition is None or pool.name not in partition.pools:
            continue
        for instance_type, offering in pool.offerings():
            features = pool.features(instance_type.name, offering.market)
            if (
                not lacks(_of_one_gpu(asked, instance_type).shape, instance_type)
                and satisfies(asked.constraint, features)
                and asked.nodes <= pool.max_job_nodes
            ):
                return True
    return False


def _of_one_gpu(asked: Submit, of: InstanceType) -> Submit:
    """Slurm refuses more shards than a node has, and takes what no single GPU of it has."""
    shape = asked.shape
    if shape.gres not in SHARED_GRES or shape.gpus > of.gpus * of.shards_per_gpu:
        return asked
    one = replace(shape, gpus=min(shape.gpus, of.shards_per_gpu), is_exclusive=False)
    return replace(asked, shape=one)


def refused_constraints(job_ids: Sequence[str], constraint: str, table: Table) -> dict[str, str]:
    """`scontrol update jobid=... features=...`: what it said of each that it refused. An array's
    id stands for all its tasks, of which those that have begun are refused by their own.
    """
    refused: dict[str, str] = {}
    for job_id in job_ids:
        jobs = [j for j in table.active.values() if job_id in (j.job_id, j.array_job_id)]
        if not jobs:
            refused[job_id] = "Invalid job id specified"
        for job in jobs:
            if job.state != "PENDING":
                refused[job.job_id] = "Job is no longer pending execution"
            elif not is_satisfiable(replace(job.submit, constraint=constraint), table):
                refused[job.job_id] = "Requested node configuration is not available"
            else:
                job.submit = replace(job.submit, constraint=constraint)
                table.changed()
    return refused


def node_row(node: SimNode) -> Node:
    """The node as sinfo and scontrol show it; the same row until something changes."""
    shares = node.shares
    state = (
        node.is_drain,
        node.is_down,
        node.is_planned,
        node.is_silent,
        node.reboot,
        node.reserved,
        node.reason,
        node.set_by,
        node.last_busy_at_s,
        node.weight,
        [(job_id, job.state) for job_id, job in node.jobs.items()],
        shares and shares.free[:],
    )
    if node.row is None or node.row[0] != state:
        row = _node_row(node)
        node.row = state, row if shares is None else _shared(row, shares)
    return node.row[1]


def _shared(row: Node, shares: SharedGpus) -> Node:
    return replace(
        row,
        shards=shares.gpus * shares.per_gpu,
        shared_gres=shares.gres,
        gpus_shared=len(shares.used),
        shards_used=shares.used if shares.tells_each else (),
    )


def _node_row(node: SimNode) -> Node:
    cpus, memory_mib, gpus = node.allocated()
    base = "ALLOCATED" if cpus >= node.cpus else "MIXED" if node.is_busy else "IDLE"
    words = {"DOWN" if node.is_down else base, "DYNAMIC_NORM", *node.reserved}
    if node.is_drain:
        words.add("DRAIN")
    if node.is_planned:
        words.add("PLANNED")
    if node.reboot:
        words.add(node.reboot)
    if node.is_silent:
        words.add("NOT_RESPONDING")
    if any(job.state == "COMPLETING" for job in node.jobs.values()):
        words.add("COMPLETING")
    return Node(
        name=node.name,
        state=NodeState(frozenset(words)),
        cpus=node.cpus,
        memory_mib=node.memory_mib,
        gpus=node.gpus,
        gpu_type=node.gpu_type,
        cpus_alloc=cpus,
        memory_alloc_mib=memory_mib,
        gpus_alloc=gpus,
        features=node.features,
        reason=node.reason,
        set_by=node.set_by,
        last_busy_at_s=node.last_busy_at_s,
        weight=node.weight,
        address=node.name,
        devices=_devices(node),
    )


def _devices(node: SimNode) -> tuple[Devices, ...]:
    """As the agent reads them: of several types alone."""
    free = node.free_instances()
    found = (Devices(of, count, count - free[of]) for of, count in node.instances)
    return tuple(found) if len(node.instances) > 1 else ()


def _rows(table: Table) -> list[Job]:
    """The queue as squeue shows it: the pending tasks of an array are one row."""
    rows: dict[str, Job] = {}
    counts: Counter[str] = Counter()
    for job in table.active.values():
        row = _row(job, table)
        if job.state == "PENDING" and job.array_job_id and not job.requeues:
            rows[job.array_job_id] = row
            counts[job.array_job_id] += 1
        else:
            rows[job.job_id] = row
    for job_id, count in counts.items():
        rows[job_id] = replace(rows[job_id], job_id=job_id, count=count)
    for job_id in counts:
        _cap(job_id, rows, table)
    return list(rows.values())


def _cap(array: str, rows: dict[str, Job], table: Table) -> None:
    """What the agent makes of an array's %limit: requeued tasks first, then the rest."""
    throttle = table.jobs[f"{array}_0"].submit.throttle
    if not throttle:
        return
    tasks = [row for row in rows.values() if row.array_job_id == array]
    left = throttle - sum(row.state == "RUNNING" for row in tasks)
    for row in sorted(tasks, key=lambda row: row.job_id == array):
        if row.is_pending:
            count = max(0, min(row.count, left))
            left -= count
            rows[row.job_id] = row if count == row.count else replace(row, count=count)


def _row(job: SimJob, table: Table) -> Job:
    shown = job.state, _reason(job, table), job.node_names, _begins(job, table)
    state = job.submit, job.requeues, *shown
    if job.row is None or job.row[0] != state:
        job.row = state, _job_row(job, table)
    return job.row[1]


def _reason(job: SimJob, table: Table) -> str:
    """Slurm's own words may be old; that it depends on another job is shown at once."""
    depends = job.state == "PENDING" and job.comes_after(table.active.values())
    return "Dependency" if depends and not held_because(job.reason) else job.reason


def _begins(job: SimJob, table: Table) -> float | None:
    """What is over is of no interest to anybody."""
    is_ahead = job.eligible_at_s > table.clock.now_s() and job.state == "PENDING"
    return job.eligible_at_s if is_ahead else None


def _job_row(job: SimJob, table: Table) -> Job:
    asked = job.submit
    return Job(
        job_id=job.job_id,
        state=job.state,
        partitions=(table.partition(asked),),
        nodes=asked.nodes,
        shape=asked.shape,
        user=asked.user,
        array_job_id=job.array_job_id,
        reason=_reason(job, table),
        priority=asked.priority,
        constraint=asked.constraint,
        account=asked.account,
        het_job_id=job.het_job_id,
        qos=asked.qos,
        time_limit_s=asked.time_limit_s,
        comment=asked.comment,
        node_names=job.node_names,
        signal=asked.signal if job.starts else "",
        started_at_s=job.began_at_s if job.state != "PENDING" else None,
        begins_at_s=_begins(job, table),
        is_requeueable=asked.is_requeueable,
        restarts=job.requeues,
        licences=((LICENCE, asked.licences),) if asked.licences else (),
        required_nodes=tuple(asked.node_name.split(",")) if asked.node_name else (),
        excluded_nodes=asked.excluded,
        reservation=asked.reservation,
    )
