"""What a look decided about every pending job, as people may ask for it later."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from tidegate.core.model.ec2 import Refusal
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import Plan
from tidegate.core.model.prometheus import Sample
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import WhyNot
from tidegate.core.offers.price_list import ListedPrice


@frozen
class Verdict:
    """What was decided about a job; equal ones are one value, however many jobs share it."""

    is_served: bool
    reason: str
    why_nots: tuple[WhyNot, ...] = ()


@frozen
class Bought:
    """A launch of the look: what EC2 was asked for, and why that."""

    launch_id: str
    pool: str
    offering: str
    count: int
    reason: str
    jobs: tuple[str, ...]


@frozen
class RefusedOffering:
    """An offering that EC2 did not give in this look, in EC2's words."""

    offering: str
    code: str
    message: str


@frozen
class Verdicts:
    """The last look that knew the queue.

    `jobs`: job id -> number of its verdict in `verdicts`. `by`: the nodes that serve a job.
    `digest_sequence`: of the digest that the verdicts are about, within the agent's start at
    `agent_started_at_s`; 0.0: 0.1 did not say. `samples`: the look as Prometheus reads it,
    `prices`: what jobs that are submitted now would pay; `idle`: what nodes without a job are for
    (`IdleUse`, or a word of a newer planner).
    """

    cluster: str
    plan_id: str
    at_s: float
    digest_sequence: int
    usd_per_hour: float
    verdicts: tuple[Verdict, ...]
    jobs: Mapping[str, int]
    by: Mapping[str, tuple[str, ...]]
    launches: tuple[Bought, ...] = ()
    refused: tuple[RefusedOffering, ...] = ()
    notes: tuple[str, ...] = ()
    agent_started_at_s: float = 0.0
    samples: tuple[Sample, ...] = ()
    prices: tuple[ListedPrice, ...] = ()
    idle: Mapping[str, str] = field(default_factory=dict)

    def of(self, job_id: str) -> Verdict | None:
        """None: the look did not know the job, or it was not pending."""
        number = self.jobs.get(job_id)
        return None if number is None else self.verdicts[number]


def verdicts_of(
    plan: Plan,
    snapshot: Snapshot,
    launched: Iterable[Launch] = (),
    refused: Sequence[Refusal] = (),
) -> Verdicts:
    """The verdicts of a plan. `launched`: the launches of all rounds of its look."""
    assert snapshot.digest is not None, "a plan without a digest has no verdicts"
    numbers: dict[Verdict, int] = {}
    jobs = {
        each.job_id: numbers.setdefault(Verdict(True, each.reason), len(numbers))
        for each in plan.served
    }
    for unmet in plan.unmet:
        verdict = Verdict(False, unmet.reason, unmet.why_nots)
        jobs[unmet.job_id] = numbers.setdefault(verdict, len(numbers))
    return Verdicts(
        cluster=snapshot.cluster.name,
        plan_id=str(snapshot.epoch),
        at_s=snapshot.now_s,
        digest_sequence=snapshot.digest.stamp.sequence,
        usd_per_hour=plan.usd_per_hour,
        verdicts=tuple(numbers),
        jobs=jobs,
        by={each.job_id: each.by for each in plan.served if each.by},
        launches=tuple(_bought(each) for each in launched),
        refused=tuple(
            RefusedOffering(str(each.offering), each.code, each.message) for each in refused
        ),
        notes=plan.notes,
        agent_started_at_s=snapshot.digest.stamp.agent_started_at_s,
        idle={name: use.value for name, use in plan.idle.items()},
    )


def _bought(launch: Launch) -> Bought:
    return Bought(
        launch.launch_id,
        launch.pool,
        str(launch.offerings[0]),
        launch.count,
        launch.reason,
        launch.for_jobs,
    )
