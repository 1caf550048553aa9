"""The functions, each with a role and a log of its own, and what starts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk import statements
from cdk.acknowledged import acknowledge
from cdk.bundles import read_cluster_files
from cdk.events import Events
from cdk.network import Network
from cdk.nodes import Nodes
from cdk.queues import FUNCTION_TIMEOUT_S, Queues
from cdk.reports import make_reports
from cdk.reservation_rights import launch_into_groups, read_reservations
from cdk.sizes import judge_environment
from cdk.stopped_nodes import start_and_stop_nodes
from cdk.storage import Storage
from tidegate.wire.config import ClusterFile
from tidegate.wire.metrics import NAMESPACE
from tidegate.wire.settings import environment

MEMORY_MIB = 512
BATCH_SIZE = 10

# A storm of notices: a second's worth in one run, so that a few orders save all. Lambda wants
# a window of at least a second for more than ten messages, and allows no concurrency below two.
STORM_BATCH_SIZE = 100
STORM_WINDOW = Duration.seconds(1)
STORM_CONCURRENCY = 2

type Statements = Sequence[iam.PolicyStatement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the functions work with. `topic_arn`: where the planner tells people, "": nowhere."""

    file: ClusterFile
    network: Network
    storage: Storage
    queues: Queues
    events: Events
    nodes: Nodes
    cluster_asset: Asset
    topic_arn: str


class Functions(Construct):
    """planner, interruption, schedule and reconcile, and `report` where the file asks for it.
    `code`: one package for all of them.
    """

    def __init__(self, scope: Construct, id: str, *, around: Around, code: lambda_.Code) -> None:
        super().__init__(scope, id)
        self._around = around
        self._code = code
        self._environment = _environment(around)
        longest = self._environment | {"POWERTOOLS_SERVICE_NAME": "interruption"}
        judge_environment(self, longest, templates=len(around.nodes.templates))
        queues = around.queues
        # Where one look cannot launch all, it asks for the next one in the queue that feeds it; the
        # queue's one group lets one look at a time run. Lambda would refuse the 17th of such a
        # chain, and the looks of the batch with it until the queue gives them up, minutes later.
        # Source: Lambda guide, "Use Lambda recursive loop detection to prevent infinite loops".
        self.planner = self._function("planner", self._planner_statements(), may_wake_itself=True)
        self.interruption = self._function("interruption", self._interruption_statements())
        self.schedule = self._function("schedule", self._hours_statements(), dead=queues.dead)
        file = around.file
        own = (
            *self._hours_statements(),
            *statements.read_prices(file.cluster, file.region),
            *read_reservations(self, file.cluster),
        )
        self.reconcile = self._function("reconcile", own, dead=queues.dead)
        self.report = (
            self._function("report", self._report_statements(), dead=queues.dead)
            if file.report
            else None
        )
        self._feed(self.planner, queues.looks)
        self._feed(
            self.interruption,
            queues.interruptions,
            batch_size=STORM_BATCH_SIZE,
            max_batching_window=STORM_WINDOW,
            max_concurrency=STORM_CONCURRENCY,
        )

    @property
    def all(self) -> Mapping[str, lambda_.Function]:
        return {
            "planner": self.planner,
            "interruption": self.interruption,
            "schedule": self.schedule,
            "reconcile": self.reconcile,
            **({"report": self.report} if self.report else {}),
        }

    def _function(
        self,
        name: str,
        own: Statements,
        *,
        dead: sqs.Queue | None = None,
        may_wake_itself: bool = False,
    ) -> lambda_.Function:
        """`dead`: for functions that are invoked without waiting, which Lambda tries thrice."""
        cluster = self._around.file.cluster.name
        log_name = f"/tidegate/{cluster}/{name}"
        log_group = logs.LogGroup(
            self,
            f"{name.capitalize()}Log",
            log_group_name=log_name,
            removal_policy=RemovalPolicy.DESTROY,
        )
        # The CDK's own property takes names of numbers, not numbers.
        resource = log_group.node.default_child
        assert isinstance(resource, logs.CfnLogGroup)
        resource.retention_in_days = self._around.file.log_days
        role = statements.role(
            self,
            f"{name.capitalize()}Role",
            service="lambda",
            statements=[*own, *self._common_statements(log_name)],
        )
        function = lambda_.Function(
            self,
            name.capitalize(),
            function_name=f"tidegate-{cluster}-{name}",
            description=f"Tidegate, cluster {cluster}: {name}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"lambdas.{name}.handler",
            code=self._code,
            memory_size=MEMORY_MIB,
            timeout=Duration.seconds(FUNCTION_TIMEOUT_S),
            # What the CDK would add by itself to the role, it has already.
            role=role.without_policy_updates(),
            log_group=log_group,
            dead_letter_queue=dead,
            recursive_loop=lambda_.RecursiveLoop.ALLOW if may_wake_itself else None,
            environment=self._environment | {"POWERTOOLS_SERVICE_NAME": name},
        )
        acknowledge(function, L1="the Python that its packages are built and tested for")
        return function

    def _feed(
        self,
        function: lambda_.Function,
        queue: sqs.Queue,
        *,
        batch_size: int = BATCH_SIZE,
        max_batching_window: Duration | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        lambda_.EventSourceMapping(
            self,
            f"{function.node.id}Feed",
            target=function,
            event_source_arn=queue.queue_arn,
            batch_size=batch_size,
            max_batching_window=max_batching_window,
            max_concurrency=max_concurrency,
            report_batch_item_failures=True,
        )

    def _common_statements(self, log_name: str) -> Statements:
        asset = self._around.cluster_asset
        group = Stack.of(self).format_arn(service="logs", resource=f"log-group:{log_name}")
        return (
            read_cluster_files(self, asset.s3_bucket_name, self._around.file.cluster.name),
            statements.write_logs(group),
        )

    def _planner_statements(self) -> Statements:
        around = self._around
        cluster = around.file.cluster.name
        queues, storage = around.queues, around.storage
        return (
            *statements.ledger(storage.table.table_arn, "BatchGetItem"),
            *statements.read_newest("Digest", storage.bucket.bucket_arn, storage.digest_key),
            # As the import that it will be: cdk-nag names the wildcard below it by that.
            statements.keep_decisions(
                Stack.of(storage).export_value(storage.bucket.bucket_arn), cluster
            ),
            statements.send(
                "Send",
                queues.looks.queue_arn,
                queues.dead_looks.queue_arn,
                queues.urgent.queue_arn,
                queues.routine.queue_arn,
            ),
            statements.receive("Looks", queues.looks.queue_arn),
            statements.describe_instances(),
            *statements.launch(
                self,
                cluster=cluster,
                subnets=_node_subnets(around),
                group_ids=[
                    around.network.node_group_id,
                    *sorted({g for each in around.file.security_groups.values() for g in each}),
                ],
                also=around.nodes.launched_with,
            ),
            *launch_into_groups(around.file.cluster),
            *statements.use_key_for_volumes(self, storage.kms_key),
            statements.pass_role(self, around.nodes.role.role_arn),
            statements.terminate_nodes(self, cluster),
            *self._stop_and_start(),
            *([statements.make_spot_role(self)] if around.file.cluster.has_spot else []),
            *self._mail_owners(),
            *([statements.publish(around.topic_arn)] if around.topic_arn else []),
            *self._read_alarms(),
        )

    def _read_alarms(self) -> Statements:
        """Source: CloudWatch API, DescribeAlarms: composite alarms only for a right on `*`."""
        read = statements.statement("Alarms", ["cloudwatch:DescribeAlarms"], ["*"])
        return (read,) if self._around.file.cluster.alarms else ()

    def _stop_and_start(self) -> Statements:
        """Only where a pool keeps stopped nodes. A key of one's own is lent to launches as well."""
        cluster = self._around.file.cluster
        is_wanted = any(pool.stopped_nodes for pool in cluster.pools)
        return start_and_stop_nodes(self, cluster.name) if is_wanted else ()

    def _mail_owners(self) -> Statements:
        """SES asks for the identity of the sender, and in its sandbox for the recipient's too. An
        address of its suppression list is no resource.

        Source: Service Authorization Reference, Amazon SES v2.
        """
        told = self._around.file.notifications
        if told is None or told.owners is None:
            return ()
        where = Stack.of(self).format_arn(service="ses", resource="identity", resource_name="*")
        sender = {"StringEquals": {"ses:FromAddress": told.owners.sender}}
        return (
            statements.statement("MailOwners", ["ses:SendEmail"], [where], sender),
            statements.statement("Suppressed", ["ses:GetSuppressedDestination"], ["*"]),
        )

    def _interruption_statements(self) -> Statements:
        queues, storage = self._around.queues, self._around.storage
        return (
            statements.notices(storage.table.table_arn),
            *statements.read_newest("Digest", storage.bucket.bucket_arn, storage.digest_key),
            # Its orders are drain, signal, requeue and delete: urgent ones.
            statements.send("Send", queues.looks.queue_arn, queues.urgent.queue_arn),
            statements.receive("Notices", queues.interruptions.queue_arn),
        )

    def _report_statements(self) -> Statements:
        around = self._around
        storage = around.storage
        bucket_arn = Stack.of(storage).export_value(storage.bucket.bucket_arn)
        return (
            *make_reports(storage.table.table_arn, bucket_arn, around.file.cluster.name),
            statements.send("Undelivered", around.queues.dead.queue_arn),
            *([statements.publish(around.topic_arn)] if around.topic_arn else []),
        )

    def _hours_statements(self) -> Statements:
        """Of schedule and reconcile: both keep the cluster's hours."""
        queues, storage = self._around.queues, self._around.storage
        return (
            *statements.ledger(storage.table.table_arn),
            statements.send("Send", queues.looks.queue_arn, queues.dead.queue_arn),
            statements.describe_instances(),
            statements.start_and_stop_head(
                self, self._around.file.cluster.name, has_login=bool(self._around.file.login_kinds)
            ),
            *statements.lend_key_to_ec2(self, storage.kms_key),
        )


def _node_subnets(around: Around) -> Sequence[str]:
    """Those into which nodes are launched, each once."""
    file, shared = around.file, around.network.subnets
    places = ((pool.name, zone) for pool in file.cluster.pools for zone in pool.zones)
    return list(dict.fromkeys(each for place in places for each in file.subnets_of(*place, shared)))


def _environment(around: Around) -> dict[str, str]:
    queues, storage = around.queues, around.storage
    return {
        "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": "INFO",
        **environment(
            templates=around.nodes.templates,
            subnets={zone: around.network.subnets[zone] for zone in around.file.zones},
            placement_groups=around.nodes.placement_groups,
            cluster_bucket=around.cluster_asset.s3_bucket_name,
            cluster_key=around.cluster_asset.s3_object_key,
            table=storage.table.table_name,
            bucket=storage.bucket.bucket_name,
            bus=around.events.bus.event_bus_name,
            look_queue_url=queues.looks.queue_url,
            dead_look_queue_url=queues.dead_looks.queue_url,
            urgent_queue_url=queues.urgent.queue_url,
            routine_queue_url=queues.routine.queue_url,
            topic=around.topic_arn,
        ),
    }
