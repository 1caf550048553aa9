"""The buses: digests of the agent on the cluster's own, EC2's news on the default one."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from cdk.queues import KEPT, Queues
from tidegate.wire.config import ClusterFile
from tidegate.wire.events import (
    ALARM_DETAIL_TYPE,
    BOOT_FAILED_DETAIL_TYPE,
    BOOT_READY_DETAIL_TYPE,
    DIGEST_DETAIL_TYPE,
    DIGEST_SOURCE,
    GPU_RESET_DETAIL_TYPE,
    HEALTH_DETAIL_TYPE,
    NODE_ORPHANED_DETAIL_TYPE,
    REBALANCE_DETAIL_TYPE,
    RESERVATION_DETAIL_TYPES,
    SPOT_DETAIL_TYPE,
    STATE_DETAIL_TYPE,
)
from userdata.values import NODE_SOURCE

# EventBridge's own default is a day: no look and no notice is worth anything by then.
DELIVERY_ATTEMPTS = 20
LOOK_DELIVERED_WITHIN = Duration.minutes(5)

ENDING_STATES = ("shutting-down", "terminated", "stopping", "stopped")

EC2_NEWS = {
    "SpotInterruption": (SPOT_DETAIL_TYPE,),
    "Rebalance": (REBALANCE_DETAIL_TYPE,),
    "ReservationInterruption": RESERVATION_DETAIL_TYPES,
}


class Events(Construct):
    """The cluster's bus, and the rules from both buses into the queues."""

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile, queues: Queues) -> None:
        super().__init__(scope, id)
        cluster = file.cluster.name
        self.bus = events.EventBus(self, "Bus", event_bus_name=f"tidegate-{cluster}")
        looks = targets.SqsQueue(
            queues.looks,
            message_group_id=cluster,
            dead_letter_queue=queues.dead,
            retry_attempts=DELIVERY_ATTEMPTS,
            max_event_age=LOOK_DELIVERED_WITHIN,
        )
        events.Rule(
            self,
            "Digest",
            description=f"a new digest of {cluster}: look",
            event_bus=self.bus,
            event_pattern=events.EventPattern(
                source=[DIGEST_SOURCE], detail_type=[DIGEST_DETAIL_TYPE]
            ),
            targets=[looks],
        )
        if file.rollout.alarms:
            self._look_at_alarms(cluster, file.rollout.alarms, looks)
        self._tell(
            "Boot",
            queues,
            events.EventPattern(
                source=[NODE_SOURCE],
                detail_type=[
                    BOOT_FAILED_DETAIL_TYPE,
                    BOOT_READY_DETAIL_TYPE,
                    NODE_ORPHANED_DETAIL_TYPE,
                    GPU_RESET_DETAIL_TYPE,
                ],
            ),
            bus=self.bus,
        )
        for name, detail_types in EC2_NEWS.items():
            pattern = events.EventPattern(source=["aws.ec2"], detail_type=list(detail_types))
            self._tell(name, queues, pattern)
        # Of all instances of the account, so only what somebody acts on: a node has gone.
        self._tell(
            "StateChange",
            queues,
            events.EventPattern(
                source=["aws.ec2"],
                detail_type=[STATE_DETAIL_TYPE],
                detail={"state": list(ENDING_STATES)},
            ),
        )
        self._tell(
            "Health",
            queues,
            events.EventPattern(
                source=["aws.health"], detail_type=[HEALTH_DETAIL_TYPE], detail={"service": ["EC2"]}
            ),
        )

    def _look_at_alarms(self, cluster: str, alarms: Sequence[str], looks: targets.SqsQueue) -> None:
        """At each change of these; what they say by then the planner asks."""
        events.Rule(
            self,
            "Alarms",
            description=f"an alarm that roll-outs of {cluster} heed has changed: look",
            event_pattern=events.EventPattern(
                source=["aws.cloudwatch"],
                detail_type=[ALARM_DETAIL_TYPE],
                detail={"alarmName": list(alarms)},
            ),
            targets=[looks],
        )

    def _tell(
        self,
        name: str,
        queues: Queues,
        pattern: events.EventPattern,
        bus: events.IEventBus | None = None,
    ) -> None:
        """News of the account; which of it is about this cluster only the function knows."""
        events.Rule(
            self,
            name,
            event_bus=bus,
            event_pattern=pattern,
            targets=[
                targets.SqsQueue(
                    queues.interruptions,
                    dead_letter_queue=queues.dead,
                    retry_attempts=DELIVERY_ATTEMPTS,
                    max_event_age=KEPT,
                )
            ],
        )
