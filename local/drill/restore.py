"""The drill itself: jobs of each kind, a loss, what docs/recovery.md says, and what came back."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Protocol

POLL_S = 0.5
PATIENCE_S = 300.0
# One each second, so that the last of them is a second old at most when the plug is pulled.
MARKS = 8
MARK_EVERY_S = 1.0
ADA = "runuser -l ada -c"


class NotRestored(Exception):
    """Something did not come back, or not in time; the message says what."""


class Cluster(Protocol):
    """What a drill needs of a cluster: commands on its head, ways to break it, the way back."""

    def now_s(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def run(self, line: str) -> str | None:
        """What root's command on the head says; None: it fails, or there is no head."""
        ...

    def lose_head(self) -> None:
        """EC2 ends the head's instance; nothing in it gets to say good-bye."""
        ...

    def lose_nodes(self) -> None: ...

    def lose_volume(self) -> None:
        """What was on the data volume is gone. Nobody has it mounted."""
        ...

    def replace_head(self) -> None:
        """What a person does: counts `head.generation` up, and deploys."""
        ...

    def is_heard(self) -> bool:
        """Whether the digest that the planner reads is the present head's."""
        ...


@dataclass(frozen=True, slots=True)
class Restored:
    """What one loss cost.

    `answers_s`: from the loss until slurmctld answers. `rto_s`: until the planner has heard the new
    head as well; a person's own time is in neither. `rpo_s`: how old the oldest thing is that was
    lost, at the moment of the loss; 0: nothing was.
    """

    lost: str
    answers_s: float
    rto_s: float
    rpo_s: float
    found: tuple[str, ...]


@dataclass(slots=True)
class Drill:
    """One run of it. `say` hears each step. Errors: NotRestored."""

    cluster: Cluster
    say: Callable[[str], None]
    _marks: dict[str, float] = field(default_factory=dict)
    _num_submitted: int = 0

    def run(self) -> tuple[Restored, ...]:
        return (self.head(), self.volume())

    def head(self) -> Restored:
        """The head is terminated; its volume and the shared files are there."""
        ended, name = self._submit("--gres=gpu:t4:1", "true"), self._name
        runs = self._submit("--gres=gpu:t4:1", "sleep 900")
        self._until(lambda: self._has_ended(name), f"job {ended} has ended")
        self._until(lambda: self._shown(runs)[:1] == ["RUNNING"], f"job {runs} runs")
        before = self._shown(runs)
        self._leave_marks()
        lost_at_s = self.cluster.now_s()
        self.cluster.lose_head()
        self.say("the head is terminated; its generation is counted up, and the stack deployed")
        answers_s, rto_s = self._back(lost_at_s)
        self._check(self._shown(runs) == before, f"job {runs} runs on, where and since when it ran")
        self._check(self._has_ended(name), f"accounting knows job {ended}")
        rpo_s = self._rpo_s(lost_at_s)  # before a number that was lost is another job's
        self._goes_on()
        return self._restored("head", answers_s, rto_s, rpo_s, (f"job {runs} runs on",))

    def volume(self) -> Restored:
        """The data volume is blank: the queue is gone, accounting is in the last dump."""
        records = self._records()
        self._check(self.cluster.run("tidegate-accounting dump") is not None, "a dump is made")
        dumped_at_s = self.cluster.now_s()
        later = self._submit("--gres=gpu:t4:1", "true")
        self._until(lambda: self._has_ended(self._name), f"job {later} has ended")
        self.cluster.run("scancel --full -u ada; scancel -u ada")
        lost_at_s = self.cluster.now_s()
        self.cluster.lose_nodes()
        self.cluster.lose_head()
        self.cluster.lose_volume()
        self.say("nodes and head are terminated, the data volume is blank; the stack is deployed")
        answers_s, rto_s = self._back(lost_at_s)
        lost = not records or records - self._records()
        self._check(not lost, f"accounting has all {len(records)} jobs of the dump")
        self._check(self._queue() == "", "the queue is empty, as it was on the volume alone")
        self._goes_on()
        found = (f"{len(records)} jobs are accounted for", "the queue is lost")
        return self._restored("volume", answers_s, rto_s, lost_at_s - dumped_at_s, found)

    def _back(self, lost_at_s: float) -> tuple[float, float]:
        """Seconds until slurmctld answers, and until the planner has heard the new head."""
        now_s = self.cluster.now_s
        self.cluster.replace_head()
        self._until(lambda: self._says("scontrol ping", "is UP"), "slurmctld answers")
        answers_s = now_s() - lost_at_s
        self._until(self.cluster.is_heard, "the planner has heard the new head")
        return answers_s, now_s() - lost_at_s

    def _goes_on(self) -> None:
        """Somebody of before can submit, a node runs the job, accounting knows it."""
        again = self._submit("--gres=gpu:t4:1", "true")
        self._until(lambda: self._has_ended(self._name), f"job {again} ran afterwards")

    def _leave_marks(self) -> None:
        for _ in range(MARKS):
            at_s = self.cluster.now_s()
            self._marks[self._submit("--hold", "true")] = at_s
            self.cluster.wait(MARK_EVERY_S)

    def _rpo_s(self, lost_at_s: float) -> float:
        """Slurmctld saves what changed within five seconds, or loses it."""
        queue = set(self._queue().split())
        gone = [at_s for job, at_s in self._marks.items() if job not in queue]
        kept = len(self._marks) - len(gone)
        self.say(f"{kept} of {len(self._marks)} jobs of the last seconds are in the queue")
        return lost_at_s - min(gone, default=lost_at_s)

    def _restored(
        self, lost: str, answers_s: float, rto_s: float, rpo_s: float, found: tuple[str, ...]
    ) -> Restored:
        made = Restored(lost, round(answers_s, 1), round(rto_s, 1), round(rpo_s, 1), found)
        self.say(sentence(made))
        return made

    def _submit(self, asked: str, wrapped: str) -> str:
        """Its number. Its name is its own, since numbers may begin anew."""
        self._num_submitted += 1
        asked = f"--job-name={self._name} -o /dev/null {asked}"
        job = self.cluster.run(f"{ADA} \"sbatch --parsable {asked} --wrap '{wrapped}'\"")
        self._check(bool(job), f"job {job} is submitted by ada")
        return str(job)

    @property
    def _name(self) -> str:
        """Of the job that was submitted last."""
        return f"drill-{self._num_submitted}"

    def _has_ended(self, name: str) -> bool:
        return any(f"|{name}|COMPLETED|" in each for each in self._records())

    def _records(self) -> set[str]:
        """Of the jobs that ran to their end, also those whose number a later one has."""
        said = self.cluster.run("sacct -nPaXD -S 2020-01-01 -o JobID,JobName,State,Submit,End")
        return {each for each in (said or "").splitlines() if "|COMPLETED|" in each}

    def _shown(self, job: str) -> list[str]:
        """State, node, start and number of restarts."""
        line = f"squeue -h -j {job} -O State:20,NodeList:30,StartTime:30,RestartCnt:10"
        return (self.cluster.run(line) or "").split()

    def _queue(self) -> str:
        return self.cluster.run("squeue -h -o %i") or ""

    def _says(self, line: str, words: str) -> bool:
        return words in (self.cluster.run(line) or "")

    def _until(self, has_happened: Callable[[], bool], what: str) -> None:
        until_s = self.cluster.now_s() + PATIENCE_S
        while not has_happened():
            if self.cluster.now_s() > until_s:
                raise NotRestored(f"after {math.ceil(PATIENCE_S)} s still not: {what}")
            self.cluster.wait(POLL_S)
        self.say(what)

    def _check(self, is_so: bool, what: str) -> None:
        if not is_so:
            raise NotRestored(f"not so: {what}")
        self.say(what)


def sentence(of: Restored) -> str:
    """For people: what was lost, and what that cost."""
    cost = f"{of.rpo_s:.1f} s" if of.rpo_s else "0 s, nothing was lost"
    return (
        f"{of.lost} lost: slurmctld answers after {of.answers_s:.1f} s, RTO {of.rto_s:.1f} s,"
        f" RPO {cost}; {', '.join(of.found)}"
    )


def record(of: Restored) -> dict[str, object]:
    """For programs."""
    return asdict(of)
