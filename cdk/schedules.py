"""What happens by the clock: the cluster's hours, and a look around every five minutes."""

import json

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from cdk import statements
from cdk.functions import Functions
from cdk.queues import Queues
from tidegate.wire.calendar import Schedules
from tidegate.wire.config import ClusterFile
from tidegate.wire.cron import scheduler_expression

# EventBridge Scheduler's words; it puts the moment in when the schedule fires.
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"

RECONCILE = "rate(5 minutes)"
REPORT = "rate(30 minutes)"

# The functions ask the calendar, so a late event is harmless, but pointless once the next
# reconcile has come.
MAX_AGE_S = 300
MAX_RETRIES = 3


class Hours(Construct):
    """A schedule group of the cluster's own, and a role that may start these functions only."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        functions: Functions,
        queues: Queues,
    ) -> None:
        super().__init__(scope, id)
        cluster = file.cluster.name
        self._group = scheduler.CfnScheduleGroup(self, "Group", name=f"tidegate-{cluster}")
        self._dead = queues.dead.queue_arn
        report = functions.report
        invoked = [functions.reconcile, functions.schedule, *([report] if report else [])]
        self._role = self._invoking(invoked)
        self._schedule("Reconcile", functions.reconcile, RECONCILE, {})
        if report:
            self._schedule("Report", report, REPORT, {})
        if file.schedules:
            self._keep(file.schedules, functions.schedule)

    def _keep(self, schedules: Schedules, function: lambda_.Function) -> None:
        for number, window in enumerate(schedules.windows, start=1):
            for name, cron in (("stop", window.stop), ("start", window.start)):
                self._schedule(
                    f"{name.capitalize()}{number if number > 1 else ''}",
                    function,
                    scheduler_expression(cron),
                    {"schedule": name, "at": SCHEDULED_TIME},
                    time_zone=schedules.time_zone,
                )

    def _invoking(self, functions: list[lambda_.Function]) -> iam.Role:
        return statements.role(
            self,
            "Role",
            service="scheduler",
            statements=[
                statements.statement(
                    "Invoke",
                    ["lambda:InvokeFunction"],
                    [function.function_arn for function in functions],
                ),
                statements.send("Undelivered", self._dead),
            ],
            # Nobody else's schedules: "confused deputy" in the user guide of Scheduler.
            trust={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
        )

    def _schedule(
        self,
        id: str,
        function: lambda_.Function,
        expression: str,
        told: dict[str, str],
        *,
        time_zone: str | None = None,
    ) -> None:
        schedule = scheduler.CfnSchedule
        made = schedule(
            self,
            id,
            group_name=self._group.ref,
            schedule_expression=expression,
            schedule_expression_timezone=time_zone,
            flexible_time_window=schedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=schedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps(told),
                retry_policy=schedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=MAX_AGE_S, maximum_retry_attempts=MAX_RETRIES
                ),
                dead_letter_config=schedule.DeadLetterConfigProperty(arn=self._dead),
            ),
        )
        made.node.add_dependency(self._group)
