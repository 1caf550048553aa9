"""What looks did and met, as typed records: whom each concerns stands beside its sentence.

Programs read `kind`, `code` and the subjects; the sentence is for people.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from tidegate.core.explain.plan import sentence
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Instance, Offering, Refusal
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import Order
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
from tidegate.core.model.slurm_names import ABOUT_JOBS
from tidegate.core.model.snapshot import Snapshot

# The codes of trouble that ended a look; other trouble is one part's, and the look went on.
LOOK_FAILED = "look-failed"
LOOK_DENIED = "look-denied"  # a policy forbids what every look needs


class EventKind(StrEnum):
    """What sort of event it is."""

    DECISION = "decision"
    LAUNCHED = "launched"
    REFUSED = "refused"
    ENDED = "ended"
    TROUBLE = "trouble"
    MAIL = "mail"  # what became of one to the owner of a job


@frozen
class LookEvent:
    """One thing that a look did or met.

    `look_id`: the plan that it is of, or the look's. `code`: what was decided ("launch", the kind
    of an order), EC2's word for a refusal, or what became of a mail. `launch_id`: the launch that
    was asked for, or that gave the node. `until_s`: when it ends by itself, like an order that
    expires; None: never.
    """

    at_s: float
    look_id: str
    kind: EventKind
    code: str
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    offerings: tuple[str, ...] = ()
    launch_id: str = ""
    until_s: float | None = None
    sentence: str = ""

    def is_about(self, *, job: str = "", node: str = "", pool: str = "") -> bool:
        """Whether it concerns each of those that are given; trouble concerns everybody."""
        if self.kind is EventKind.TROUBLE:
            return True
        return (
            (not job or any(is_same_job(job, each) for each in self.jobs))
            and (not node or node in self.nodes)
            and (not pool or pool in self.pools)
        )


def is_same_job(asked: str, job_id: str) -> bool:
    """Whether a user who asks for "7" or "7_3" means this row of the queue.

    A task is meant by its array, and the tasks without a row of their own by "7".
    """
    array = asked.partition("_")[0]
    return job_id in (asked, array) or job_id.partition("_")[0] == asked


@frozen
class Narrator:
    """Turns what a round did into events; knows whose each node and offering is."""

    at_s: float
    look_id: str
    cluster: Cluster
    pools: Mapping[str, str]  # of nodes
    launches: Mapping[str, Launch]

    @staticmethod
    def of(plan: Plan, snapshot: Snapshot) -> "Narrator":
        """For what came of this plan."""
        pools = {each.instance_id: each.pool for each in snapshot.instances}
        pools |= {each.instance_id: each.pool for each in snapshot.nodes}
        recorded = (each.launch for each in snapshot.launches)
        new = (each for each in plan.actions if isinstance(each, Launch))
        return Narrator(
            snapshot.now_s,
            str(snapshot.epoch),
            snapshot.cluster,
            pools,
            {each.launch_id: each for each in (*recorded, *new)},
        )

    def decided(self, action: Action) -> LookEvent:
        """One action of a plan."""
        match action:
            case Launch():
                return self._launch("launch", action, action)
            case Resume():
                return self._launch("finish-launch", action, self.launches[action.launch_id])
            case Send():
                return self._ordered(action.order, action)
            case Terminate():
                return self._about_nodes("terminate", action, action.instance_ids)
            case Stop():
                return self._about_nodes("stop", action, action.instance_ids)
            case Mark():
                return self._about_nodes(action.code, action, (action.instance_id,))
            case Reprice():
                return self._about_nodes("reprice", action, (action.instance_id,))
            case Adopt():
                name, pool = action.record.instance_id, action.record.pool
                return self._decision("adopt", action, nodes=(name,), pools=(pool,))
            case Rest():
                on = (action.offering,)
                pools = (action.pool,) if action.pool else ()
                return self._decision("rest", action, pools=pools, on=on)
            case Watch():
                until_s = action.stuck.until_s or None
                return self._decision("watch", action, (action.stuck.job_id,), until_s=until_s)
            case Learn():
                pools, nodes = (action.pool_history.pool,), action.instance_ids
                return self._decision(action.code, action, nodes=nodes, pools=pools)
            case _:
                assert_never(action)

    def launched(self, instance: Instance) -> LookEvent:
        launch = self.launches.get(instance.launch_id)
        return self._event(
            EventKind.LAUNCHED,
            "launched",
            f"EC2 gave {instance.instance_id} {instance.offering}",
            jobs=launch.for_jobs if launch else (),
            nodes=(instance.instance_id,),
            pools=(instance.pool,),
            on=(instance.offering,),
            launch_id=instance.launch_id,
        )

    def refused(self, refusal: Refusal) -> LookEvent:
        on = refusal.offering
        said = f"EC2 refused {on}: {refusal.code}: {refusal.message}"
        pools = self._sold_by(on)
        return self._event(EventKind.REFUSED, refusal.code, said, pools=pools, on=(on,))

    def ended(self, name: str) -> LookEvent:
        pools = self._pools((name,))
        said = f"terminated {name}"
        return self._event(EventKind.ENDED, "terminated", said, nodes=(name,), pools=pools)

    def trouble(self, said: str) -> LookEvent:
        """Of a part of the round, like one launch; the round went on."""
        return self._event(EventKind.TROUBLE, "trouble", said)

    def _ordered(self, order: Order, action: Send) -> LookEvent:
        is_about_jobs = order.kind in ABOUT_JOBS
        nodes = order.on_nodes if is_about_jobs else order.names
        return self._decision(
            order.kind.value,
            action,
            order.names if is_about_jobs else (),
            nodes=nodes,
            pools=self._pools(nodes),
            until_s=order.not_after_s,
        )

    def _about_nodes(self, code: str, action: Action, nodes: tuple[str, ...]) -> LookEvent:
        return self._decision(code, action, nodes=nodes, pools=self._pools(nodes))

    def _decision(
        self,
        code: str,
        action: Action,
        jobs: tuple[str, ...] = (),
        *,
        nodes: tuple[str, ...] = (),
        pools: tuple[str, ...] = (),
        on: tuple[Offering, ...] = (),
        launch_id: str = "",
        until_s: float | None = None,
    ) -> LookEvent:
        return self._event(
            EventKind.DECISION,
            code,
            sentence(action),
            jobs=jobs,
            nodes=nodes,
            pools=pools,
            on=on,
            launch_id=launch_id,
            until_s=until_s,
        )

    def _event(
        self,
        kind: EventKind,
        code: str,
        said: str,
        *,
        jobs: tuple[str, ...] = (),
        nodes: tuple[str, ...] = (),
        pools: tuple[str, ...] = (),
        on: tuple[Offering, ...] = (),
        launch_id: str = "",
        until_s: float | None = None,
    ) -> LookEvent:
        return LookEvent(
            at_s=self.at_s,
            look_id=self.look_id,
            kind=kind,
            code=code,
            jobs=jobs,
            nodes=nodes,
            pools=pools,
            offerings=tuple(map(str, on)),
            launch_id=launch_id,
            until_s=until_s,
            sentence=said,
        )

    def _launch(self, code: str, action: Action, launch: Launch) -> LookEvent:
        return self._decision(
            code,
            action,
            launch.for_jobs,
            pools=(launch.pool,),
            on=launch.offerings,
            launch_id=launch.launch_id,
        )

    def _pools(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({self.pools[name] for name in nodes if name in self.pools}))

    def _sold_by(self, offering: Offering) -> tuple[str, ...]:
        return tuple(pool.name for pool in self.cluster.pools if pool.may_have(offering))
