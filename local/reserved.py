"""Launches into reservations and Capacity Blocks, which moto knows nothing of.

Source: EC2 API reference, CapacityReservationSpecification, InstanceMarketOptionsRequest; EC2 user
guide, "Launch instances into an existing Capacity Reservation", "Launch instances using Capacity
Blocks". The words of a full one: scylladb/scylla-cluster-tests#8839.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.blocks import LocalBlocks
from local.launch_rules import Refused

ONLY = "capacity-reservations-only"
BLOCK = "capacity-block"

type Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """What a template's instances of one type and zone find reserved.

    `places`: id -> how many more it takes, in the order in which they fill. `lifecycle`: as
    DescribeInstances calls it, "" for that of on-demand. `refused`: why none goes anywhere else;
    None: what finds no place is bought by the hour.
    """

    places: Mapping[str, int]
    lifecycle: str
    refused: Refused | None

    @property
    def free(self) -> int:
        return sum(self.places.values())

    def assign(self, count: int) -> Iterator[str]:
        """The reservation of each of so many instances, "" for what is bought by the hour."""
        taken = [name for name, free in self.places.items() for _ in range(free)]
        for number in range(count):
            yield taken[number] if number < len(taken) else ""


def held_for(model: LocalBlocks, data: Data, instance_type: str, zone: str) -> Held:
    """`data`: the template's."""
    wanted = data.get("CapacityReservationSpecification") or {}
    target = wanted.get("CapacityReservationTarget") or {}
    lifecycle = (data.get("InstanceMarketOptions") or {}).get("MarketType", "")
    name = target.get("CapacityReservationId", "")
    named = list(_named(model, name, target, wanted.get("CapacityReservationPreference", "open")))
    fitting = [
        each
        for each in named
        if each["State"] == "active"
        and (each["InstanceType"], each["AvailabilityZone"]) == (instance_type, zone)
        and (each["ReservationType"] == BLOCK) == (lifecycle == BLOCK)
    ]
    places = {each["CapacityReservationId"]: each["AvailableInstanceCount"] for each in fitting}
    is_bound = bool(name or lifecycle) or wanted.get("CapacityReservationPreference") == ONLY
    return Held(places, lifecycle, _refused(name, named) if is_bound else None)


def _named(
    model: LocalBlocks, name: str, target: Data, preference: str
) -> Iterator[dict[str, Any]]:
    """What the template names, else what is open to all."""
    group = target.get("CapacityReservationResourceGroupArn", "")
    members = {arn.rpartition("/")[2] for arn in model.groups.get(group, ())}
    for each in model.shown():
        is_open = each.get("InstanceMatchCriteria") == "open" and preference != "none"
        found = each["CapacityReservationId"]
        if found == name or found in members or (is_open and not target):
            yield each


def _refused(name: str, named: list[dict[str, Any]]) -> Refused:
    if name and not named:
        words = f"The capacity reservation '{name}' does not exist."
        return Refused("InvalidCapacityReservationId.NotFound", words)
    if name and named[0]["State"] != "active":
        words = f"The capacity reservation '{name}' is {named[0]['State']}."
        return Refused("InvalidCapacityReservationState", words)
    words = "The requested reservation does not have sufficient compatible and available"
    return Refused("ReservationCapacityExceeded", f"{words} capacity for this request.")
