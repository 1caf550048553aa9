"""Jobs whose GPUs idle: their owners are told, and where the cluster file says so they end.

A sensor may lie about a whole cluster. So within an hour one job of five is ended at most, or a
single one, and never before Slurm has had the warning for this very run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.core.interruption.idle_gpus import GpuJob, gpu_jobs, rule_of
from tidegate.core.model.durations import span
from tidegate.core.model.gpu_use import IdleAction, IdleNotice, IdleRule
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.plan import Action, Watch
from tidegate.core.model.slurm import Fault
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.faults import RETRIES_MAX, counted, told
from tidegate.core.passes.futile import request
from tidegate.core.passes.hangs import RUNNING
from tidegate.core.passes.orders import order

ENDED_WITHIN_S = 3600.0
JOBS_PER_END = 5

_WILL = {IdleAction.REQUEUE: "requeued", IdleAction.CANCEL: "cancelled"}


def give_back_idle(snapshot: Snapshot, known: Mapping[str, Stuck]) -> Iterator[Action]:
    """Tell owners of jobs whose GPUs idle, and end those that were told and idle on."""
    policy = snapshot.cluster.idle_gpus
    if policy is None:
        return
    jobs = gpu_jobs(snapshot.heard.reading.jobs)
    left = _may_end(snapshot, jobs, known)
    for each in jobs:
        rule = rule_of(policy, each.job)
        since_s = each.idle_since_s(rule.use_percent) if rule else None
        # What was not seen since the digest was written is no idleness.
        if rule is None or since_s is None or snapshot.heard.written_at_s - since_s < rule.after_s:
            continue
        idle = _Idle(snapshot, each, rule, since_s, known.get(each.job.job_id))
        decided = tuple(idle.decided(may_end=left > 0))
        left -= sum(idle.is_end(action) for action in decided)
        yield from decided


def _may_end(snapshot: Snapshot, jobs: tuple[GpuJob, ...], known: Mapping[str, Stuck]) -> int:
    """How many jobs more may be ended now."""
    ended = {i for i, each in known.items() if _is_ended_lately(each, snapshot)}
    there = ended.union(each.job.job_id for each in jobs)
    return max(1, len(there) // JOBS_PER_END) - len(ended)


def _is_ended_lately(stuck: Stuck, snapshot: Snapshot) -> bool:
    """Its end was ordered within the hour, or came within it: an order may be carried out late."""
    since_s = snapshot.now_s - ENDED_WITHIN_S - snapshot.cluster.timings.order_ttl_s
    return stuck.idle is not None and stuck.idle.ended_at_s > since_s


class _Idle:
    """One job whose GPUs have idled for long enough to be told of."""

    def __init__(
        self, snapshot: Snapshot, of: GpuJob, rule: IdleRule, since_s: float, before: Stuck | None
    ) -> None:
        job = of.job
        self._snapshot, self._job, self._rule, self._called = snapshot, job, rule, f"{of.called}s"
        self._stuck = before or Stuck(job.job_id, request(job, snapshot.heard.reading), 0.0)
        self._now_s = snapshot.now_s
        self._idle_s = snapshot.heard.written_at_s - since_s
        self._is_counted = _is_ended_lately(self._stuck, snapshot)

    def is_end(self, action: Action) -> bool:
        """Whether this is the note that it ends, of one that does not count yet."""
        after = action.stuck.idle if isinstance(action, Watch) else None
        return after is not None and after.ended_at_s == self._now_s and not self._is_counted

    def decided(self, *, may_end: bool) -> Iterator[Action]:
        notice, ttl_s = self._notice, self._snapshot.cluster.timings.order_ttl_s
        if notice is None:
            yield from self._tell(self._new)
        elif not notice.told_at_s and self._has_been_told:
            said = f"job {self._job.job_id} was told that its {self._called} idle"
            yield Watch(replace(self._stuck, idle=replace(notice, told_at_s=self._now_s)), said)
        elif not notice.told_at_s:
            if self._now_s > notice.asked_at_s + ttl_s:
                yield from self._tell(replace(notice, asked_at_s=self._now_s))
        elif self._will_end and self._now_s >= notice.told_at_s + self._rule.warning_s:
            if notice.ended_at_s > notice.told_at_s:
                is_due = self._now_s > notice.ended_at_s + ttl_s
                if is_due and (may_end or self._is_counted):
                    yield from self._end_again(notice)
            elif may_end:
                yield from self._begin_to_end(notice)
            elif not notice.is_spared:
                yield from self._spare(notice)

    @property
    def _will_end(self) -> bool:
        action = self._rule.action
        return action is IdleAction.CANCEL or (
            action is IdleAction.REQUEUE and self._job.is_requeueable
        )

    @property
    def _notice(self) -> IdleNotice | None:
        """What was done about this run since its GPUs idle, under the rule as it is."""
        notice = self._stuck.idle
        is_of_run = notice is not None and notice.restarts == self._job.restarts
        began_s = self._now_s - self._snapshot.digest_age_s - self._idle_s
        is_of_now = notice is not None and notice.asked_at_s >= began_s
        is_same = notice is not None and notice.action is self._rule.action
        return notice if is_of_run and is_of_now and is_same else None

    @property
    def _new(self) -> IdleNotice:
        before = self._stuck.idle
        return IdleNotice(
            self._job.restarts,
            self._rule.action,
            self._now_s,
            ended_at_s=before.ended_at_s if before else 0.0,
        )

    @property
    def _has_been_told(self) -> bool:
        """Slurm has had it: the agent keeps results for less time than a run needs to idle."""
        return any(
            each.kind is OrderKind.TELL
            and each.name == self._job.job_id
            and each.outcome is OrderOutcome.DONE
            for each in self._snapshot.heard.results
        )

    @property
    def _said(self) -> str:
        percent, idle = self._rule.use_percent, span(round(self._idle_s))
        return f"its {self._called} have been used for less than {percent} % for {idle}"

    def _tell(self, notice: IdleNotice) -> Iterator[Action]:
        text = f"tidegate: {self._said}"
        if self._will_end:
            in_s = span(round(self._rule.warning_s))
            text += f"; unless that changes it is {_WILL[self._rule.action]} in {in_s}"
        elif self._rule.action is IdleAction.REQUEUE:
            text += "; it may not be requeued (--no-requeue, or no batch job)"
        text += f"; to keep it: scontrol update jobid={self._job.job_id} comment=tidegate:idle-ok"
        yield Watch(replace(self._stuck, idle=notice), f"job {self._job.job_id}: {self._said}")
        yield self._order(OrderKind.TELL, text)

    def _begin_to_end(self, notice: IdleNotice) -> Iterator[Action]:
        after = replace(self._stuck, idle=replace(notice, ended_at_s=self._now_s))
        if self._rule.action is IdleAction.REQUEUE:
            # Hours of work before do not begin the count anew: the next run would end the same way.
            run = self._job.restarts + 1
            fault = Fault(self._said, self._job.node_names, run, ran_s=0.0)
            after = counted(after, self._job, fault, self._snapshot)
            is_last = after.faults > RETRIES_MAX
            after = replace(after, held_at_s=self._now_s if is_last else 0.0)
        self._stuck = after
        done = _WILL[self._rule.action]
        yield Watch(after, f"job {self._job.job_id} is {done}: {self._said}")
        yield self._end()

    def _end_again(self, notice: IdleNotice) -> Iterator[Action]:
        """Its order was lost or came too late: the hour in which it ends begins with this one."""
        self._stuck = replace(self._stuck, idle=replace(notice, ended_at_s=self._now_s))
        said = f"job {self._job.job_id} still runs, and is {_WILL[self._rule.action]} again"
        yield Watch(self._stuck, f"{said}: {self._said}")
        yield self._end()

    def _end(self) -> Action:
        if self._rule.action is IdleAction.CANCEL:
            return self._order(OrderKind.CANCEL, self._said)
        if self._stuck.held_at_s:
            return self._order(OrderKind.HOLD, told(self._stuck))
        return self._order(OrderKind.REQUEUE, self._said)

    def _spare(self, notice: IdleNotice) -> Iterator[Action]:
        """Say once why it goes on: somebody should look at it, or at who says that it idles."""
        why = (
            f"{self._said}; it goes on, since as many jobs as may be were ended for that within an "
            f"hour (one of {JOBS_PER_END} with GPUs)"
        )
        spared = replace(notice, is_spared=True)
        yield Watch(replace(self._stuck, idle=spared), f"job {self._job.job_id}: {why}")
        yield self._order(OrderKind.COMMENT, f"tidegate: {why}")

    def _order(self, kind: OrderKind, text: str) -> Action:
        return order(
            kind,
            (self._job.job_id,),
            text,
            only_if=RUNNING,
            on_nodes=self._job.node_names,
            restarts=self._job.restarts,
        )
