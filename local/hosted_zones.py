"""The names that Route 53 knows."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_route53.client import Route53Client


def address_records(route53: "Route53Client") -> dict[str, str]:
    """All A records: full name -> address (the first of several).

    Of all hosted zones, public ones too: moto takes a zone with a VPC for public.
    """
    found: dict[str, str] = {}
    for zones in route53.get_paginator("list_hosted_zones").paginate():
        for zone in zones["HostedZones"]:
            found |= _addresses(route53, zone["Id"])
    return found


def _addresses(route53: "Route53Client", zone_id: str) -> dict[str, str]:
    pages = route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id)
    return {
        record["Name"].rstrip("."): record["ResourceRecords"][0]["Value"]
        for page in pages
        for record in page["ResourceRecordSets"]
        if record["Type"] == "A" and record.get("ResourceRecords")
    }
