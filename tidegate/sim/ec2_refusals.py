"""What EC2 says when it does not give an offering, in its own words."""

from tidegate.core.model.ec2 import Cure, FleetRequest, Market, Offering, Refusal, RefusalKind

QUOTA_CODES = {
    Market.ON_DEMAND: "VcpuLimitExceeded",
    Market.SPOT: "MaxSpotInstanceCountExceeded",
}


def too_many_requests(offering: Offering) -> Refusal:
    words = "Request limit exceeded."
    return Refusal(offering, RefusalKind.THROTTLED, "RequestLimitExceeded", words)


def no_address(offering: Offering, subnet_id: str) -> Refusal:
    code = "InsufficientFreeAddressesInSubnet"
    words = f"There are not enough free addresses in subnet '{subnet_id}'."
    return Refusal(offering, RefusalKind.SUBNET, code, words, subnet=subnet_id)


def over_quota(offering: Offering) -> Refusal:
    words = "You have requested more than your current limit allows."
    return Refusal(offering, RefusalKind.QUOTA, QUOTA_CODES[offering.market], words)


def no_capacity(offering: Offering) -> Refusal:
    if offering.market.is_prepaid:
        words = "Requested count exceeds available capacity in the Capacity Reservation."
        return Refusal(offering, RefusalKind.CAPACITY, "ReservationCapacityExceeded", words)
    words = (
        f"We currently do not have sufficient {offering.instance_type} capacity in the "
        f"Availability Zone you requested ({offering.zone})."
    )
    return Refusal(offering, RefusalKind.CAPACITY, "InsufficientInstanceCapacity", words)


def no_template(request: FleetRequest) -> tuple[Refusal, ...]:
    """Of all that was asked for: none of it is to blame."""
    code, words = "InvalidLaunchTemplateId.VersionNotFound", "Could not find the template version."
    asked = {Offering(each.instance_type, each.zone, request.market) for each in request.overrides}
    return tuple(
        Refusal(each, RefusalKind.OTHER, code, words, Cure.TEMPLATE) for each in sorted(asked)
    )
