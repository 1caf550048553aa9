"""Alarms: what somebody must look at, sent to one topic."""

from collections.abc import Sequence

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk.functions import Functions
from cdk.queues import Queues
from tidegate.core.model.ec2 import Market
from tidegate.wire.config import ClusterFile
from tidegate.wire.metrics import NAMESPACE, SERVICE

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)

# Two looks that are five minutes apart, the slowest that come, lie in two of these that follow
# each other.
FOUR_MINUTES = Duration.minutes(4)

# The agent's slowest heartbeat is five minutes.
SILENT_AFTER_S = 360

# A message that its function cannot handle is dead after five tries a minute apart.
UNREAD_AFTER_S = 360

# What is refused is tried again after 30 minutes at the latest: until then it is still refused.
REFUSED_PERIODS = 7


class Alarms(Construct):
    """`topic`: subscribe to it what shall hear of alarms besides the file's `alarm_email`."""

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        self._cluster = file.cluster.name
        self.arns: list[str] = []
        self.topic = sns.Topic(
            self, "Topic", display_name=f"Tidegate {self._cluster}", enforce_ssl=True
        )
        self._let_cloudwatch_publish()
        if file.alarm_email:
            sns.Subscription(
                self,
                "Email",
                topic=self.topic,
                endpoint=file.alarm_email,
                protocol=sns.SubscriptionProtocol.EMAIL,
            )

    def watch(self, file: ClusterFile, functions: Functions, queues: Queues) -> None:
        """Alarms on what the cluster's parts say; the topic is there before the functions are."""
        self._dead_letters(queues)
        self._unread(queues)
        self._failing_functions(functions)
        self._looks()
        self._capacity()
        if any(each.market is Market.CAPACITY_BLOCK for each in file.cluster.reservations):
            self._blocks()

    def _let_cloudwatch_publish(self) -> None:
        stack = Stack.of(self)
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="Alarms",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": stack.account}},
            )
        )

    def _dead_letters(self, queues: Queues) -> None:
        for name, queue in (("Dead", queues.dead), ("DeadLooks", queues.dead_looks)):
            self._alarm(
                f"{name}NotEmpty",
                f"messages that nobody could handle wait in the queue of {name}",
                queue.metric_approximate_number_of_messages_visible(
                    period=FIVE_MINUTES, statistic="Maximum"
                ),
            )

    def _unread(self, queues: Queues) -> None:
        """What a function would say of itself, were it called: its event source may be off."""
        for name, queue in (("Looks", queues.looks), ("Notices", queues.interruptions)):
            self._alarm(
                f"{name}Wait",
                f"nobody has read the queue of {name.lower()} for six minutes",
                queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
                above=UNREAD_AFTER_S,
                periods=2,
            )

    def _failing_functions(self, functions: Functions) -> None:
        for name, function in functions.all.items():
            self._alarm(
                f"{name.capitalize()}Errors",
                f"the function {name} fails",
                function.metric_errors(period=FIVE_MINUTES),
            )
            self._alarm(
                f"{name.capitalize()}Throttles",
                f"the function {name} is not let run",
                function.metric_throttles(period=FIVE_MINUTES),
            )

    def _looks(self) -> None:
        """What the functions say of themselves: their own result is success."""
        self._alarm(
            "LookFailed",
            "no look of the planner succeeded for eight minutes",
            # Of a period with one that did, the minimum is 0.
            self._of_cluster("LookFailed", "Minimum", FOUR_MINUTES),
            periods=2,
        )
        self._alarm(
            "AgentSilent",
            "the head's agent has sent no digest for six minutes",
            self._of_cluster("DigestAge", "Maximum", FIVE_MINUTES),
            above=SILENT_AFTER_S,
        )
        self._alarm(
            "BadEvents",
            "an event or message came that no function could read",
            self._of_cluster("BadEvents", "Sum", FIVE_MINUTES),
        )

    def _capacity(self) -> None:
        """Metrics without a value say that all is well: nothing is launched, nothing is lost."""
        self._alarm(
            "BootFailed",
            "nodes were launched that did not join as they should",
            self._of_cluster("BootFailed", "Sum", FIVE_MINUTES),
        )
        self._alarm(
            "LaunchesRefused",
            "EC2 refuses launches, and not for want of capacity",
            self._of_cluster("RefusedOther", "Sum", FIVE_MINUTES),
            periods=REFUSED_PERIODS,
            breaching=1,
        )
        self._alarm(
            "JobsWait",
            "EC2 gives nothing to a job that a pool could serve, for eight minutes and more",
            self._of_cluster("OldestWait", "Minimum", FIVE_MINUTES),
            periods=2,
        )
        self._alarm(
            "NearLimit",
            "a pool or the cluster has used 90 % of a limit for five minutes",
            self._of_cluster("LimitUsed", "Minimum", MINUTE),
            above=89.9,
            periods=5,
        )
        self._alarm(
            "GpusUnused",
            "less than 10 % of the GPUs that are paid for had a job for half an hour",
            self._of_cluster("GpuUse", "Maximum", FIVE_MINUTES),
            below=10,
            periods=6,
        )
        self._alarm(
            "LostCapacity",
            "nodes are paid for and nobody can use them",
            self._of_cluster("LostNodes", "Maximum", FIVE_MINUTES),
            periods=3,
        )
        self._alarm(
            "BudgetNearlySpent",
            "80 % of a budget are spent; at 100 % nothing more is launched for it",
            self._of_cluster("BudgetUsed", "Maximum", FIVE_MINUTES),
            above=79.9,
        )

    def _blocks(self) -> None:
        """A stack without one does not pay for an alarm about it."""
        self._alarm(
            "BlockEnds",
            "a capacity block ends within a day, and there is work that needs it",
            self._of_cluster("BlockEnds", "Minimum", FIVE_MINUTES),
        )

    def watch_head(self, instance_id: str) -> None:
        """EC2's own checks of the head. One that hangs is rebooted, as a person would do; the host
        that fails is AWS's: it moves the head to another by itself.

        Source: EC2 user guide, "Simplified automatic recovery"; CloudWatch user guide, "Create
        alarms to stop, terminate, reboot, or recover an EC2 instance": three minutes for a reboot.
        """
        reboot = f"arn:{Aws.PARTITION}:automate:{Stack.of(self).region}:ec2:reboot"
        self._alarm(
            "HeadHangs",
            "the head has not answered EC2 for three minutes, and is rebooted",
            _check_of(instance_id, "StatusCheckFailed_Instance"),
            periods=3,
            does=[reboot],
        )
        self._alarm(
            "HeadHostFails",
            "the machine below the head fails; AWS moves the head to another",
            _check_of(instance_id, "StatusCheckFailed_System"),
            periods=2,
        )

    def _of_cluster(self, name: str, statistic: str, period: Duration) -> cloudwatch.Metric:
        """Powertools adds the dimension `service` to those that the handlers set."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"cluster": self._cluster, "service": SERVICE},
            statistic=statistic,
            period=period,
        )

    def _alarm(
        self,
        name: str,
        description: str,
        metric: cloudwatch.Metric,
        *,
        above: float = 0,
        below: float | None = None,
        periods: int = 1,
        breaching: int | None = None,
        does: Sequence[str] = (),
    ) -> None:
        """`breaching`: how many of the periods must, for the alarm to ring; None: all. `does`: what
        CloudWatch does then, beside telling.
        """
        alarm = cloudwatch.CfnAlarm(
            self,
            name,
            alarm_name=f"tidegate-{self._cluster}-{name}",
            alarm_description=f"Cluster {self._cluster}: {description}.",
            namespace=metric.namespace,
            metric_name=metric.metric_name,
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(name=key, value=str(value))
                for key, value in sorted((metric.dimensions or {}).items())
            ],
            statistic=metric.statistic,
            period=int(metric.period.to_seconds()),
            threshold=above if below is None else below,
            comparison_operator=("GreaterThanThreshold" if below is None else "LessThanThreshold"),
            evaluation_periods=periods,
            datapoints_to_alarm=breaching or periods,
            treat_missing_data="notBreaching",
            alarm_actions=[self.topic.topic_arn, *does],
            ok_actions=[self.topic.topic_arn],
        )
        self.arns.append(alarm.attr_arn)


def _check_of(instance_id: str, name: str) -> cloudwatch.Metric:
    """A stopped machine has none of these, and that is well."""
    return cloudwatch.Metric(
        namespace="AWS/EC2",
        metric_name=name,
        dimensions_map={"InstanceId": instance_id},
        statistic="Maximum",
        period=MINUTE,
    )
