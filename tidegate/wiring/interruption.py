"""The interruption function: news of nodes, without the planner."""

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.service.interruptions import Interruptions
from tidegate.wiring.function import Deployed
from tidegate.wiring.resources import planner_bus, resources_of


def interruptions(deployed: Deployed) -> Interruptions:
    clients, cluster = deployed.clients, deployed.file.cluster
    resources, clock = resources_of(deployed.settings), SystemClock()
    return Interruptions(
        cluster,
        DynamoLedger(clients("dynamodb"), resources.table, clock),
        planner_bus(cluster.name, resources, clients),
        clock,
    )
