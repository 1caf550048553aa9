"""Interface endpoints: one of a service in a VPC has its name."""

from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.vpcs import VPCBackend

_create: Any = VPCBackend.create_vpc_endpoint


def _created(self: Any, vpc_id: str, service_name: str, *rest: Any, **more: Any) -> Any:
    """Source: EC2's refusal in aws-samples/amazon-mwaa-examples#76; moto makes any number."""
    if more.get("private_dns_enabled"):
        for each in self.vpc_end_points.values():
            is_same = (each.vpc_id, each.service_name) == (vpc_id, service_name)
            if is_same and each.private_dns_enabled:
                words = "private-dns-enabled cannot be set because there is already a conflicting"
                raise EC2ClientError(
                    "InvalidParameter", f"{words} DNS domain for {service_name} in the VPC {vpc_id}"
                )
    return _create(self, vpc_id, service_name, *rest, **more)


def install() -> None:
    backend: Any = VPCBackend
    backend.create_vpc_endpoint = _created
