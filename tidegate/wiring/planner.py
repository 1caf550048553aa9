"""The planner: the control loop on AWS."""

from functools import cache

from tidegate.adapters.alarms import CloudWatchAlarms
from tidegate.adapters.clients import client_of_function
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dead_looks import SqsDeadLooks
from tidegate.adapters.decisions import S3Decisions
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.adapters.notices import SnsNotices
from tidegate.adapters.owner_mail import SesMail
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.frozen import frozen
from tidegate.ports import Calendar, Decisions
from tidegate.ports.dead_looks import DeadLooks
from tidegate.ports.dry_runs import DryRuns
from tidegate.service.control import Control
from tidegate.service.requests import Placement
from tidegate.service.telling import Owners, Teller
from tidegate.wiring.function import Deployed
from tidegate.wiring.resources import Clients, Resources, placement_of, planner_bus, resources_of


@frozen(kw_only=True)
class Planner:
    """What the planner's function works with. `teller` None: the file tells nobody."""

    control: Control
    dead_looks: DeadLooks
    decisions: Decisions
    ec2: DryRuns
    teller: Teller | None


def planner(deployed: Deployed) -> Planner:
    settings, clients, file = deployed.settings, deployed.clients, deployed.file
    cluster = file.cluster
    return Planner(
        control=control(
            cluster,
            resources_of(settings),
            placement_of(settings, file),
            clients,
            calendar=file.calendar,
        ),
        dead_looks=SqsDeadLooks(clients("sqs"), settings.dead_look_queue_url, cluster.name),
        decisions=S3Decisions(clients("s3"), settings.bucket, cluster.name),
        ec2=Ec2Compute(clients("ec2"), cluster.name),
        teller=_teller(deployed),
    )


def _teller(deployed: Deployed) -> Teller | None:
    settings, clients, file = deployed.settings, deployed.clients, deployed.file
    if file.notifications is None or not settings.topic:
        return None
    notices = SnsNotices(clients("dynamodb"), clients("sns"), settings.table, settings.topic)
    told = file.notifications
    mail = SesMail(cache(lambda: clients("sesv2")), told.owners.sender) if told.owners else None
    owners = Owners(mail, told.owners.address_of) if mail and told.owners else None
    return Teller(file.cluster.name, notices, SystemClock(), told.wait_s, owners)


def control(
    cluster: Cluster,
    resources: Resources,
    placement: Placement,
    clients: Clients = client_of_function,
    *,
    calendar: Calendar,
) -> Control:
    """The control loop on AWS."""
    clock = SystemClock()
    return Control(
        cluster=cluster,
        compute=Ec2Compute(clients("ec2"), cluster.name),
        ledger=DynamoLedger(clients("dynamodb"), resources.table, clock),
        bus=planner_bus(cluster.name, resources, clients),
        clock=clock,
        placement=placement,
        calendar=calendar,
        alarms=CloudWatchAlarms(clients("cloudwatch")) if cluster.alarms else None,
    )
