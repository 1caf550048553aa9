"""What the last look decided about each waiting job, in the job's AdminComment.

`scontrol show job` then says it to people who have never heard of us. An update makes slurmctld
run a scheduling pass and clears the job's pending reason until then, so a note is written only
when it differs, a few a second, and none in a queue that is too long for that.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.core.explain.short import note
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.errors import TidegateError
from tidegate.ports import Clock
from tidegate.ports.slurm import Slurm

READ_EVERY_S = 10.0
NOTES_PER_STEP = 10
PENDING_MAX = 2_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Notes:
    """`newest`: the newest verdicts, None when no look has stored any. `step` is for every
    second; a new start of the agent writes each note once more.
    """

    newest: Callable[[], Verdicts | None]
    slurm: Slurm
    clock: Clock
    _written: dict[str, str] = field(default_factory=dict)
    _waiting: dict[str, str] = field(default_factory=dict)
    _read_at_s: float = 0.0
    _has_trouble: bool = False

    def step(self) -> None:
        """Write what has changed, some of it at a time. Raises nothing: it tries again."""
        try:
            self._read()
            self._write()
        except TidegateError as error:
            if not self._has_trouble:
                logger.warning("Notes on jobs have to wait: %s", error)
            self._has_trouble = True
        else:
            self._has_trouble = False

    def _read(self) -> None:
        now_s = self.clock.now_s()
        if 0.0 <= now_s - self._read_at_s < READ_EVERY_S:
            return
        self._read_at_s = now_s
        verdicts = self.newest()
        if verdicts is None or len(verdicts.jobs) > PENDING_MAX:
            self._waiting = {}
            return
        texts = [note(each) for each in verdicts.verdicts]
        wanted = {job_id: texts[number] for job_id, number in verdicts.jobs.items()}
        self._written = {job: text for job, text in self._written.items() if job in wanted}
        self._waiting = {
            job_id: text
            for job_id, text in wanted.items()
            if text and self._written.get(job_id) != text
        }

    def _write(self) -> None:
        """Errors: SlurmUnavailable; what was not written is written in a later step."""
        for job_id in list(self._waiting)[:NOTES_PER_STEP]:
            self.slurm.comment(job_id, self._waiting[job_id])
            self._written[job_id] = self._waiting.pop(job_id)
