"""Resource types without a model in moto's CloudFormation: over its backends where it has any."""

import json
from typing import Any

from moto.secretsmanager.utils import random_password

from local.shims.resource import Resource, register


class ScheduleGroup(Resource):
    type = "AWS::Scheduler::ScheduleGroup"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        scheduler = self.place.backend("scheduler")
        if self.name not in scheduler.schedule_groups:
            scheduler.create_schedule_group(self.name, properties.get("Tags", []))
        self.attributes["Arn"] = scheduler.schedule_groups[self.name].arn

    def remove(self) -> None:
        self.place.backend("scheduler").delete_schedule_group(self.name)


class Schedule(Resource):
    type = "AWS::Scheduler::Schedule"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        """Source: EventBridge Scheduler keeps the creation date of an updated schedule."""
        scheduler = self.place.backend("scheduler")
        self.name = self.name[:64]
        group = properties.get("GroupName", "default")
        asked = {
            "description": properties.get("Description"),
            "end_date": properties.get("EndDate"),
            "flexible_time_window": properties["FlexibleTimeWindow"],
            "group_name": group,
            "kms_key_arn": properties.get("KmsKeyArn"),
            "name": self.name,
            "schedule_expression": properties["ScheduleExpression"],
            "schedule_expression_timezone": properties.get("ScheduleExpressionTimezone"),
            "start_date": properties.get("StartDate"),
            "state": properties.get("State", "ENABLED"),
            "target": properties["Target"],
        }
        if getattr(self, "group", group) != group:
            self.remove()
        if self.name in scheduler.get_schedule_group(group).schedules:
            scheduler.update_schedule(**asked)
        else:
            scheduler.create_schedule(**asked, action_after_completion=None)
        self.group = group
        self.physical_id = self.name
        self.attributes["Arn"] = scheduler.get_schedule(group, self.name).arn

    def remove(self) -> None:
        # CloudFormation may have removed the group, and the schedules with it, before.
        group = self.place.backend("scheduler").schedule_groups.get(self.group)
        if group:
            group.schedules.pop(self.name, None)


class Secret(Resource):
    type = "AWS::SecretsManager::Secret"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        """The value is made once: an update must not change a key that machines already hold."""
        if "Id" in self.attributes:
            return
        backend = self.place.backend("secretsmanager")
        backend.create_secret(
            name=self.name,
            secret_string=_secret_string(properties),
            secret_binary=None,
            description=properties.get("Description"),
            tags=properties.get("Tags"),
            kms_key_id=properties.get("KmsKeyId"),
            client_request_token=None,
            replica_regions=[],
            force_overwrite=False,
        )
        self.physical_id = backend.describe_secret(self.name).arn
        self.attributes["Id"] = self.physical_id

    def remove(self) -> None:
        self.place.backend("secretsmanager").delete_secret(self.physical_id, None, True)


def _secret_string(properties: dict[str, Any]) -> str | None:
    """Source: CloudFormation reference, AWS::SecretsManager::Secret GenerateSecretString."""
    wanted = properties.get("GenerateSecretString")
    if wanted is None:
        text = properties.get("SecretString")
        return None if text is None else str(text)
    made = random_password(
        int(wanted.get("PasswordLength", 32)),
        wanted.get("ExcludeCharacters", ""),
        wanted.get("ExcludeNumbers", False),
        wanted.get("ExcludePunctuation", False),
        wanted.get("ExcludeUppercase", False),
        wanted.get("ExcludeLowercase", False),
        wanted.get("IncludeSpace", False),
        wanted.get("RequireEachIncludedType", True),
    )
    if "SecretStringTemplate" not in wanted:
        return made
    return json.dumps(
        {**json.loads(wanted["SecretStringTemplate"]), wanted["GenerateStringKey"]: made}
    )


class Alarm(Resource):
    type = "AWS::CloudWatch::Alarm"
    name_property = "AlarmName"

    def put(self, properties: dict[str, Any]) -> None:
        alarm = self.place.backend("cloudwatch").put_metric_alarm(
            name=self.name,
            namespace=properties.get("Namespace"),
            metric_name=properties.get("MetricName"),
            comparison_operator=properties["ComparisonOperator"],
            evaluation_periods=int(properties["EvaluationPeriods"]),
            datapoints_to_alarm=properties.get("DatapointsToAlarm"),
            period=properties.get("Period"),
            threshold=float(properties.get("Threshold", 0)),
            statistic=properties.get("Statistic"),
            extended_statistic=properties.get("ExtendedStatistic"),
            description=properties.get("AlarmDescription"),
            dimensions=properties.get("Dimensions", []),
            alarm_actions=properties.get("AlarmActions", []),
            ok_actions=properties.get("OKActions", []),
            treat_missing_data=properties.get("TreatMissingData"),
        )
        self.attributes["Arn"] = alarm.alarm_arn

    def remove(self) -> None:
        self.place.backend("cloudwatch").delete_alarms([self.name])


class CompositeAlarm(Resource):
    type = "AWS::CloudWatch::CompositeAlarm"
    name_property = "AlarmName"


class HostedZone(Resource):
    """moto's own makes every zone public and forgets its VPCs."""

    type = "AWS::Route53::HostedZone"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        if "Id" in self.attributes:
            return
        route53, vpcs = self.place.backend("route53"), properties.get("VPCs", [])
        name = self.name if self.name.endswith(".") else f"{self.name}."
        zone = route53.create_hosted_zone(name, private_zone=bool(vpcs))
        for vpc in vpcs:
            zone.add_vpc(vpc["VPCId"], vpc["VPCRegion"])
        self.physical_id = zone.resource_id
        self.attributes |= {"Id": zone.resource_id, "NameServers": []}

    def remove(self) -> None:
        self.place.backend("route53").delete_hosted_zone(self.physical_id)


class RecordSet(Resource):
    """moto's own leaves the old record behind when its value changes."""

    type = "AWS::Route53::RecordSet"
    name_property = "Name"

    def put(self, properties: dict[str, Any]) -> None:
        self.zone_id = properties.get("HostedZoneId", "")
        name = self.name if self.name.endswith(".") else f"{self.name}."
        self.record = {**properties, "Name": name}
        self._zone(properties).upsert_rrset(self.record)

    def remove(self) -> None:
        zones = self.place.backend("route53").zones
        if self.zone_id in zones:
            zones[self.zone_id].delete_rrset(self.record)

    def _zone(self, properties: dict[str, Any]) -> Any:
        route53 = self.place.backend("route53")
        if self.zone_id:
            return route53.get_hosted_zone(self.zone_id)
        return route53.get_hosted_zone_by_name(properties["HostedZoneName"])


class TopicPolicy(Resource):
    type = "AWS::SNS::TopicPolicy"

    def put(self, properties: dict[str, Any]) -> None:
        policy = json.dumps(properties["PolicyDocument"])
        for arn in properties["Topics"]:
            self.place.backend("sns").topics[arn].policy = policy


class Subscription(Resource):
    type = "AWS::SNS::Subscription"

    def put(self, properties: dict[str, Any]) -> None:
        made = self.place.backend("sns").subscribe(
            properties["TopicArn"], properties.get("Endpoint", ""), properties["Protocol"]
        )
        self.physical_id = made.arn

    def remove(self) -> None:
        self.place.backend("sns").unsubscribe(self.physical_id)


class BucketPolicy(Resource):
    """Not put: moto enforces bucket policies without their conditions, so "deny what is not TLS"
    would deny everything.
    """

    type = "AWS::S3::BucketPolicy"


class QueuePolicy(Resource):
    type = "AWS::SQS::QueuePolicy"

    def put(self, properties: dict[str, Any]) -> None:
        self.queues = [url.rsplit("/", 1)[-1] for url in properties["Queues"]]
        policy = json.dumps(properties["PolicyDocument"])
        for name in self.queues:
            self.place.backend("sqs").get_queue(name).policy = policy
        self.attributes["Id"] = self.name

    def remove(self) -> None:
        queues = self.place.backend("sqs").queues
        for name in self.queues:
            if name in queues:
                queues[name].policy = None


class InstanceConnectEndpoint(Resource):
    """Nobody comes through it here: what its group may reach is said by rules of their own."""

    type = "AWS::EC2::InstanceConnectEndpoint"


class Metadata(Resource):
    """What the CDK notes about itself."""

    type = "AWS::CDK::Metadata"


class MetricFilter(Resource):
    type = "AWS::Logs::MetricFilter"


class SecretPolicy(Resource):
    type = "AWS::SecretsManager::ResourcePolicy"


class Budget(Resource):
    type = "AWS::Budgets::Budget"


class BackupVault(Resource):
    type = "AWS::Backup::BackupVault"
    name_property = "BackupVaultName"


class BackupPlan(Resource):
    type = "AWS::Backup::BackupPlan"


class BackupSelection(Resource):
    type = "AWS::Backup::BackupSelection"


def install() -> None:
    register(
        (
            *(ScheduleGroup, Schedule, Secret, Alarm, CompositeAlarm, HostedZone, RecordSet),
            *(TopicPolicy, Subscription, BucketPolicy, QueuePolicy),
            *(Metadata, MetricFilter, SecretPolicy, Budget),
            *(BackupVault, BackupPlan, BackupSelection, InstanceConnectEndpoint),
        )
    )
