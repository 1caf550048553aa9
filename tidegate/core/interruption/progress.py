"""How much of its work a job has saved: what its file says that it names in its comment."""

import re

from tidegate.core.model.job_files import Progress
from tidegate.core.model.slurm import Job

# `sbatch --comment=tidegate:progress=/shared/ada/run/progress`: the training writes there which
# part of its work its newest checkpoint holds, like 0.42 or 42%.
PROGRESS_KEY = "tidegate:progress="
_ASKED = re.compile(r"\btidegate:progress=(/[^\s@,;]{1,1000})")
_PART = re.compile(r"(\d{1,3}(?:\.\d{1,12})?|\.\d{1,12})\s*(%?)", re.ASCII)

# What a number with blanks around it takes; more is none.
CHARS_MAX = 64


def progress_path(job: Job) -> str | None:
    """The file that it names; None: none, or not by its whole path."""
    found = _ASKED.search(job.comment)
    return found[1] if found else None


def progress(text: str) -> Progress:
    """What the file's words say: a part of 1, or percent. What says nothing counts as nothing."""
    found = _PART.fullmatch(text.strip())
    part = float(found[1]) / (100.0 if found[2] else 1.0) if found else -1.0
    if not 0.0 <= part <= 1.0:
        return Progress(problem="its progress file holds no number from 0 to 1, nor percent")
    return Progress(part)
