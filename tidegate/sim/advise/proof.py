"""Plays a history with smaller requests beside the history as it was: what they would have saved.

Every figure is the difference of two replays. How sure it is follows from its days, drawn anew with
replacement, and from a half of the history that was not learnt from: of that one each figure is the
mean of several plays, since one hangs on minutes, and what is foretold for it is drawn towards what
nodes cost that nobody shares, as far as the first half is unsure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.frozen import frozen
from tidegate.sim.advise.classes import (
    MARGIN,
    ClassKey,
    Proposal,
    Silent,
    classes,
    floors,
    key_of,
    proposal,
)
from tidegate.sim.advise.fitting import (
    least_gpu_memory_mib,
    on_its_gpus,
    parts_for,
    types,
    usd_of_cheapest,
)
from tidegate.sim.advise.moved import moved
from tidegate.sim.advise.saving import Played, Saving, Work, foretold, saving_of
from tidegate.sim.advise.usage import Ran
from tidegate.sim.replay.outcome import Outcome, as_days
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import DAY_S, Trace, TraceJob
from tidegate.sim.replay.world import Setting

# Fewer say nothing of how days differ.
BILLED_DAYS_LEAST = 6
CLASSES_MOST = 8
# Each half is played so often, as it was and moved.
PLAYS = 2

type Progress = Callable[[int, int], None]


@frozen
class Advice:
    """A class that could ask less. `types`: the cheapest that holds a job of it, before and after.

    `wait_p95_s`: of all jobs of the history, before and after.
    """

    proposal: Proposal
    saving: Saving
    types: tuple[str, str]
    wait_p95_s: tuple[float, float]


@frozen
class HeldOut:
    """What the first half of the history taught, played on the second one, which cost `usd`.

    `predicted`: what the first half saved, for as much work of these classes as the second one has;
    `replayed_usd`: what the second one did, of `replays_usd` the mean. `misfits`: jobs of `jobs`
    that the smaller request would have ended; they are played twice as long, with their old one.
    """

    classes: int
    first_days: int
    second_days: int
    usd: float
    predicted: Saving
    replayed_usd: float
    replays_usd: tuple[float, ...]
    misfits: int
    jobs: int

    @property
    def error(self) -> float | None:
        """By what part of the replayed saving the prediction was too high; None: it was 0."""
        return self.predicted.usd / self.replayed_usd - 1 if self.replayed_usd else None

    @property
    def error_of_cost(self) -> float:
        """By what part of `usd` the prediction was too high."""
        return (self.predicted.usd - self.replayed_usd) / self.usd if self.usd else 0.0


@frozen
class Advised:
    """All that is said of a history. `together`: with all the advice at once; None: none is given.

    `silent`: of how many classes and jobs nothing is said, by why; `unknown`: why of none at all.
    """

    cluster: str
    usd: float
    days: int
    jobs: int
    advice: tuple[Advice, ...]
    together: Saving | None
    held_out: HeldOut | None
    silent: tuple[tuple[Silent, int, int], ...]
    unknown: str = ""


@frozen
class Studied:
    """A history and what its jobs used, on a cluster. `most`: how many classes are played."""

    runs: Sequence[Ran]
    trace: Trace
    cluster: Cluster
    setting: Setting
    margin: float = MARGIN
    most: int = CLASSES_MOST

    def advised(self, progress: Progress = lambda done, of: None) -> Advised:
        """Each class alone, then all together, then what the first half says of the second."""
        proposals, silent = self._proposals(self.runs)
        chosen, left = self._dearest(proposals, self.runs)
        for key in left:
            silent[key] = Silent.CHEAP
        sizes = {key: len(found) for key, found in classes(self.runs).items()}
        before = self._play(self.trace.jobs)
        days = len(before.days)
        if days < BILLED_DAYS_LEAST:
            text = f"it was billed on {days} days: from {BILLED_DAYS_LEAST} on differences count"
            return self._told(before, (), None, None, silent, sizes, unknown=text)
        held_out, taught = self.held_out()
        of = len(chosen) + 1
        found: list[Advice] = []
        for done, one in enumerate(chosen):
            progress(done, of)
            why, advice = self._alone(one, before, is_taught=one.key in taught)
            if advice:
                found.append(advice)
            elif why:
                silent[one.key] = why
        if held_out and found and held_out.replayed_usd <= 0:
            text = "what its first half taught saved nothing in the second one"
            return self._told(before, (), None, held_out, silent, sizes, unknown=text)
        together = self._together(found, before)
        progress(of, of)
        return self._told(before, tuple(found), together, held_out, silent, sizes)

    def _proposals(self, runs: Sequence[Ran]) -> tuple[list[Proposal], dict[ClassKey, Silent]]:
        low = floors(runs)
        found: list[Proposal] = []
        silent: dict[ClassKey, Silent] = {}
        for key, members in classes(runs).items():
            gpu_memory_mib = least_gpu_memory_mib(key.job, self.cluster)
            parts = parts_for(key.job, self.cluster)
            floor_mib = low.get(key.family, 0)
            one = proposal(key, members, floor_mib, gpu_memory_mib, self.margin, parts)
            if isinstance(one, Proposal):
                one = on_its_gpus(one, self.cluster)
            if isinstance(one, Proposal):
                found.append(one)
            else:
                silent[key] = one
        return found, silent

    def _dearest(
        self, found: Iterable[Proposal], runs: Iterable[Ran]
    ) -> tuple[list[Proposal], list[ClassKey]]:
        """Those that could save most."""
        hours = _hours(runs)

        def rank(one: Proposal) -> tuple[float, float]:
            return -self._whole_nodes_usd([one], hours), -hours.get(one.key, 0.0)

        ranked = sorted(found, key=rank)
        return ranked[: self.most], [each.key for each in ranked[self.most :]]

    def _whole_nodes_usd(self, found: Iterable[Proposal], hours: Mapping[ClassKey, float]) -> float:
        """What they would save if each job had the cheapest nodes that hold it for itself."""
        usd = 0.0
        for one in found:
            before, after = (
                usd_of_cheapest(job, self.cluster) for job in (one.key.job, one.change(one.key.job))
            )
            if before is not None and after is not None:
                usd += hours.get(one.key, 0.0) * (before - after)
        return usd

    def _alone(
        self, one: Proposal, before: "_Played", *, is_taught: bool
    ) -> tuple[Silent | None, Advice | None]:
        after = self._play(self._changed(self.runs, [one]))
        saving = saving_of(before.days, after.days, self.setting.seed)
        if after.outcome.jobs_ended < before.outcome.jobs_ended:
            return Silent.WOULD_NOT_RUN, None
        if not saving.is_sure:
            return Silent.UNCERTAIN, None
        if not is_taught:
            return Silent.UNPROVED, None
        job = one.key.job
        on = (self._type_of(job), self._type_of(one.change(job)))
        waits = (before.outcome.waits.p95_s, after.outcome.waits.p95_s)
        return None, Advice(one, saving, on, waits)

    def _type_of(self, job: TraceJob) -> str:
        return next((of.name for _, of in types(job, self.cluster)), "")

    def _together(self, found: Sequence[Advice], before: "_Played") -> Saving | None:
        if len(found) <= 1:
            return found[0].saving if found else None
        after = self._play(self._changed(self.runs, [each.proposal for each in found]))
        return saving_of(before.days, after.days, self.setting.seed)

    def held_out(self) -> tuple[HeldOut | None, set[ClassKey]]:
        """None: the first half teaches nothing. The classes that it teaches of."""
        days = int(self.trace.jobs[-1].submit_s // DAY_S) + 1
        middle_s = days // 2 * DAY_S
        first = [run for run in self.runs if run.job.submit_s < middle_s]
        second = [_later(run, middle_s) for run in self.runs if run.job.submit_s >= middle_s]
        learnt, _ = self._dearest(self._proposals(first)[0], first) if first else ([], [])
        taught = {each.key for each in learnt}
        tried = [run for run in second if key_of(run) in taught]
        if not learnt or not tried:
            return None, set()
        teaches = [self._both(moved(first, move), learnt) for move in range(PLAYS)]
        hidden = [self._both(moved(second, move), learnt, is_hidden=True) for move in range(PLAYS)]
        usd = mean(sum(before.values()) for before, _ in hidden)
        taught_usd, hidden_usd = (
            self._whole_nodes_usd(learnt, _hours(half)) for half in (first, second)
        )
        work = Work(taught_usd, hidden_usd, jobs=len(tried))
        replayed = [sum(before.values()) - sum(after.values()) for before, after in hidden]
        return HeldOut(
            classes=len({key_of(run) for run in tried}),
            first_days=days // 2,
            second_days=days - days // 2,
            usd=usd,
            predicted=foretold(teaches, work, usd, self.setting.seed),
            replayed_usd=mean(replayed),
            replays_usd=tuple(replayed),
            misfits=sum(not _of(run, learnt).holds(run) for run in tried),
            jobs=len(tried),
        ), taught

    def _both(
        self, runs: Sequence[Ran], learnt: Sequence[Proposal], *, is_hidden: bool = False
    ) -> Played:
        """As they were, and with smaller requests."""
        before = self._play([run.job for run in runs])
        return before.days, self._play(self._changed(runs, learnt, is_hidden=is_hidden)).days

    def _changed(
        self, runs: Iterable[Ran], found: Sequence[Proposal], *, is_hidden: bool = False
    ) -> list[TraceJob]:
        """`is_hidden`: runs that were not learnt from; what would not have fitted runs twice."""
        by_key = {each.key: each for each in found}
        jobs: list[TraceJob] = []
        for run in runs:
            one = by_key.get(key_of(run))
            if one is None:
                jobs.append(run.job)
            elif is_hidden and not one.holds(run):
                jobs.append(replace(run.job, duration_s=2 * run.job.duration_s))
            else:
                jobs.append(one.change(run.job))
        return jobs

    def _play(self, jobs: Sequence[TraceJob]) -> "_Played":
        played = replay(Trace(tuple(jobs)), self.cluster, self.setting)
        return _Played(played.outcome, dict(as_days(played.world)))

    def _told(
        self,
        before: "_Played",
        advice: tuple[Advice, ...],
        together: Saving | None,
        held_out: HeldOut | None,
        silent: Mapping[ClassKey, Silent],
        sizes: Mapping[ClassKey, int],
        unknown: str = "",
    ) -> Advised:
        counts: dict[Silent, tuple[int, int]] = {}
        for key, why in silent.items():
            num, jobs = counts.get(why, (0, 0))
            counts[why] = num + 1, jobs + sizes[key]
        return Advised(
            cluster=self.cluster.name,
            usd=before.outcome.cost_usd,
            days=len(before.days),
            jobs=len(self.trace.jobs),
            advice=tuple(sorted(advice, key=lambda each: -each.saving.usd)),
            together=together,
            held_out=held_out,
            silent=tuple((why, *counts[why]) for why in Silent if why in counts),
            unknown=unknown,
        )


@frozen
class _Played:
    """USD by day since the history's start."""

    outcome: Outcome
    days: Mapping[int, float]


def _later(run: Ran, by_s: float) -> Ran:
    """In a history that begins so much later."""
    return replace(run, job=replace(run.job, submit_s=run.job.submit_s - by_s))


def _hours(runs: Iterable[Ran]) -> dict[ClassKey, float]:
    """Node-hours of each class."""
    found: dict[ClassKey, float] = {}
    for run in runs:
        key, hours = key_of(run), run.job.duration_s * run.job.nodes / 3600
        found[key] = found.get(key, 0.0) + hours
    return found


def _of(run: Ran, found: Iterable[Proposal]) -> Proposal:
    key = key_of(run)
    return next(each for each in found if each.key == key)
