"""One node of the cheapest kind, from a job to its end, and everything gone again."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tidegate.adapters.boot_log import BootTold, boot_told
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.cli.probe import budget
from tidegate.cli.probe.cheapest import Cheapest
from tidegate.cli.probe.facts import Fact, Stage, Standing
from tidegate.cli.probe.mail import Bell
from tidegate.cli.probe.slurm_job import JobState, SlurmJob
from tidegate.core.model.ec2 import Instance
from tidegate.core.model.errors import SlurmUnavailable, TidegateError
from tidegate.ports import Clock
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients

# All of it takes at most 15 minutes, with what it takes to have everything gone again.
LONGEST_S = 900.0
GOING_S = 120.0
POLL_S = 5.0
# A planner that was asked before the job was cancelled answers within its function's life.
IN_FLIGHT_S = 50.0

CLAIMS = {
    "job-accepted": "Slurm takes a job for the cheapest kind of node.",
    "node-launched": "The planner launches a node for it.",
    "node-joined": "The node boots, joins and runs the job, each part within its budget.",
    "job-requeued": "The job runs again after a requeue, and to its end.",
}
GONE = "The job and the node are gone again."
# What a person who waits is told meanwhile.
DOING = {
    "job-accepted": "submits a job on the head",
    "node-launched": "waits for a node to be launched",
    "node-joined": "waits for it to boot and run the job; minutes, see docs/boot.md",
    "job-requeued": "requeues the job and waits for its end; Slurm holds it for two minutes",
}
ENDING = "cancels the job and ends the node"


# A look comes within a second or two of the job, and a launch is a call.
LAUNCHED_S = 120.0
HEARD_S = 30.0


@dataclass(frozen=True, slots=True)
class Said:
    """How a step ended. `ends`: none comes after it."""

    said: tuple[str, ...] = ()
    standing: Standing = Standing.CONFIRMED
    ends: bool = False


@dataclass(slots=True)
class Trial:
    """`pause`: waits for so many seconds. `tell`: is given each fact as soon as it stands.

    `say`: is told what goes on.
    """

    file: ClusterFile
    clients: Clients
    job: SlurmJob
    cheapest: Cheapest
    clock: Clock
    pause: Callable[[float], None]
    tell: Callable[[Fact], None]
    stages: list[Stage] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    nodes: dict[str, Instance] = field(default_factory=dict)
    begun_at_s: float = 0.0
    boot_is_over: bool = False
    say: Callable[[str], None] = lambda _: None

    def told_before(self) -> str:
        """What it takes, for who agrees to it."""
        one = self.cheapest
        kind, most = one.instance_type.name, f"{one.usd_per_hour:.2f} USD an hour"
        return (
            f"This submits a job, which launches one {kind} ({most} at most), requeues it once, "
            f"rings one alarm, and ends what it began: at most {LONGEST_S / 60:.0f} minutes and "
            f"{one.most_usd:.2f} USD. Ctrl-C ends it at any time."
        )

    def run(self) -> None:
        """Errors: none; KeyboardInterrupt after everything is gone again."""
        self.begun_at_s = self.clock.now_s()
        try:
            for code, step in self._steps().items():
                self.say(DOING[code])
                details = self._tried(step)
                self._say(code, details.standing, details.said)
                if details.ends:
                    break
        finally:
            why = "what comes before it did not come to its end"
            for code in (each for each in CLAIMS if each not in self.told):
                self._say(code, Standing.NOT_ASKED, (why,))
            with uninterrupted():
                self._clean_up()

    def _steps(self) -> Mapping[str, Callable[[], "Said"]]:
        return {
            "job-accepted": self._submit,
            "node-launched": self._launched,
            "node-joined": self._joined,
            "job-requeued": self._requeued,
        }

    def _tried(self, step: Callable[[], "Said"]) -> "Said":
        """What Slurm refuses is an answer; where nobody could be asked, there is none."""
        try:
            return step()
        except SlurmUnavailable as refused:
            return Said((str(refused),), Standing.REFUTED, ends=True)
        except TidegateError as trouble:
            said = f"{type(trouble).__name__}: {trouble}"
            return Said((said,), Standing.NOT_ASKED, ends=True)

    def _say(self, code: str, standing: Standing, details: tuple[str, ...]) -> None:
        self.told.add(code)
        self.tell(Fact(code, CLAIMS[code], standing, details))

    def _submit(self) -> "Said":
        self.job.submit(self.cheapest)
        return Said((f"job {self.job.job_id} for one {self.cheapest.offering.instance_type}",))

    def _launched(self) -> "Said":
        for _ in self._until(self.begun_at_s + LAUNCHED_S):
            self._look_for_nodes()
            if self.nodes or self.job.state().runs_on:
                return Said(tuple(f"{one.offering}" for one in self.nodes.values()))
        why = f"no node in {LAUNCHED_S:g} s; `tidegate why {self.job.job_id}` says why"
        return Said((why, *self._refusals()), Standing.REFUTED, ends=True)

    def _joined(self) -> "Said":
        for _ in self._until(self._last_s):
            state = self.job.state()
            if state.runs_on or state.is_over:
                self.boot_is_over = True
                return self._timed(state)
            if gave_up := self._gave_up():
                self._time(None)
                return Said((gave_up,), Standing.REFUTED, ends=True)
        self._time(None)
        boot = self._boot()
        said = "it said that it is ready" if boot else "it has said nothing of its boot"
        name = next(iter(self.nodes), "")
        text = (
            f"no job ran on it until the time was up, {said}; `tidegate node log {name}` says more"
        )
        return Said((text,), Standing.REFUTED, ends=True)

    def _timed(self, state: JobState) -> "Said":
        self._look_for_nodes()
        if not self.nodes:
            text = (
                f"it ran on {state.runs_on}, which was there already: nothing of a boot was timed"
            )
            return Said((text,))
        # What the node says of itself comes by two queues.
        for _ in self._until(min(self._last_s, self.clock.now_s() + HEARD_S)):
            if self._boot():
                break
        self._time(state.started_at_s or self.clock.now_s())
        late = [each for each in self.stages if each.is_late and each.took_s is not None]
        return Said(
            tuple(f"{each.name}: {each.took_s:.0f} s, not {each.budget_s:g}" for each in late),
            Standing.REFUTED if late else Standing.CONFIRMED,
        )

    def _requeued(self) -> "Said":
        self.job.requeue()
        for _ in self._until(self._last_s):
            state = self.job.state()
            if state.is_over:
                is_good = state.name == "COMPLETED" and state.restarts > 0
                text = f"it ended as {state.name} after {state.restarts} restarts"
                return Said((text,), Standing.CONFIRMED if is_good else Standing.REFUTED, ends=True)
        state = self.job.state()
        return Said((f"it is {state.name} ({state.reason}) yet",), Standing.REFUTED, ends=True)

    @property
    def _last_s(self) -> float:
        return self.begun_at_s + LONGEST_S - GOING_S

    def _until(self, at_s: float) -> Iterator[None]:
        """A turn at once, then one after each pause until then."""
        yield
        while self.clock.now_s() < at_s:
            self.pause(POLL_S)
            yield

    def _look_for_nodes(self) -> None:
        ec2 = Ec2Compute(self.clients("ec2"), self.file.cluster.name)
        self.nodes |= {one.instance_id: one for one in ec2.launched_for(self.job.job_id)}

    def _gave_up(self) -> str:
        boot = self._boot()
        if boot and boot.failed:
            return f"the node gave up in the stage {boot.failed}; `tidegate node log` says more"
        ec2 = Ec2Compute(self.clients("ec2"), self.file.cluster.name)
        alive = [one for one in ec2.launched_for(self.job.job_id) if one.is_alive]
        if self.nodes and not alive:
            return "the node ended before it ran the job; `tidegate events` says why"
        return ""

    def _boot(self) -> BootTold | None:
        for name in self.nodes:
            found = boot_told(
                self.clients("logs"), self.file.cluster.name, name, since_s=self.begun_at_s
            )
            if found:
                return found
        return None

    def _time(self, runs_at_s: float | None) -> None:
        if not self.nodes:
            return
        launched_at_s = min(one.launched_at_s for one in self.nodes.values())
        column = budget.column(self.file, self.cheapest.pool, self.cheapest.instance_type)
        self.stages[:] = [
            Stage("the planner launches", max(0.0, launched_at_s - self.begun_at_s), None),
            *budget.stages(
                column, launched_at_s=launched_at_s, boot=self._boot(), runs_at_s=runs_at_s
            ),
        ]

    def _refusals(self) -> tuple[str, ...]:
        return self.job.refusals(since_s=self.begun_at_s)

    def _clean_up(self) -> None:
        """Cancel, end what was launched for it, and see that it is so."""
        left: list[str] = []
        if self.job.is_begun:
            self.say(ENDING)
            try:
                left += self._end_all()
            except TidegateError as trouble:
                left.append(f"{type(trouble).__name__}: {trouble}")
                left += [f"aws ec2 terminate-instances --instance-ids {one}" for one in self.nodes]
        standing = Standing.REFUTED if left else Standing.CONFIRMED
        self.tell(Fact("all-gone", GONE, standing, (*left, *self._rests())))

    def _rests(self) -> tuple[str, ...]:
        """What the planner makes of a node that was ended before it had joined."""
        if not self.nodes or self.boot_is_over:
            return ()
        text = "a node that ends before it has joined counts as a boot that failed: its offering "
        again = f"`tidegate retry {self.cheapest.pool}` lifts it"
        return (f"{text}rests for this pool for some minutes; {again}",)

    def _end_all(self) -> list[str]:
        """What is left."""
        self.job.cancel()
        ec2 = Ec2Compute(self.clients("ec2"), self.file.cluster.name)
        began_s = self.clock.now_s()
        kept: dict[str, str] = {}
        left: list[str] = []
        for _ in self._until(began_s + GOING_S):
            self._look_for_nodes()
            found = ec2.launched_for(self.job.job_id)
            left = [one.instance_id for one in found if one.is_alive]
            for name in left:
                if self.job.is_alone_on(name):
                    ec2.terminate([name])
                else:
                    kept[name] = "other jobs run on it; it ends when they have ended"
            if set(left) <= kept.keys() and (
                self.nodes or self.clock.now_s() > began_s + IN_FLIGHT_S
            ):
                return []
        return [f"{one} is there yet: end it by hand" for one in left]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A second Ctrl-C waits until this is over."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ring(bell: Bell, tell: Callable[[Fact], None]) -> None:
    """One alarm, rung and stilled again."""
    try:
        tell(bell.rung())
    finally:
        with uninterrupted():
            bell.still()
