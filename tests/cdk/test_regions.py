"""What differs from region to region in what the templates name."""

import pytest

from tests.cdk.made import synthesized
from tests.cdk.variants import VARIANTS
from tidegate.wire.deployment import ENDPOINTS

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
