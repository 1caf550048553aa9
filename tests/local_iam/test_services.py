"""Requests signed as a role are held to the policies of that role, in each service's words."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest

from local.clients import REGION
from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from local.iam.authorizer import Authorizer
from tests.local_iam.conftest import ACCOUNT, As, allow, deny, refused
from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.errors import NotAuthorized

TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table"
ITEM = {"pk": {"S": "a"}, "sk": {"S": "b"}}


def queue_arn(url: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{url.rsplit('/', 1)[-1]}"


def test_a_granted_call_passes_and_a_call_that_is_not_granted_does_not(
    role: As, names: CloudNames
) -> None:
    role.may(allow("dynamodb:PutItem", f"{TABLE}/{names.table}"))

    role.client("dynamodb").put_item(TableName=names.table, Item=ITEM)

    code, status, message = refused(
        role.client("dynamodb").get_item, TableName=names.table, Key=ITEM
    )
    assert (code, status) == ("AccessDeniedException", 400)
    assert message == (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{role.name}/test is not authorized to "
        f"perform: dynamodb:GetItem on resource: {TABLE}/{names.table} because no "
        "identity-based policy allows the dynamodb:GetItem action"
    )


def test_a_right_on_another_resource_does_not_help(role: As, names: CloudNames) -> None:
    role.may(allow("dynamodb:PutItem", f"{TABLE}/other"))

    code, _, _ = refused(role.client("dynamodb").put_item, TableName=names.table, Item=ITEM)

    assert code == "AccessDeniedException"


def test_an_explicit_deny_wins(role: As, names: CloudNames) -> None:
    role.may(allow("*", "*"), deny("dynamodb:Put*", "*", Sid="NoWriting"))

    _, _, message = refused(role.client("dynamodb").put_item, TableName=names.table, Item=ITEM)

    assert message.endswith("with an explicit deny in an identity-based policy (inline/NoWriting)")
    role.client("dynamodb").get_item(TableName=names.table, Key=ITEM)


def test_a_right_taken_away_is_gone_at_the_next_call(role: As, names: CloudNames) -> None:
    role.may(allow("dynamodb:PutItem", "*"))
    role.client("dynamodb").put_item(TableName=names.table, Item=ITEM)

    role.may(allow("dynamodb:GetItem", "*"))

    refused(role.client("dynamodb").put_item, TableName=names.table, Item=ITEM)


def test_a_thread_does_not_escape(role: As, names: CloudNames) -> None:
    role.may(allow("dynamodb:PutItem", "*"))
    client = role.client("dynamodb")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(client.put_item, TableName=names.table, Item=ITEM).result()
        code, _, _ = pool.submit(refused, client.get_item, TableName=names.table, Key=ITEM).result()

    assert code == "AccessDeniedException"


def written(names: CloudNames) -> list[dict[str, Any]]:
    table = {"TableName": names.table}
    return [
        {"Put": {**table, "Item": ITEM}},
        {
            "ConditionCheck": {
                **table,
                "Key": {"pk": {"S": "x"}, "sk": {"S": "y"}},
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]


def test_a_transaction_needs_the_right_of_each_part(role: As, names: CloudNames) -> None:
    transact = role.client("dynamodb").transact_write_items
    role.may(allow(["dynamodb:PutItem", "dynamodb:ConditionCheckItem"], "*"))
    transact(TransactItems=written(names))

    role.may(allow(["dynamodb:PutItem", "dynamodb:TransactWriteItems"], "*"))

    code, _, message = refused(transact, TransactItems=written(names))
    assert code == "AccessDeniedException"
    assert "dynamodb:ConditionCheckItem" in message


def test_a_query_of_an_index_needs_the_index(role: As, names: CloudNames) -> None:
    role.may(allow("dynamodb:Query", f"{TABLE}/{names.table}"))

    _, _, message = refused(
        role.client("dynamodb").query,
        TableName=names.table,
        IndexName="by-state",
        KeyConditionExpression="pk = :a",
        ExpressionAttributeValues={":a": {"S": "a"}},
    )

    assert f"{TABLE}/{names.table}/index/by-state" in message


def test_queues_are_told_apart_and_a_batch_needs_the_single_right(
    role: As, names: CloudNames
) -> None:
    sqs = role.client("sqs")
    role.may(allow("sqs:SendMessage", queue_arn(names.urgent_queue_url)))
    entries = [{"Id": "1", "MessageBody": "x"}]

    sqs.send_message_batch(QueueUrl=names.urgent_queue_url, Entries=entries)

    code, _, message = refused(sqs.send_message, QueueUrl=names.routine_queue_url, MessageBody="x")
    assert code == "AccessDenied"
    assert queue_arn(names.routine_queue_url) in message
    refused(sqs.receive_message, QueueUrl=names.urgent_queue_url)


def put(bus: str, source: str) -> dict[str, Any]:
    entry = {"EventBusName": bus, "Source": source, "DetailType": "Tidegate Digest", "Detail": "{}"}
    return {"Entries": [entry]}


def test_a_condition_on_the_source_of_events_is_met_by_all_of_them_or_not(
    role: As, names: CloudNames
) -> None:
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{names.event_bus}"
    condition = {
        "ForAllValues:StringEquals": {"events:source": "tidegate.agent"},
        "Null": {"events:source": "false"},
    }
    role.may(allow("events:PutEvents", bus, Condition=condition))
    events = role.client("events")
    ours, other = put(names.event_bus, "tidegate.agent"), put(names.event_bus, "someone.else")

    events.put_events(**ours)

    assert refused(events.put_events, **other)[0] == "AccessDeniedException"
    refused(events.put_events, Entries=[*ours["Entries"], *other["Entries"]])
    refused(events.put_events, **put("default", "tidegate.agent"))


def test_a_key_of_many_values_wants_an_operator_for_them(role: As, names: CloudNames) -> None:
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{names.event_bus}"
    condition = {"StringEquals": {"events:source": "tidegate.agent"}}
    role.may(allow("events:PutEvents", bus, Condition=condition))

    _, _, message = refused(
        role.client("events").put_events, **put(names.event_bus, "tidegate.agent")
    )
    assert "StringEquals on events:source, which may have several values" in message


def test_a_secret_is_meant_by_its_whole_arn_whichever_way_it_is_named(
    role: As, cloud: LocalCloud, names: CloudNames
) -> None:
    secrets = role.client("secretsmanager")
    described = cloud.client("secretsmanager").describe_secret(SecretId=names.munge_secret)
    role.may(allow("secretsmanager:GetSecretValue", described["ARN"]))

    for name in (names.munge_secret, described["ARN"]):
        secrets.get_secret_value(SecretId=name)

    other = cloud.client("secretsmanager").create_secret(
        Name=f"{names.cluster}/other", SecretString="x"
    )
    assert refused(secrets.get_secret_value, SecretId=other["ARN"])[0] == "AccessDeniedException"


def test_a_missing_object_is_missing_only_to_who_may_list(role: As, names: CloudNames) -> None:
    s3, there = role.client("s3"), {"Bucket": names.bucket, "Key": "digest/a"}
    objects, bucket = f"arn:aws:s3:::{names.bucket}/digest/*", f"arn:aws:s3:::{names.bucket}"

    role.may(allow("s3:GetObject", objects))
    assert refused(s3.get_object, **there)[:2] == ("AccessDenied", 403)
    assert refused(s3.head_object, **there)[:2] == ("403", 403)

    role.may(allow("s3:GetObject", objects), allow("s3:ListBucket", bucket))
    assert refused(s3.get_object, **there)[:2] == ("NoSuchKey", 404)
    assert refused(s3.head_object, **there)[:2] == ("404", 404)


def test_objects_are_granted_by_their_prefix(role: As, names: CloudNames) -> None:
    s3 = role.client("s3")
    role.may(allow(["s3:GetObject", "s3:PutObject"], f"arn:aws:s3:::{names.bucket}/digest/*"))

    s3.put_object(Bucket=names.bucket, Key="digest/a", Body=b"x")

    assert s3.get_object(Bucket=names.bucket, Key="digest/a")["Body"].read() == b"x"
    refused(s3.put_object, Bucket=names.bucket, Key="other/a", Body=b"x")
    refused(s3.delete_object, Bucket=names.bucket, Key="digest/a")


def test_a_listing_may_be_bound_to_a_prefix(role: As, names: CloudNames) -> None:
    s3 = role.client("s3")
    condition = {"StringLike": {"s3:prefix": "digest/*"}}
    role.may(allow("s3:ListBucket", f"arn:aws:s3:::{names.bucket}", Condition=condition))

    s3.list_objects_v2(Bucket=names.bucket, Prefix="digest/a")

    refused(s3.list_objects_v2, Bucket=names.bucket)


def test_a_function_is_invoked_by_who_may(role: As) -> None:
    role.may(allow("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:other"))

    code, status, message = refused(role.client("lambda").invoke, FunctionName="planner")

    assert (code, status) == ("AccessDeniedException", 403)
    assert f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:planner" in message


def test_log_streams_are_those_of_the_granted_group(role: As, cloud: LocalCloud) -> None:
    group = f"/tidegate/{role.name}"
    cloud.client("logs").create_log_group(logGroupName=group)
    role.may(allow("logs:CreateLogStream", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*"))
    logs = role.client("logs")

    logs.create_log_stream(logGroupName=group, logStreamName="s")

    refused(logs.create_log_stream, logGroupName="/other", logStreamName="s")


def test_who_am_i_needs_no_right(role: As) -> None:
    caller = role.client("sts").get_caller_identity()

    assert caller["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{role.name}/test"


def test_to_list_a_group_takes_rights_to_what_groups_are_made_of(
    role: As, cloud: LocalCloud
) -> None:
    group = f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/gpus"
    cloud.blocks.groups[group] = []
    listing = allow("resource-groups:ListGroupResources", group)
    stacks = ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"]
    role.may(listing)

    refused(role.client("resource-groups").list_group_resources, Group=group)

    every_stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/*/*"
    role.may(listing, allow("tag:GetResources", "*"), allow(stacks, every_stack))
    assert role.client("resource-groups").list_group_resources(Group=group)["Resources"] == []


def test_a_managed_policy_of_aws_counts(role: As, cloud: LocalCloud) -> None:
    cloud.client("iam").attach_role_policy(
        RoleName=role.name, PolicyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    )

    role.client("ssm").get_parameters(Names=["/tidegate/none"])

    refused(role.client("ssm").get_parameters_by_path, Path="/tidegate")


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "code"),
    [
        ("ec2", "describe_instances", {}, "AuthFailure"),
        ("sts", "get_caller_identity", {}, "InvalidClientTokenId"),
        ("sqs", "get_queue_url", {"QueueName": "x"}, "InvalidClientTokenId"),
        ("dynamodb", "describe_table", {"TableName": "x"}, "UnrecognizedClientException"),
        ("lambda", "invoke", {"FunctionName": "x"}, "UnrecognizedClientException"),
        ("s3", "list_objects_v2", {"Bucket": "x"}, "InvalidAccessKeyId"),
    ],
)
def test_a_key_that_nobody_gave_out_is_refused(
    cloud: LocalCloud, service: str, operation: str, arguments: dict[str, Any], code: str
) -> None:
    make: Any = boto3.Session("AKIAUNKNOWN", "x", region_name=REGION).client
    stranger = make(service, endpoint_url=cloud.endpoint_url)

    assert refused(getattr(stranger, operation), **arguments)[0] == code


def test_a_session_key_with_another_token_is_refused(role: As, cloud: LocalCloud) -> None:
    role.may(allow("*", "*"))
    key = role.client("sts")._request_signer._credentials.access_key
    make: Any = boto3.Session(key, "x", "another token", region_name=REGION).client

    code, _, _ = refused(make("sts", endpoint_url=cloud.endpoint_url).get_caller_identity)

    assert code == "InvalidClientTokenId"


def test_what_has_no_rule_is_refused_and_said(role: As, authorizer: Authorizer) -> None:
    role.may(allow("*", "*"))

    code, _, message = refused(role.client("dynamodb").list_tables)

    assert code == "AccessDeniedException"
    assert message == "unknown to the evaluator: dynamodb:ListTables"
    assert authorizer.log.not_modelled == ["dynamodb:ListTables"]


def test_a_condition_that_is_not_modelled_is_refused_and_said(
    role: As, names: CloudNames, authorizer: Authorizer
) -> None:
    condition = {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}
    role.may(allow("dynamodb:PutItem", "*", Condition=condition))

    _, _, message = refused(role.client("dynamodb").put_item, TableName=names.table, Item=ITEM)

    assert message == "unknown to the evaluator: condition key aws:sourceip"
    assert authorizer.log.not_modelled == ["condition key aws:sourceip"]


def test_the_adapters_see_not_authorized(role: As, names: CloudNames) -> None:
    calls = [
        lambda: role.client("dynamodb").put_item(TableName=names.table, Item=ITEM),
        lambda: role.client("sqs").receive_message(QueueUrl=names.urgent_queue_url),
        lambda: role.client("s3").get_object(Bucket=names.bucket, Key="x"),
        lambda: role.client("events").put_events(**put("default", "x")),
        lambda: role.client("ec2").describe_instances(),
        lambda: role.client("secretsmanager").get_secret_value(SecretId=names.munge_secret),
    ]
    for call in calls:
        with pytest.raises(NotAuthorized), aws_call():
            call()


def test_the_log_names_what_was_used_and_what_was_not(
    role: As, names: CloudNames, authorizer: Authorizer
) -> None:
    role.may(allow(["dynamodb:PutItem", "dynamodb:GetItem"], "*"), allow("sqs:*", "*", Sid="Q"))

    role.client("dynamodb").put_item(TableName=names.table, Item=ITEM)
    refused(role.client("events").put_events, **put("default", "x"))

    assert [(one.action, one.decision.statements) for one in authorizer.log.used] == [
        ("dynamodb:PutItem", ("inline/0",))
    ]
    assert [one.action for one in authorizer.log.denied] == ["events:PutEvents"]
    unused = authorizer.unused_grants(role.role_arn)
    assert [(grant.statement, grant.action) for grant in unused] == [
        ("inline/0", "dynamodb:GetItem"),
        ("inline/Q", "sqs:*"),
    ]


def test_a_long_poll_lets_others_pass(role: As, names: CloudNames) -> None:
    role.may(allow("*", "*"))
    sqs, dynamodb = role.client("sqs"), role.client("dynamodb")

    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(sqs.receive_message, QueueUrl=names.urgent_queue_url, WaitTimeSeconds=2)
        dynamodb.put_item(TableName=names.table, Item=ITEM)
        assert not poll.done()

    assert poll.result().get("Messages", []) == []
