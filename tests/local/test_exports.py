"""An export that another stack uses can neither change nor go, as on AWS."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.cloud import LocalCloud
from local.shims.install import install_shims

NUMBERS = count(1)


def exporting(queue: str, export: str = "") -> str:
    output = {"Value": {"Fn::GetAtt": ["Queue", "QueueName"]}, "Export": {"Name": export}}
    made = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": queue}}
    outputs = {"Outputs": {"Name": output}} if export else {}
    return json.dumps({"Resources": {"Queue": made}, **outputs})


@pytest.fixture
def formation(cloud: LocalCloud) -> Iterator[tuple[Any, str]]:
    """CloudFormation with a stack that exports a queue's name, and one that uses it; the export."""
    install_shims()
    asked, name = cloud.observer("cloudformation"), f"export{next(NUMBERS)}"
    value = {"Value": {"Fn::ImportValue": name}, "Type": "String", "Name": name}
    user = {"Resources": {"Note": {"Type": "AWS::SSM::Parameter", "Properties": value}}}
    asked.create_stack(StackName=f"{name}-kept", TemplateBody=exporting("one", name))
    asked.create_stack(StackName=name, TemplateBody=json.dumps(user))
    yield asked, name
    asked.delete_stack(StackName=name)
    asked.delete_stack(StackName=f"{name}-kept")


def test_an_export_in_use_cannot_change(formation):
    asked, name = formation
    with pytest.raises(ClientError, match=f"{name} cannot be updated as it is in use by {name}"):
        asked.update_stack(StackName=f"{name}-kept", TemplateBody=exporting("two", name))


def test_an_export_in_use_cannot_go(formation):
    asked, name = formation
    with pytest.raises(ClientError, match=f"{name} cannot be deleted as it is in use by {name}"):
        asked.update_stack(StackName=f"{name}-kept", TemplateBody=exporting("one"))


def test_an_export_that_nobody_uses_any_more_may_change(formation):
    asked, name = formation
    asked.delete_stack(StackName=name)
    asked.update_stack(StackName=f"{name}-kept", TemplateBody=exporting("two", name))
