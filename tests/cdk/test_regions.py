"""Whether CloudFormation knows, in each region, what the templates are made of.

AWS publishes its resource types region by region; cfn-lint carries that list, and by itself holds a
template against us-east-1's alone.
"""

from functools import cache

import pytest

from tests.cdk.made import Stack, synthesized
from tests.cdk.variants import VARIANTS, stacks_of
from tidegate.wire.deployment import ENDPOINTS
from tidegate.wire.notifications_model import CHATLESS
from tidegate.wire.places import REGIONS, WITHOUT_BUDGETS, WITHOUT_LUSTRE

# cfn-lint has no list of this one.
LISTED = sorted(REGIONS - {"me-south-1"})
# What a cluster file is refused that asks for it there.
REFUSED = {
    "AWS::Budgets::Budget": WITHOUT_BUDGETS,
    "AWS::FSx::FileSystem": WITHOUT_LUSTRE,
    "AWS::Chatbot::SlackChannelConfiguration": {r for r in REGIONS if r.startswith(CHATLESS)},
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration": {
        r for r in REGIONS if r.startswith(CHATLESS)
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_cloudformation_has_every_type_in_every_region_where_the_file_may_ask_for_it(
    variant: str, tmp_path_factory: pytest.TempPathFactory
):
    used = {kind for made in stacks_of(tmp_path_factory, variant).values() for kind in kinds(made)}

    unknown = {
        (region, kind)
        for region in LISTED
        for kind in used - {"AWS::CDK::Metadata"}
        if region not in REFUSED.get(kind, ()) and not is_made(region, kind)
    }

    assert unknown == set()


def test_what_is_refused_is_not_made_there():
    """So that a region that has got it is not refused for ever."""
    for kind, regions in (
        ("AWS::Budgets::Budget", WITHOUT_BUDGETS),
        ("AWS::FSx::FileSystem", WITHOUT_LUSTRE),
    ):
        assert {region for region in LISTED if not is_made(region, kind)} == regions


def kinds(made: Stack) -> set[str]:
    return {resource["Type"] for resource in made.template["Resources"].values()}


def is_made(region: str, kind: str) -> bool:
    return kind in types_of(region)


@cache
def types_of(region: str) -> frozenset[str]:
    # Here: each process of a test run would import it for half a second, to collect this file.
    from cfnlint.schema.manager import (  # type: ignore[import-untyped]
        PROVIDER_SCHEMA_MANAGER,
    )

    return frozenset(PROVIDER_SCHEMA_MANAGER.get_resource_types(region))


CHINAS_OWN = ("ec2", "ecr.api", "ecr.dkr", "elasticfilesystem", "monitoring", "sqs", "sts")


@pytest.mark.parametrize("region", ["cn-north-1", "cn-northwest-1"])
def test_china_names_some_endpoints_backwards_and_the_others_as_everywhere(
    region: str, tmp_path_factory: pytest.TempPathFactory
):
    """As `describe-vpc-endpoint-services` lists them there, of which the CDK keeps a table."""
    file = {**VARIANTS["china"], "region": region, "network": {"endpoints": list(ENDPOINTS)}}
    file["pools"] = {"t4": {**file["pools"]["t4"], "zones": [f"{region}a"]}}
    stacks = synthesized(tmp_path_factory.getbasetemp() / "china", file)

    found = {
        each["ServiceName"]
        for each in stacks["tidegate-dev"].all("AWS::EC2::VPCEndpoint")
        if each["VpcEndpointType"] == "Interface"
    }

    assert found == {
        f"{'cn.com.amazonaws' if each in CHINAS_OWN else 'com.amazonaws'}.{region}.{each}"
        for each in ENDPOINTS
    }
