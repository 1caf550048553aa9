"""The live table: queue, nodes and the last decisions with their reasons."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table

from local.demo.stage import Stage

DECISIONS_SHOWN = 8


def render(stage: Stage, started_s: float, last_step: str) -> RenderableType:
    """The whole screen as of now."""
    title = f"Tidegate demo on {stage.name}, {stage.now_s() - started_s:5.1f} s"
    return Group(
        Panel(last_step or "starting", title=title),
        _queue(stage),
        _nodes(stage),
        _decisions(stage, started_s),
    )


def _queue(stage: Stage) -> Table:
    table = Table(title="Queue", expand=True)
    for column in ("job", "user", "state", "needs", "why"):
        table.add_column(column, overflow="fold")
    seen = stage.seen
    for job in seen.reading.jobs:
        why = seen.unmet.get(job.job_id) or seen.served.get(job.job_id, "")
        needs = f"{job.nodes} x {job.shape.gpus} {job.shape.gpu_type}"
        table.add_row(job.job_id, job.user, job.state, needs, why if job.is_pending else "")
    return table


def _nodes(stage: Stage) -> Table:
    table = Table(title="Nodes", expand=True)
    for column in ("instance", "offering", "EC2", "Slurm", "GPUs used"):
        table.add_column(column, overflow="fold")
    nodes = {node.name: node for node in stage.seen.reading.nodes}
    for instance_id, offering, state in stage.seen.instances:
        node = nodes.get(instance_id)
        slurm = str(node.state) if node else "booting"
        used = f"{node.gpus_alloc} of {node.gpus}" if node else ""
        table.add_row(instance_id, offering, state, slurm, used)
    return table


def _decisions(stage: Stage, started_s: float) -> Table:
    table = Table(title="Last decisions", expand=True, show_header=False)
    table.add_column("at", justify="right", width=7)
    table.add_column("what and why", overflow="fold")
    for at_s, text in list(stage.seen.decisions)[-DECISIONS_SHOWN:]:
        table.add_row(f"{at_s - started_s:.1f} s", text)
    return table
