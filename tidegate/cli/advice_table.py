"""The table that `tidegate advise --write` makes, of which jobs ask less by themselves.

What was followed has no jobs any more that ask as before, so it cannot be proved again: a class
stays as it was until it is too old, unless a job of it ran out of memory or time meanwhile.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tidegate.cli.shown import as_yaml
from tidegate.core.model.frozen import frozen
from tidegate.sim.advise.classes import stem
from tidegate.sim.advise.proof import Advice
from tidegate.sim.advise.usage import OUT_OF_MEMORY, TIMEOUT, Ran
from tidegate.wire.advice import ROWS_MAX, AdviceModel, AdviceRowModel, AdviceTableModel

HEADLINE = "# Written by `tidegate advise --write`, which reads it again; see docs/advise.md.\n"


@frozen
class Table:
    """`rows`: the new table. `kept`: of the one before. `ended`: taken from it, with their ends."""

    rows: tuple[AdviceRowModel, ...]
    kept: int
    ended: tuple[tuple[AdviceRowModel, str], ...]


def row(one: Advice, now_s: float) -> AdviceRowModel:
    """What a submission is held against. The class's user, name and partition are Slurm's words."""
    of, key, saving = one.proposal, one.proposal.key, one.saving
    return AdviceRowModel.model_validate(
        {
            "user": key.user,
            "name": key.name,
            "partition": key.partition,
            "asks": {
                "nodes": key.nodes,
                "gpus": key.gpus,
                "gpu_type": key.gpu_type,
                "cpus": key.cpus,
                "memory_mib": key.memory_mib,
                "constraint": key.constraint,
            },
            "instead": {
                "gpus": of.gpus if of.gpus < key.gpus else None,
                "gpu_type": of.gpu_type if of.gpu_type != key.gpu_type else None,
                "cpus": of.cpus if of.cpus < key.cpus else None,
                "memory_mib": of.memory_mib if of.memory_mib < key.memory_mib else None,
                "time_limit_s": None if of.time_limit_s is None else round(of.time_limit_s),
            },
            "why": [each.code.value for each in of.findings],
            "proved_at": datetime.fromtimestamp(int(now_s), UTC).isoformat(),
            "runs": of.runs,
            "saves_usd": round(saving.usd, 2),
            "between_usd": [round(saving.low_usd, 2), round(saving.high_usd, 2)],
        }
    )


def table(
    advice: Sequence[Advice],
    before: Sequence[AdviceRowModel],
    runs: Sequence[Ran],
    *,
    starts_at_s: float | None,
    now_s: float,
    max_age_days: int,
) -> Table:
    """`before`: what is followed now. `starts_at_s`: of the history; None: all of it counts."""
    # Whether a program runs on a part of a GPU is for a person to try, and what slurmctld runs at a
    # submission knows GPUs alone.
    new = [
        row(each, now_s)
        for each in advice
        if each.proposal.part is None and each.proposal.key.gres == "gpu"
    ]
    said = {(each.family, each.asks) for each in new}
    kept: list[AdviceRowModel] = []
    ended: list[tuple[AdviceRowModel, str]] = []
    for each in before:
        since_s = each.proved_at.timestamp() - (starts_at_s or 0.0) if starts_at_s else 0.0
        if end := _bad_end(each, runs, since_s):
            ended.append((each, end))
        elif (each.family, each.asks) not in said and each.ends_at_s(max_age_days) > now_s:
            kept.append(each)
    fallen = {each.family for each, _ in ended}
    rows = [each for each in (*new, *kept) if each.family not in fallen]
    return Table(tuple(rows[:ROWS_MAX]), len(kept), tuple(ended))


def _bad_end(row: AdviceRowModel, runs: Sequence[Ran], since_s: float) -> str:
    """How a job of the same work ended since then that had too little; "": none did."""
    for run in runs:
        is_same = (run.user, stem(run.name), run.job.partition) == row.family
        if is_same and run.job.submit_s >= since_s and run.state in (OUT_OF_MEMORY, TIMEOUT):
            return f"job {run.job.job_id} ended with {run.state}"
    return ""


def write(path: Path, cluster: str, made: Table) -> None:
    """Errors: OSError."""
    model = AdviceTableModel(cluster=cluster, classes=made.rows)
    data = model.model_dump(mode="json", exclude_none=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(HEADLINE + as_yaml(data))
    draft.replace(path)


def lines(path: Path, made: Table, policy: AdviceModel | None) -> Iterator[str]:
    """What was written, and what becomes of it."""
    kept = f", {made.kept} of them as they were before" if made.kept else ""
    yield f"{path}: {len(made.rows)} class{'es' * (len(made.rows) != 1)}{kept}"
    for each, end in made.ended:
        yield f"  taken off: {', '.join(each.family)}: {end} after it was advised"
    if policy is None:
        yield "  nobody's jobs are changed by it: the cluster file has no slurm.advice"
        return
    for each in made.rows:
        if not any(of.may_have(each) for of in policy.classes):
            yield f"  not followed: {', '.join(each.family)}: no class of slurm.advice opts in"
    yield "  the head follows it from the next deployment on"
