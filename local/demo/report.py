"""demo-report.json and the summary at the end."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from rich.table import Table

from local.demo.stage import Stage
from local.demo.story import Told


def report(stage: Stage, told: Told, *, time_scale: float, slurm: str) -> dict[str, object]:
    """The figures of one run; durations are seconds of the stage's clock."""
    completed = sum(stage.completed(job_id) for job_id in told.submitted)
    return {
        **stage.chronicle.figures(),
        "jobs_submitted": told.jobs_submitted,
        "jobs_completed": completed,
        "jobs_requeued": stage.requeued(),
        "instances_launched": len(stage.chronicle.launched),
        "instances_left": len(stage.seen.instances),
        **stage.figures(),
        "slurm": slurm,
        "time_scale": time_scale,
        "aws_calls": dict(sorted(stage.aws_calls().items())),
    }


def write(figures: Mapping[str, object], path: Path) -> None:
    path.write_text(json.dumps(figures, indent=2) + "\n")


def summary(figures: Mapping[str, object]) -> Table:
    table = Table(title="Summary", show_header=False)
    for key, value in figures.items():
        table.add_row(key, _shown(value))
    return table


def _shown(value: object) -> str:
    if isinstance(value, dict):
        calls = ", ".join(f"{name} {count}" for name, count in value.items())
        return f"{sum(value.values())} calls: {calls}"
    if not isinstance(value, list):
        return str(value)
    if not value:
        return "none seen"
    if isinstance(value[0], str):
        return f"{len(value)}, named in the report"
    return f"median {median(value):.2f} s, worst {max(value):.2f} s of {len(value)}"
