"""How a stack ends, by change sets and by updates, and what it takes afterwards."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.core import responses

from local.cloud import LocalCloud
from local.shims import costs
from local.shims.install import install_shims
from tests.local.stack import ref

NUMBERS = count(1)
PARAMETER = "/number/of-seconds"
# Made after the queue, and refused.
BROKEN = {
    "Type": "AWS::EFS::MountTarget",
    "DependsOn": ["Queue"],
    "Properties": {"FileSystemId": "fs-00000000", "SubnetId": "subnet-00000000"},
}


def queue(timeout_s: int) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": timeout_s}}


class Formation:
    """A stack of one queue, put by change sets, whose name is the same for all stacks."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.client: Any = cloud.client("cloudformation")
        self.sqs: Any = cloud.client("sqs")
        self.name = f"changed{next(NUMBERS)}"

    def propose(self, kind: str, parameters: Any = None, **resources: Any) -> str:
        output = {"Value": ref("Queue"), "Export": {"Name": self.name}}
        template = {"Resources": resources, "Outputs": {"Url": output}}
        template |= {"Parameters": parameters} if parameters else {}
        made = self.client.create_change_set(
            StackName=self.name,
            ChangeSetName="cdk-deploy-change-set",
            ChangeSetType=kind,
            TemplateBody=json.dumps(template),
        )
        return str(made["Id"])

    def execute(self, name: str = "cdk-deploy-change-set") -> dict[str, Any]:
        self.client.execute_change_set(StackName=self.name, ChangeSetName=name)
        return self.described()

    def described(self) -> dict[str, Any]:
        (found,) = self.client.describe_stacks(StackName=self.name)["Stacks"]
        return dict(found)

    def timeout_s(self) -> int:
        (output,) = self.described()["Outputs"]
        asked = {"QueueUrl": output["OutputValue"], "AttributeNames": ["VisibilityTimeout"]}
        return int(self.sqs.get_queue_attributes(**asked)["Attributes"]["VisibilityTimeout"])


@pytest.fixture
def made(cloud: LocalCloud) -> Iterator[Formation]:
    install_shims()
    formation = Formation(cloud)
    formation.propose("CREATE", Queue=queue(30))
    assert formation.execute()["StackStatus"] == "CREATE_COMPLETE"
    yield formation
    formation.client.delete_stack(StackName=formation.name)


def test_a_change_set_changes_its_own_stack(made: Formation, cloud: LocalCloud):
    other = Formation(cloud)
    other.propose("CREATE", Queue=queue(40))
    made.propose("UPDATE", Queue=queue(50))

    assert made.execute()["StackStatus"] == "UPDATE_COMPLETE"
    assert made.timeout_s() == 50
    assert other.execute()["StackStatus"] == "CREATE_COMPLETE"
    assert other.timeout_s() == 40


def test_a_change_set_that_was_executed_is_gone(made: Formation):
    with pytest.raises(ClientError, match="ChangeSetNotFound"):
        made.execute()
    made.client.delete_change_set(StackName=made.name, ChangeSetName="cdk-deploy-change-set")


def test_an_update_that_fails_ends_where_it_began_and_the_next_one_works(made: Formation):
    made.propose("UPDATE", Queue=queue(50), Broken=BROKEN)

    ended = made.execute()
    assert ended["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert "SubnetNotFound" in ended["StackStatusReason"]
    assert made.timeout_s() == 30

    made.propose("UPDATE", Queue=queue(60))
    assert made.execute()["StackStatus"] == "UPDATE_COMPLETE"
    assert made.timeout_s() == 60


def test_a_stack_that_could_not_be_made_takes_no_update(cloud: LocalCloud):
    formation = Formation(cloud)
    formation.propose("CREATE", Queue=queue(30), Broken=BROKEN)

    assert formation.execute()["StackStatus"] == "ROLLBACK_COMPLETE"
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        formation.propose("UPDATE", Queue=queue(30))
    formation.client.delete_stack(StackName=formation.name)


@pytest.mark.parametrize(
    ("policy", "is_left"),
    [("Delete", False), ("RetainExceptOnCreate", False), ("Retain", True)],
)
def test_what_a_first_deployment_that_fails_leaves(cloud: LocalCloud, policy: str, is_left: bool):
    formation, before = Formation(cloud), queues(cloud)
    kept = {**queue(30), "DeletionPolicy": policy}
    formation.propose("CREATE", Queue=kept, Broken=BROKEN)

    assert formation.execute()["StackStatus"] == "ROLLBACK_COMPLETE"
    formation.client.delete_stack(StackName=formation.name)

    left = queues(cloud) - before
    assert bool(left) is is_left
    forget(cloud, left)


@pytest.mark.parametrize("policy", ["Delete", "RetainExceptOnCreate", "Retain"])
def test_what_an_update_takes_out_of_a_stack(made: Formation, cloud: LocalCloud, policy: str):
    before = queues(cloud)
    made.propose("UPDATE", Queue=queue(30), More={**queue(40), "DeletionPolicy": policy})
    assert made.execute()["StackStatus"] == "UPDATE_COMPLETE"

    made.propose("UPDATE", Queue=queue(30))
    assert made.execute()["StackStatus"] == "UPDATE_COMPLETE"

    left = queues(cloud) - before
    assert bool(left) is (policy != "Delete")
    forget(cloud, left)


def queues(cloud: LocalCloud) -> set[str]:
    return set(cloud.client("sqs").list_queues().get("QueueUrls", ()))


def forget(cloud: LocalCloud, urls: set[str]) -> None:
    for each in urls:
        cloud.client("sqs").delete_queue(QueueUrl=each)


def test_a_rollback_that_fails_says_so_and_takes_no_update(cloud: LocalCloud):
    """What the template before referred to has gone meanwhile."""
    formation, ssm = Formation(cloud), cloud.client("ssm")
    ssm.put_parameter(Name=PARAMETER, Value="30", Type="String")
    seconds = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": PARAMETER}
    by_parameter = queue(0)
    by_parameter["Properties"]["VisibilityTimeout"] = ref("Seconds")
    formation.propose("CREATE", {"Seconds": seconds}, Queue=by_parameter)
    assert formation.execute()["StackStatus"] == "CREATE_COMPLETE"
    ssm.delete_parameter(Name=PARAMETER)

    formation.propose("UPDATE", Queue=queue(50), Broken=BROKEN)
    ended = formation.execute()
    assert ended["StackStatus"] == "UPDATE_ROLLBACK_FAILED"
    assert "UPDATE_ROLLBACK_FAILED" in ended["StackStatusReason"]
    assert "SubnetNotFound" in ended["StackStatusReason"]
    with pytest.raises(ClientError, match="is in UPDATE_ROLLBACK_FAILED state"):
        formation.propose("UPDATE", Queue=queue(50))
    with pytest.raises(ClientError, match="is in UPDATE_ROLLBACK_FAILED state"):
        formation.client.update_stack(StackName=formation.name, TemplateBody="{}")


def test_an_update_changes_what_other_stacks_may_import(made: Formation, cloud: LocalCloud):
    other = Formation(cloud)
    imported = queue(30)
    imported["Properties"]["Tags"] = [{"Key": "of", "Value": {"Fn::ImportValue": made.name}}]
    other.propose("CREATE", Queue=imported)
    assert other.execute()["StackStatus"] == "CREATE_COMPLETE"

    made.propose("UPDATE", Queue={**queue(30), "Properties": {"QueueName": "another"}})
    ended = made.execute()
    assert ended["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert f"Export {made.name} cannot be updated as it is in use" in ended["StackStatusReason"]
    assert made.timeout_s() == 30


def test_what_a_shim_adds_is_there_for_who_has_asked_before():
    costs.install()

    class Service:
        pass

    calls: Any = responses
    names = calls.method_names_from_class
    assert "more" not in names(Service)
    Service.more = lambda self: None  # type: ignore[attr-defined]
    costs.forget_names()
    assert "more" in names(Service)


def test_a_protected_stack_stays(made: Formation):
    protect = made.client.update_termination_protection
    protect(StackName=made.name, EnableTerminationProtection=True)
    with pytest.raises(ClientError, match="TerminationProtection is enabled"):
        made.client.delete_stack(StackName=made.name)

    protect(StackName=made.name, EnableTerminationProtection=False)
