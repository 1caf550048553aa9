"""What comes may need no place that something else still has: CloudFormation makes before it takes.

Source: CloudFormation user guide, "Update behaviors of stack resources": what is replaced or
removed goes in the clean-up, after everything new is there. Names, routes and rules that are taken
are refused then, and the whole deployment is rolled back.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import File, Stack, dev_file, synthesized
from tests.cdk.variants import SLACK, TEAM, TEAMS, VARIANTS, stacks_of
from tidegate.cli.diff import Effect, Template, changes, refers
from tidegate.wire.deployment import NEEDED_ENDPOINTS

# Type -> what of its properties AWS takes once only.
PLACES: Mapping[str, str] = {
    "AWS::Backup::BackupVault": "BackupVaultName",
    "AWS::Budgets::Budget": "Budget.BudgetName",
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration": "ConfigurationName",
    "AWS::Chatbot::SlackChannelConfiguration": "ConfigurationName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::EC2::Route": "RouteTableId DestinationCidrBlock",
    "AWS::EC2::SecurityGroupEgress": "GroupId IpProtocol FromPort ToPort CidrIp "
    "DestinationSecurityGroupId",
    "AWS::EC2::SecurityGroupIngress": "GroupId IpProtocol FromPort ToPort CidrIp "
    "SourceSecurityGroupId",
    "AWS::EC2::SubnetRouteTableAssociation": "SubnetId",
    "AWS::EC2::VPCEndpoint": "VpcId ServiceName",
    "AWS::EC2::VPCGatewayAttachment": "VpcId",
    "AWS::ImageBuilder::Component": "Name Version",
    "AWS::ImageBuilder::DistributionConfiguration": "Name",
    "AWS::ImageBuilder::ImagePipeline": "Name",
    "AWS::ImageBuilder::ImageRecipe": "Name Version",
    "AWS::ImageBuilder::InfrastructureConfiguration": "Name",
    "AWS::ImageBuilder::LifecyclePolicy": "Name",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::Route53::RecordSet": "HostedZoneId Name Type",
    "AWS::SSM::Parameter": "Name",
    "AWS::Scheduler::ScheduleGroup": "Name",
}

TOLD = VARIANTS["everything told"]
ALERT = {"usd_per_month": "100"}
FLOWS = VARIANTS["nat and flow logs"]


def taken(before: Template, after: Template) -> Iterator[str]:
    """What comes, or comes anew, to a place that the old template has something in."""
    held = {place for each in before["Resources"].values() if (place := place_of(each))}
    those = changes(before, after)
    replaced = {each.logical_id for each in those if each.effect is Effect.REPLACED}
    for change in those:
        if change.effect not in (Effect.REPLACED, Effect.ADDED):
            continue
        resource = after["Resources"][change.logical_id]
        place = place_of(resource)
        if place in held and not refers(json.loads(place), replaced):
            yield f"{change.logical_id} {place}"


def place_of(resource: Mapping[str, Any]) -> str:
    """Empty for what has none, or a name that CloudFormation draws."""
    kind, properties = resource["Type"], resource.get("Properties", {})
    inner = {f"Budget.{name}": value for name, value in properties.get("Budget", {}).items()}
    names = PLACES.get(kind, "").split()
    values = [(properties | inner).get(name) for name in names]
    return json.dumps([kind, *values], sort_keys=True) if any(values) else ""


def both_ways(one: Mapping[str, Stack], other: Mapping[str, Stack]) -> list[str]:
    return [
        each
        for name in one.keys() & other.keys()
        for before, after in ((one[name], other[name]), (other[name], one[name]))
        for each in taken(before.template, after.template)
    ]


@pytest.mark.parametrize(
    "variant", [name for name, file in VARIANTS.items() if file["name"] == "dev" and name != "dev"]
)
def test_nothing_comes_where_something_is(tmp_path_factory, both, variant):
    assert both_ways(both, stacks_of(tmp_path_factory, variant)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TOLD, TOLD | {"bill_alert": ALERT | {"email": "others@example.org"}}),
        (TOLD, TOLD | {"alarm_email": "others@example.org"}),
        (
            TOLD,
            TOLD
            | {
                "notifications": {
                    "slack": SLACK | {"workspace_id": "T0123ABCDEE"},
                    "teams": TEAMS | {"team_id": TEAM.replace("0", "1")},
                }
            },
        ),
        (FLOWS, FLOWS | {"network": {"nat": "one", "flow_logs": "rejected"}}),
        (FLOWS, dev_file(network={"endpoints": list(NEEDED_ENDPOINTS), "flow_logs": "all"})),
    ],
    ids=["bill_alert", "alarm_email", "notifications", "flow_logs", "no nat"],
)
def test_no_edit_needs_a_place_twice(tmp_path: Path, before: File, after: File):
    assert both_ways(synthesized(tmp_path / "a", before), synthesized(tmp_path / "b", after)) == []


def test_a_second_route_for_the_same_addresses_is_seen():
    route = {
        "Type": "AWS::EC2::Route",
        "Properties": {"RouteTableId": {"Ref": "Table"}, "DestinationCidrBlock": "0.0.0.0/0"},
    }

    assert list(taken({"Resources": {"Out": route}}, {"Resources": {"ThroughNat": route}}))
