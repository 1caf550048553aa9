"""Which actions on which resources IAM checks for a call, service by service.

Source of each rule: the Service Authorization Reference of the service ("Actions, resources,
and condition keys for ..."). A call that has no rule raises `NotModelledError`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from moto.secretsmanager.models import secretsmanager_backends

from local.iam import ec2_rules, kms_rules, s3_rules
from local.iam.patterns import NotModelledError
from local.iam.requests import Call, Check

type Rule = Callable[[Call], Iterator[Check]]


def checks_of(call: Call) -> Sequence[Check]:
    """All that must be allowed for the call; empty for what needs no permission at all."""
    if call.service == "s3":
        return s3_rules.checks_of(call)
    if call.service == "ec2":
        return ec2_rules.checks_of(call)
    rule = RULES.get(f"{call.service}:{call.name}")
    if rule is None:
        raise NotModelledError(f"{call.service}:{call.name}")
    return list(rule(call))


def _nothing(_: Call) -> Iterator[Check]:
    yield from ()


def _on_all(call: Call) -> Iterator[Check]:
    yield Check(f"{call.service}:{call.name}", "*")


def table_arn(call: Call, name: str) -> str:
    return name if name.startswith("arn:") else call.arn(f"table/{name}")


def _on_table(call: Call) -> Iterator[Check]:
    arn = table_arn(call, call.params["TableName"])
    index = call.params.get("IndexName")
    yield Check(f"dynamodb:{call.name}", f"{arn}/index/{index}" if index else arn)


def _on_tables(call: Call) -> Iterator[Check]:
    for name in call.params["RequestItems"]:
        yield Check(f"dynamodb:{call.name}", table_arn(call, name))


def _transaction(call: Call) -> Iterator[Check]:
    """DynamoDB developer guide, "IAM and transactions": the rights are those of the parts."""
    actions = {
        "ConditionCheck": "ConditionCheckItem",
        "Delete": "DeleteItem",
        "Get": "GetItem",
        "Put": "PutItem",
        "Update": "UpdateItem",
    }
    for item in call.params["TransactItems"]:
        for part, body in item.items():
            yield Check(f"dynamodb:{actions[part]}", table_arn(call, body["TableName"]))


def _on_queue(call: Call) -> Iterator[Check]:
    """SQS developer guide: a batch needs the permission of the single call."""
    name = call.params.get("QueueName") or call.params["QueueUrl"].rsplit("/", 1)[-1]
    yield Check(f"sqs:{call.name.removesuffix('Batch')}", call.arn(name))


def _on_buses(call: Call) -> Iterator[Check]:
    """All entries for a bus are one question, with the values of all of them."""
    by_bus: dict[str, list[Mapping[str, Any]]] = {}
    for entry in call.params["Entries"]:
        by_bus.setdefault(entry.get("EventBusName") or "default", []).append(entry)
    for bus, entries in by_bus.items():
        arn = bus if bus.startswith("arn:") else call.arn(f"event-bus/{bus}")
        context = {
            "events:source": tuple(each.get("Source", "") for each in entries),
            "events:detail-type": tuple(each.get("DetailType", "") for each in entries),
        }
        yield Check("events:PutEvents", arn, context)


def _on_secret(call: Call) -> Iterator[Check]:
    """A secret's ARN ends in six random characters, whichever way the call names it."""
    secret_id = call.params["SecretId"]
    secrets = secretsmanager_backends[call.account][call.region].secrets
    secret: Any = secrets.get(secret_id)
    if secret is None:
        arn = secret_id if secret_id.startswith("arn:") else call.arn(f"secret:{secret_id}")
        yield Check(f"secretsmanager:{call.name}", arn)
        return
    yield Check(f"secretsmanager:{call.name}", str(secret.arn))
    if secret.kms_key_id and call.name == "GetSecretValue":
        yield kms_rules.of_secret(call, secret.kms_key_id)


def parameter_arn(call: Call, name: str) -> str:
    """Public parameters (/aws/...) belong to no account."""
    if name.startswith("arn:"):
        return name
    owner = "" if name.startswith("/aws/") else None
    return call.arn(f"parameter/{name.removeprefix('/')}", service="ssm", account=owner)


def _on_parameters(call: Call) -> Iterator[Check]:
    params: Mapping[str, Any] = call.params
    for name in params.get("Names") or [params.get("Name") or params["Path"]]:
        yield Check(f"ssm:{call.name}", parameter_arn(call, name))


def _on_log_stream(call: Call) -> Iterator[Check]:
    group, stream = call.params["logGroupName"], call.params.get("logStreamName", "")
    yield Check(f"logs:{call.name}", call.arn(f"log-group:{group}:log-stream:{stream}"))


def _on_log_group(call: Call) -> Iterator[Check]:
    yield Check(f"logs:{call.name}", call.arn(f"log-group:{call.params['logGroupName']}:*"))


def _on_function(call: Call) -> Iterator[Check]:
    name = call.params["FunctionName"]
    arn = name if name.startswith("arn:") else call.arn(f"function:{name}")
    yield Check("lambda:InvokeFunction" if call.name == "Invoke" else f"lambda:{call.name}", arn)


def _on_topic(call: Call) -> Iterator[Check]:
    yield Check(f"sns:{call.name}", call.params["TopicArn"])


def _on_identity(call: Call) -> Iterator[Check]:
    """SES developer guide, "Controlling access to Amazon SES": ses:FromAddress is a condition."""
    sender = call.params["FromEmailAddress"]
    yield Check(f"ses:{call.name}", call.arn(f"identity/{sender}"), {"ses:FromAddress": (sender,)})


def _on_group(call: Call) -> Iterator[Check]:
    """Resource Groups API reference, ListGroupResources, "Minimum permissions": all four."""
    group = call.params["Group"]
    arn = group if group.startswith("arn:") else call.arn(f"group/{group}")
    yield Check(f"resource-groups:{call.name}", arn)
    yield Check("tag:GetResources", "*")
    for action in ("DescribeStacks", "ListStackResources"):
        yield Check(f"cloudformation:{action}", call.arn("stack/*/*", service="cloudformation"))


def _table(service: str, rule: Rule, *names: str) -> dict[str, Rule]:
    return {f"{service}:{name}": rule for name in names}


RULES: Mapping[str, Rule] = {
    **_table("dynamodb", _on_table, "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"),
    **_table("dynamodb", _on_table, "Scan", "DescribeTable", "DescribeTimeToLive"),
    **_table("dynamodb", _on_tables, "BatchGetItem", "BatchWriteItem"),
    **_table("dynamodb", _transaction, "TransactGetItems", "TransactWriteItems"),
    **_table("ses", _on_identity, "SendEmail"),
    **_table("ses", _on_all, "GetSuppressedDestination"),
    **_table("sns", _on_topic, "Publish"),
    **_table("sqs", _on_queue, "SendMessage", "SendMessageBatch", "ReceiveMessage"),
    **_table("sqs", _on_queue, "DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility"),
    **_table("sqs", _on_queue, "ChangeMessageVisibilityBatch", "GetQueueAttributes"),
    **_table("sqs", _on_queue, "GetQueueUrl", "PurgeQueue"),
    **_table("events", _on_buses, "PutEvents"),
    **_table("secretsmanager", _on_secret, "GetSecretValue", "DescribeSecret", "PutSecretValue"),
    **_table("ssm", _on_parameters, "GetParameter", "GetParameters", "GetParametersByPath"),
    **_table("logs", _on_log_stream, "CreateLogGroup", "CreateLogStream", "PutLogEvents"),
    **_table("logs", _on_log_group, "DescribeLogStreams"),
    **_table("logs", _on_all, "DescribeLogGroups"),
    **_table("pricing", _on_all, "GetProducts"),
    **_table("resource-groups", _on_group, "ListGroupResources"),
    **_table("cloudwatch", _on_all, "DescribeAlarms", "PutMetricData"),
    **_table("lambda", _on_function, "Invoke", "GetFunctionConfiguration"),
    # Always allowed, even against a deny: IAM user guide, GetCallerIdentity.
    **_table("sts", _nothing, "GetCallerIdentity"),
}
