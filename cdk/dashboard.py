"""One dashboard: the cluster's alarms, then queue, capacity, purchases, losses, money, machinery.

Deployed with `metrics: full` only: most of what it shows has no metric otherwise, and a dashboard
costs 3 USD a month beyond an account's first three.
"""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cdk.functions import Functions
from cdk.queues import Queues
from tidegate.wire.config import ClusterFile
from tidegate.wire.metrics import NAMESPACE, SERVICE
from userdata.render import NODE_STAGES

FIVE_MINUTES = Duration.minutes(5)
THIRD, HEIGHT = 8, 6

# Title -> statistic and metrics of the cluster, three beside each other.
GRAPHS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Jobs", "Maximum", ("RunningJobs", "StartingJobs", "UnmetJobs")),
    ("Wait of jobs that may start, s", "Maximum", ("LongestWait", "MedianWait")),
    ("GPUs", "Maximum", ("GpusConfigured", "GpusUsable", "GpusBusy")),
    ("Percent used", "Maximum", ("GpuUse", "LimitUsed", "BudgetUsed")),
    ("Nodes", "Sum", ("Launched", "Terminated")),
    (
        "Refused by EC2",
        "Sum",
        ("RefusedCapacity", "RefusedQuota", "RefusedSubnet", "RefusedOther"),
    ),
    ("Boot: longest, s", "Maximum", ("BootTime",)),
    ("Interruptions", "Sum", ("Interrupted", "SavedJobs", "LostGpuHours")),
    ("Trouble", "Sum", ("BootFailed", "LookFailed", "BadEvents")),
    ("Lost nodes", "Maximum", ("LostNodes",)),
    ("USD per hour", "Maximum", ("UsdPerHour",)),
    ("Seconds since the head was heard", "Maximum", ("DigestAge",)),
)

# Where the cluster file has `notifications.owners`.
MAILS = ("Mails to owners of jobs", "Sum", ("MailsSent", "MailsNotSent"))


class Dashboard(Construct):
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        alarm_arns: Sequence[str],
        functions: Functions,
        queues: Queues,
    ) -> None:
        super().__init__(scope, id)
        self._cluster = cluster = file.cluster.name
        has_mails = bool(file.notifications and file.notifications.owners)
        drawn = (*GRAPHS, MAILS) if has_mails else GRAPHS
        graphs: list[cloudwatch.IWidget] = [self._graph(*each) for each in drawn]
        graphs += [_boots(cluster), _machinery(functions, queues)]
        rows = [graphs[start : start + 3] for start in range(0, len(graphs), 3)]
        alarms = cloudwatch.AlarmStatusWidget(
            title="Alarms",
            width=3 * THIRD,
            height=4,
            alarms=[
                cloudwatch.Alarm.from_alarm_arn(self, f"Alarm{number}", arn)
                for number, arn in enumerate(alarm_arns)
            ],
        )
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=f"tidegate-{cluster}",
            widgets=[[alarms], *rows],
        )

    def _graph(self, title: str, statistic: str, names: Sequence[str]) -> cloudwatch.GraphWidget:
        return cloudwatch.GraphWidget(
            title=title,
            width=THIRD,
            height=HEIGHT,
            left=[self._metric(name, statistic) for name in names],
        )

    def _metric(self, name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"cluster": self._cluster, "service": SERVICE},
            statistic=statistic,
            period=FIVE_MINUTES,
            label=name,
        )


def _boots(cluster: str) -> cloudwatch.LogQueryWidget:
    """From the records of boots, which nodes send: as metrics they would cost 0.30 USD each."""
    stages = [each.rpartition("/")[2] for each in NODE_STAGES]
    means = ", ".join(f"avg(boot.stages.{each}) as {each}_s" for each in stages)
    return cloudwatch.LogQueryWidget(
        title="Boot by stage: mean, s",
        width=THIRD,
        height=HEIGHT,
        log_group_names=[f"/tidegate/{cluster}/interruption"],
        query_lines=[
            "filter ispresent(boot.s) and boot.plan_id != ''",
            f"stats {means}, avg(boot.s) as all_s by bin(1h)",
        ],
        view=cloudwatch.LogQueryVisualizationType.LINE,
    )


def _machinery(functions: Functions, queues: Queues) -> cloudwatch.GraphWidget:
    """What nobody could handle, and functions that fail."""
    dead = [
        queue.metric_approximate_number_of_messages_visible(
            period=FIVE_MINUTES, statistic="Maximum", label=f"waits in {name}"
        )
        for name, queue in (("Dead", queues.dead), ("DeadLooks", queues.dead_looks))
    ]
    failed = [
        function.metric_errors(period=FIVE_MINUTES, label=f"{name} fails")
        for name, function in functions.all.items()
    ]
    return cloudwatch.GraphWidget(
        title="Dead letters and failures", width=THIRD, height=HEIGHT, left=[*dead, *failed]
    )
