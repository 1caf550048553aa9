"""What AWS calls its regions."""

from typing import Any

from botocore.loaders import create_loader

from tidegate.adapters.aws_errors import aws_call


def region_name(region: str) -> str:
    """AWS's words for a region, `US East (N. Virginia)`; the region itself where it is not known.

    Source: the descriptions in botocore's endpoints, which come with it.
    """
    endpoints: Any = create_loader().load_data("endpoints")
    regions = (each["regions"] for each in endpoints["partitions"])
    known = (each[region]["description"] for each in regions if region in each)
    return str(next(known, region))


def opted_in(client: Any) -> dict[str, bool]:
    """Region -> whether it is enabled for the account. Errors: Throttled, NotAuthorized.

    Source: EC2 API reference, DescribeRegions, `OptInStatus`.
    """
    with aws_call():
        found = client.describe_regions(AllRegions=True)["Regions"]
    return {each["RegionName"]: each.get("OptInStatus") != "not-opted-in" for each in found}
