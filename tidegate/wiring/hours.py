"""The head's hours, which schedule and reconcile keep."""

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.adapters.ec2_head import Ec2Head
from tidegate.service.hours import Did, Hours
from tidegate.wiring.function import Deployed, Function
from tidegate.wiring.resources import planner_bus, resources_of


def hours(deployed: Deployed) -> Hours:
    clients, cluster = deployed.clients, deployed.file.cluster
    resources, clock = resources_of(deployed.settings), SystemClock()
    return Hours(
        cluster=cluster,
        calendar=deployed.file.calendar,
        head=Ec2Head(clients("ec2"), cluster.name),
        compute=Ec2Compute(clients("ec2"), cluster.name),
        ledger=DynamoLedger(clients("dynamodb"), resources.table, clock),
        bus=planner_bus(cluster.name, resources, clients),
        clock=clock,
    )


def keep_hours[Work](made: Function[Work], work: Hours, why: str) -> dict[str, str]:
    """Keep the head's hours, log and count what came of it. Errors: those of `Hours.keep`."""
    kept = work.keep(why)
    made.logger.info("hours", extra={"hours": kept.record(), "why": why})
    made.count(HeadStarted=kept.did is Did.STARTED, HeadStopped=kept.did is Did.STOPPED)
    return kept.record()
