"""A plan as JSON: what `tidegate plan --format json` prints. The format is stable."""

from collections.abc import Mapping
from typing import Annotated, Literal, assert_never

from pydantic import Field

from tidegate.core.explain.plan import sentence
from tidegate.core.model.ec2 import Market, Offering, client_token
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import (
    Action,
    Adopt,
    Learn,
    Mark,
    Plan,
    Reprice,
    Rest,
    Resume,
    Send,
    Stop,
    Terminate,
    Watch,
)
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.wire.section import Section

VERSION: Literal[1] = 1


class OverrideModel(Section):
    """Where and as what EC2 may give a node."""

    instance_type: str = Field(description="EC2's name, like g5.xlarge")
    zone: str = Field(description="availability zone")
    usd_per_hour: float | None = Field(description="its price; null: not known")


class _Action(Section):
    sentence: str = Field(description="the action with its reason, in words")


class LaunchModel(_Action):
    """One CreateFleet call."""

    action: Literal["launch"] = "launch"
    launch_id: str = Field(description="id of the launch")
    token: str = Field(description="EC2's idempotency token")
    pool: str = Field(description="the pool")
    market: Market = Field(description="how it is paid for")
    overrides: tuple[OverrideModel, ...] = Field(description="in the order in which EC2 tries them")
    count: int = Field(description="nodes")
    min_count: int = Field(description="with fewer none is kept")
    jobs: tuple[str, ...] = Field(description="jobs it is for")
    gated_for: str = Field(description="the gang whose nodes join drained; empty: open")
    gangs: tuple[str, ...] = Field(
        default=(), description="equal gangs that share it, of min_count nodes each"
    )
    starts: str = Field(default="", description="the stopped node that it starts; empty: none")
    usd_per_hour: float = Field(description="of all nodes, at the dearest override")
    reason: str = Field(description="why")


class ResumeModel(_Action):
    """Finish a launch whose planner died."""

    action: Literal["resume"] = "resume"
    launch_id: str = Field(description="id of the launch")
    may_buy: bool = Field(description="ask EC2 for what is not there yet")


class OrderModel(_Action):
    """An order to the head."""

    action: Literal["order"] = "order"
    kind: str = Field(description="drain, undrain, release, requeue, signal, ...")
    names: tuple[str, ...] = Field(description="nodes or jobs")
    text: str = Field(description="reason, signal or comment")


class TerminateModel(_Action):
    """End instances."""

    action: Literal["terminate"] = "terminate"
    instance_ids: tuple[str, ...] = Field(description="EC2's ids")


class StopModel(_Action):
    """Stop instances, to be started again."""

    action: Literal["stop"] = "stop"
    instance_ids: tuple[str, ...] = Field(description="EC2's ids")


class NoteModel(_Action):
    """Write something down in the ledger; nothing is bought, ordered or ended."""

    action: Literal["mark", "reprice", "adopt", "rest", "watch", "learn"] = Field(
        description="what is written down"
    )
    of: str = Field(description="the instance, the offering, the job or the pool")


ActionModel = Annotated[
    LaunchModel | ResumeModel | OrderModel | TerminateModel | StopModel | NoteModel,
    Field(discriminator="action"),
]


class MissingModel(Section):
    """A dimension in which no type of a pool is large enough."""

    dimension: str = Field(description="like gpus, cpus, memory_mib")
    asked: float | None = Field(description="what the job asks of a node; null: without end")
    most: float = Field(description="the most that the pool has")


class WhyNotModel(Section):
    """One obstacle of a job that gets nothing."""

    kind: Why = Field(description="what stands in the way")
    sentence: str = Field(description="the same in words")
    pool: str = Field(description="the pool; empty: not one pool's")
    offering: str = Field(description="the one that rests, or the nearest that would fit")
    until_s: float | None = Field(description="when it passes by itself, epoch seconds")
    missing: tuple[MissingModel, ...] = Field(description="what no type of the pool has")


class UnmetModel(Section):
    """A pending job that gets nothing now."""

    job_id: str = Field(description="the job")
    reason: str = Field(description="why, in words")
    why: tuple[WhyNotModel, ...] = Field(description="why, obstacle by obstacle")


class ServedModel(Section):
    """A pending job that needs nothing more."""

    job_id: str = Field(description="the job")
    by: tuple[str, ...] = Field(description="nodes or launches")
    reason: str = Field(description="why it needs nothing more")


class PlanModel(Section):
    """What the planner would do now, and one verdict for every pending job."""

    version: Literal[1] = Field(default=VERSION, description="of this format")
    cluster: str = Field(description="name of the cluster")
    now_s: float = Field(description="when, epoch seconds")
    actions: tuple[ActionModel, ...] = Field(description="in the order in which they are done")
    served: tuple[ServedModel, ...] = Field(description="jobs that need nothing more")
    unmet: tuple[UnmetModel, ...] = Field(description="jobs that get nothing now")
    notes: tuple[str, ...] = Field(description="what else is to be said")
    is_cut: bool = Field(description="a plan may be no longer: the next one goes on from here")
    usd_per_hour: float = Field(description="what the cluster costs at most after it")


def encode_plan(plan: Plan, snapshot: Snapshot, notes: tuple[str, ...] = ()) -> str:
    """The plan for `snapshot` as JSON; `notes` stand before the plan's own."""
    return _plan_model(plan, snapshot, notes).model_dump_json(indent=2) + "\n"


def _plan_model(plan: Plan, snapshot: Snapshot, notes: tuple[str, ...]) -> PlanModel:
    return PlanModel(
        cluster=snapshot.cluster.name,
        now_s=snapshot.now_s,
        actions=tuple(_action(each, snapshot) for each in plan.actions),
        served=tuple(
            ServedModel(job_id=each.job_id, by=each.by, reason=each.reason) for each in plan.served
        ),
        unmet=tuple(
            UnmetModel(
                job_id=each.job_id, reason=each.reason, why=tuple(map(_why_not, each.why_nots))
            )
            for each in plan.unmet
        ),
        notes=(*notes, *plan.notes),
        is_cut=plan.is_cut,
        usd_per_hour=plan.usd_per_hour,
    )


def _why_not(why: WhyNot) -> WhyNotModel:
    return WhyNotModel(
        kind=why.kind,
        sentence=why.sentence,
        pool=why.pool,
        offering=why.offering,
        until_s=why.until_s,
        missing=tuple(
            MissingModel(dimension=dimension, asked=asked, most=most)
            for dimension, asked, most in why.missing
        ),
    )


def _action(action: Action, snapshot: Snapshot) -> ActionModel:
    said = sentence(action)
    match action:
        case Launch():
            return _launch(action, snapshot)
        case Resume():
            return ResumeModel(sentence=said, launch_id=action.launch_id, may_buy=action.may_buy)
        case Send(order=order):
            return OrderModel(sentence=said, kind=order.kind, names=order.names, text=order.text)
        case Terminate():
            return TerminateModel(sentence=said, instance_ids=action.instance_ids)
        case Stop():
            return StopModel(sentence=said, instance_ids=action.instance_ids)
        case Mark():
            return NoteModel(action="mark", sentence=said, of=action.instance_id)
        case Reprice():
            return NoteModel(action="reprice", sentence=said, of=action.instance_id)
        case Adopt():
            return NoteModel(action="adopt", sentence=said, of=action.record.instance_id)
        case Rest():
            return NoteModel(action="rest", sentence=said, of=str(action.offering))
        case Watch():
            return NoteModel(action="watch", sentence=said, of=action.stuck.job_id)
        case Learn():
            return NoteModel(action="learn", sentence=said, of=action.pool_history.pool)
        case _:
            assert_never(action)


def _launch(launch: Launch, snapshot: Snapshot) -> LaunchModel:
    prices: Mapping[Offering, float] = snapshot.cluster.prices
    return LaunchModel(
        sentence=sentence(launch),
        launch_id=launch.launch_id,
        token=client_token(snapshot.cluster.name, launch.launch_id),
        pool=launch.pool,
        market=launch.offerings[0].market,
        overrides=tuple(
            OverrideModel(
                instance_type=each.instance_type, zone=each.zone, usd_per_hour=prices.get(each)
            )
            for each in launch.offerings
        ),
        count=launch.count,
        min_count=launch.min_count,
        jobs=launch.for_jobs,
        gated_for=launch.gated_for,
        gangs=launch.gangs,
        starts=launch.starts,
        usd_per_hour=launch.count * launch.usd_per_hour_each,
        reason=launch.reason,
    )
