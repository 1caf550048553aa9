"""A small stack of the product's shape, as a synthesized assembly: one of each that matters."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

ACCOUNT = "123456789012"
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"

HANDLERS = """
import json, os, time

def note(event, context):
    print(json.dumps({
        "function": context.function_name, "note": os.environ.get("NOTE"), "pid": os.getpid(),
        "time": time.time(), "remaining_ms": context.get_remaining_time_in_millis(),
        "environment": sorted(os.environ), "event": event,
    }))
    failed = []
    for record in event.get("Records", []):
        body = json.loads(record["body"])
        obey(body.get("detail", body))
        if body.get("do") == "fail":
            failed.append({"itemIdentifier": record["messageId"]})
    obey(event.get("detail", event))
    return {"batchItemFailures": failed}

def obey(order):
    if order.get("do") == "raise":
        raise RuntimeError("asked to")
    if order.get("do") == "sleep":
        time.sleep(order["for_s"])
    if order.get("do") == "die":
        os._exit(3)
    if order.get("do") == "wait":
        open(order["for_file"] + ".awaited", "w").close()
        while not os.path.exists(order["for_file"]):
            time.sleep(0.02)
"""


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str = "Arn") -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def statement(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def role(service: str, *statements: dict[str, Any]) -> dict[str, Any]:
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": f"{service}.amazonaws.com"},
    }
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": document(trust),
            "Policies": [{"PolicyName": "default", "PolicyDocument": document(*statements)}],
        },
    }


def function(note: str, role_name: str = "FunctionRole", **more: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Runtime": "python3.13",
            "Architectures": ["arm64"],
            "Handler": "handlers.note",
            "Code": {"S3Bucket": {"Fn::Sub": BUCKET}, "S3Key": "code.zip"},
            "Role": att(role_name),
            "Timeout": 5,
            "MemorySize": 256,
            "Environment": {"Variables": {"NOTE": note}},
            **more,
        },
    }


def permission(function_name: str, rule_name: str) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "FunctionName": att(function_name),
            "Action": "lambda:InvokeFunction",
            "Principal": "events.amazonaws.com",
            "SourceArn": att(rule_name),
        },
    }


def queue_policy(queue: str, rule_name: str) -> dict[str, Any]:
    allowed = statement(
        "sqs:SendMessage",
        att(queue),
        Principal={"Service": "events.amazonaws.com"},
        Condition={"ArnEquals": {"aws:SourceArn": att(rule_name)}},
    )
    return {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": [ref(queue)], "PolicyDocument": document(allowed)},
    }


def schedule(expression: str, zone: str, function_name: str = "Async") -> dict[str, Any]:
    timed = json.dumps(
        {"at": "<aws.scheduler.scheduled-time>", "id": "<aws.scheduler.execution-id>"}
    )
    return {
        "Type": "AWS::Scheduler::Schedule",
        "Properties": {
            "GroupName": ref("Group"),
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": zone,
            "Target": {
                "Arn": att(function_name),
                "RoleArn": att("SchedulerRole"),
                "Input": timed,
            },
        },
    }


def rule(pattern: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    return {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "EventBusName": ref("Bus"),
            "EventPattern": pattern,
            "State": "ENABLED",
            "Targets": [target],
        },
    }


def template() -> dict[str, Any]:
    """A custom bus with a rule to a FIFO queue and its function, and a rule to a function."""
    resources = {
        "Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": ref("AWS::StackName")}},
        "Group": {
            "Type": "AWS::Scheduler::ScheduleGroup",
            "Properties": {"Name": ref("AWS::StackName")},
        },
        "SchedulerRole": role("scheduler", statement("lambda:InvokeFunction", att("Async"))),
        **planner_by_queue(),
        **function_by_rule(),
    }
    return deepcopy({"Resources": resources, "Outputs": {"LooksUrl": {"Value": ref("Looks")}}})


def planner_by_queue() -> dict[str, Any]:
    consume = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    looks = {
        "FifoQueue": True,
        "ContentBasedDeduplication": True,
        "VisibilityTimeout": 120,
        "RedrivePolicy": {"deadLetterTargetArn": att("DeadLooks"), "maxReceiveCount": 2},
    }
    mapping = {
        "EventSourceArn": att("Looks"),
        "FunctionName": ref("Planner"),
        "BatchSize": 10,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
    }
    grouped = {"Id": "looks", "Arn": att("Looks"), "SqsParameters": {"MessageGroupId": "dev"}}
    return {
        "DeadLooks": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}},
        "Looks": {"Type": "AWS::SQS::Queue", "Properties": looks},
        "LooksPolicy": queue_policy("Looks", "Digest"),
        "Digest": rule({"source": ["tidegate.agent"]}, grouped),
        "FunctionRole": role(
            "lambda",
            statement(consume, att("Looks")),
            statement("sqs:SendMessage", att("Dead")),
        ),
        "Planner": function("planner"),
        "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }


def function_by_rule() -> dict[str, Any]:
    target = {"Id": "async", "Arn": att("Async"), "DeadLetterConfig": {"Arn": att("Dead")}}
    return {
        "Dead": {"Type": "AWS::SQS::Queue"},
        "DeadPolicy": queue_policy("Dead", "Spot"),
        "Async": function("async", DeadLetterConfig={"TargetArn": att("Dead")}),
        "Spot": rule({"source": ["test.ec2"]}, target),
        "SpotMayInvoke": permission("Async", "Spot"),
    }


def assembly(folder: Path, stack_name: str, made: dict[str, Any], handlers: str = HANDLERS) -> Path:
    """What `cdk synth` would leave in `folder`."""
    code = folder / "asset.code"
    code.mkdir(parents=True, exist_ok=True)
    (code / "handlers.py").write_text(handlers)
    destination = {
        "bucketName": BUCKET.replace("us-east-1", "${AWS::Region}"),
        "objectKey": "code.zip",
    }
    file = {
        "source": {"path": "asset.code", "packaging": "zip"},
        "destinations": {"current": destination},
    }
    (folder / f"{stack_name}.assets.json").write_text(json.dumps({"files": {"code": file}}))
    (folder / f"{stack_name}.template.json").write_text(json.dumps(made))
    return folder
