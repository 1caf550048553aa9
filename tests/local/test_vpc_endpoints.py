"""What EC2 makes no second one of in a VPC."""

import pytest
from botocore.exceptions import ClientError

from local.cloud import LocalCloud
from local.shims.install import install_shims


def test_a_service_s_name_leads_to_one_endpoint_of_a_vpc(cloud: LocalCloud):
    install_shims()
    ec2 = cloud.client("ec2")
    vpcs = [ec2.create_vpc(CidrBlock=f"10.{each}.0.0/16")["Vpc"]["VpcId"] for each in (40, 41)]
    asked = {"ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}

    ec2.create_vpc_endpoint(VpcId=vpcs[0], PrivateDnsEnabled=True, **asked)
    ec2.create_vpc_endpoint(VpcId=vpcs[1], PrivateDnsEnabled=True, **asked)
    ec2.create_vpc_endpoint(VpcId=vpcs[0], PrivateDnsEnabled=False, **asked)

    with pytest.raises(ClientError, match="private-dns-enabled cannot be set"):
        ec2.create_vpc_endpoint(VpcId=vpcs[0], PrivateDnsEnabled=True, **asked)
