"""The story itself, step by step; every step must happen, or the demo fails and says which."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from local.demo import asks
from local.demo.asks import Ask
from local.demo.stage import Refused, Stage

POLL_S = 0.2
MINUTE_S = 60.0
NIGHT_MINUTE_S = 0.6  # for each minute of the night that is passed


class DidNotHappen(Exception):
    """A step of the story did not happen in its time; the message says which."""


@dataclass(slots=True)
class Told:
    """What the story counted."""

    submitted: dict[str, Ask] = field(default_factory=dict)
    over_the_limit: str = ""
    steps: list[str] = field(default_factory=list)

    @property
    def jobs_submitted(self) -> int:
        return sum(max(ask.simulated.array, 1) for ask in self.submitted.values())


@dataclass(frozen=True, slots=True)
class Story:
    """One run. `say` hears each step as it happens, `on_wait` is called while time passes.

    `patience_s` bounds each step.
    """

    stage: Stage
    say: Callable[[str], None]
    on_wait: Callable[[], None] = lambda: None
    patience_s: float = 120.0
    told: Told = field(default_factory=Told)

    def run(self) -> Told:
        self._queue_drives_launches()
        self._gang_talks()
        self._spot_notice()
        self._everything_ends()
        self.stage.cancel(self.told.over_the_limit)
        self._evening()
        self._morning()
        self._nothing_is_left()
        return self.told

    def _queue_drives_launches(self) -> None:
        stage = self.stage
        for ask in (*asks.SINGLES, asks.ARRAY_OF_FOUR, asks.GANG_OF_THREE, asks.CHECKPOINTED_JOB):
            self._submit(ask)
        try:
            stage.submit(asks.IMPOSSIBLE)
        except Refused as refused:
            self._happened(f"a job that nobody can run is refused at submit: {refused}")
        else:
            raise DidNotHappen("a job for 8 H100 was accepted, and no pool has any")
        over = stage.submit(asks.OVER_THE_LIMIT)
        self._until(
            lambda: "limited to 4 nodes" in stage.seen.unmet.get(over, ""),
            "the job over its pool's limit is explained",
        )
        self._happened(f"job {over} asks too much and is told: {stage.seen.unmet[over]}")
        self.told.over_the_limit = over

    def _gang_talks(self) -> None:
        gang = self._job_id(asks.GANG_OF_THREE)
        self._until(lambda: self.stage.completed(gang) == 1, "the gang of three completes")
        line = self.stage.output(asks.GANG_OF_THREE, gang)[0]
        heard = line.split(" heard ")[1].split(" gpus=")[0].split()
        self._check(len(heard) == 2, f"rank 0 heard both other ranks by name: {line}")
        self._check(line.endswith("gpus=0,1,2,3"), f"the gang has all four GPUs: {line}")

    def _spot_notice(self) -> None:
        stage, job_id = self.stage, self._job_id(asks.CHECKPOINTED_JOB)
        self._until(
            lambda: job_id in stage.chronicle.running, "the checkpointed job runs on a spot node"
        )
        victim = stage.chronicle.ran_on[job_id][0]
        # Slurm says RUNNING moments before the script has begun, which the signal then ends.
        self._until(lambda: stage.is_listening(job_id), "the job waits for its checkpoint signal")
        stage.notice(victim)
        self._until(lambda: victim in stage.chronicle.drained, f"{victim} is drained")
        self._until(lambda: bool(stage.signals(job_id)), "the job sees its checkpoint signal")
        self._until(lambda: stage.requeued() == 1, "the job is requeued")
        self._until(lambda: stage.completed(job_id) == 1, "the job runs again and completes")
        host = stage.output(asks.CHECKPOINTED_JOB, job_id)[0].split()[0]
        self._check(host != victim, f"it ran again on a replacement, {host}")
        self._until(lambda: victim in stage.chronicle.terminated, f"{victim} is gone")

    def _everything_ends(self) -> None:
        for job_id, ask in self.told.submitted.items():
            self._until(partial(self._is_complete, job_id, ask), f"{ask.name} completes")
        for ask in (*asks.SINGLES, asks.ARRAY_OF_FOUR):
            for line in self.stage.output(ask, self._job_id(ask)):
                host, user, gpus = line.split()
                self._check(
                    user == ask.user and gpus.removeprefix("gpus=").isdigit(),
                    f"{ask.name} ran as {user} on {host} with one GPU",
                )

    def _evening(self) -> None:
        """Nodes go when their jobs have ended, then the head; what is queued waits."""
        stage, late = self.stage, self._submit(asks.LATE)
        self._until(lambda: late in stage.chronicle.running, "a job runs in the evening")
        node = stage.chronicle.ran_on[late][0]
        stage.pass_scheduled(stage.until_change_s())
        self._happened("the evening's cron fires")
        self._until(lambda: self._is_drained(node), f"{node} takes no further job")
        queued = self._submit(asks.OVERNIGHT)
        self._until(
            lambda: "stopped until" in stage.seen.unmet.get(queued, ""),
            "a job submitted now is told how long it waits",
        )
        self._until(lambda: stage.completed(late) == 1, "the evening's job ends in peace")
        self._until(lambda: not stage.seen.instances, "the last node is gone")
        # Minutes of this night pass faster than a busy machine looks; reconcile comes each five.
        self._until(lambda: stage.open_records() == 0, "the ledger counts no node")
        self._until(self._reconciled_to_stop, "the head stops last", patience_s=10 * MINUTE_S)

    def _reconciled_to_stop(self) -> bool:
        """Reconcile comes every five minutes; a minute of the night passes with each question."""
        is_stopped = self.stage.head_state() == "stopped"
        if not is_stopped and self.stage.until_change_s() > 2 * MINUTE_S:
            self.stage.pass_scheduled(MINUTE_S)
            # Else a night may be over before what reconcile said in it has been done.
            self.stage.wait(NIGHT_MINUTE_S)
        return is_stopped

    def _morning(self) -> None:
        stage, queued = self.stage, self._job_id(asks.OVERNIGHT)
        stage.pass_scheduled(stage.until_change_s())
        self._happened("the morning's cron fires")
        self._until(lambda: stage.head_state() == "running", "the head starts")
        self._until(lambda: stage.completed(queued) == 1, "the job that waited overnight completes")

    def _is_drained(self, name: str) -> bool:
        nodes = self.stage.seen.reading.nodes
        return any(node.name == name and node.state.is_drain for node in nodes)

    def _nothing_is_left(self) -> None:
        self.stage.wait(POLL_S)  # what was seen last may be from before the morning
        self._until(
            lambda: not self.stage.seen.instances and not self.stage.seen.reading.nodes,
            "idle nodes are released, deleted from Slurm and terminated",
        )
        self._until(lambda: self.stage.open_records() == 0, "the ledger counts no node any more")
        self._check(not self.stage.seen.instances, "and no other node has come meanwhile")

    def _is_complete(self, job_id: str, ask: Ask) -> bool:
        return self.stage.completed(job_id) == max(ask.simulated.array, 1)

    def _submit(self, ask: Ask) -> str:
        job_id = self.stage.submit(ask)
        self.told.submitted[job_id] = ask
        self._happened(f"{ask.user} submits {ask.name}: job {job_id}")
        return job_id

    def _job_id(self, ask: Ask) -> str:
        return next(job_id for job_id, each in self.told.submitted.items() if each is ask)

    def _until(
        self, has_happened: Callable[[], bool], what: str, *, patience_s: float = 0.0
    ) -> None:
        patience_s = patience_s or self.patience_s
        deadline_s = self.stage.now_s() + patience_s
        while not has_happened():
            if self.stage.now_s() > deadline_s:
                raise DidNotHappen(f"after {patience_s:.0f} s still not: {what}")
            self.stage.wait(POLL_S)
            self.on_wait()
        self._happened(what)

    def _check(self, is_so: bool, what: str) -> None:
        if not is_so:
            raise DidNotHappen(what)
        self._happened(what)

    def _happened(self, what: str) -> None:
        self.told.steps.append(what)
        self.say(what)
