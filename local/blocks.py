"""Capacity Blocks, capacity reservations and placement scores, which moto lacks.

A purchase has no token: an offer of which EC2 has more is sold again to who asks again. What was
bought is shown a while later, and is paid, begins and ends by the clock. Each UltraServer is a
block (`ultra_blocks.py`).
Source: EC2 API reference, DescribeCapacityBlockOfferings, PurchaseCapacityBlock,
DescribeCapacityReservations, GetSpotPlacementScores; EC2 user guide, "Capacity Blocks for ML".
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from local.ultra_blocks import sell_ultraservers
from tidegate.core.model.capacity import BLOCK_INSTANCES_MAX, days_sold

OFFERS_MAX = 6
INSTANCES = ("InstanceType", "InstanceCount")
OCCUPYING = ("pending", "running", "stopping")

type Tags = Mapping[str, Sequence[Mapping[str, str]]]


@dataclass(slots=True)
class LocalBlocks:
    """`offers`: as EC2's answer has them; `left`: how often each is sold, 1 when not named.

    `scores`: by the types that are asked about, of their region. `questions`: how many different
    ones may be asked, each about `scored_max` instances at most. `shown_after_s`: for how long a
    bought block is missing in answers. `states`: of blocks that are not what the clock says, by
    id. `others`: what the account has beside blocks, as EC2's answer has it; `groups`: the ARNs of
    what is in a group, by its ARN.
    `extension_offers`: as EC2's answer has them, each with the id of its block; `payments`: what
    becomes of the extension's payment, by its offer: it is made when not named.
    `blocks`: of UltraServers that were bought; `interconnects`: how that of each is, by its id: ok
    when not named; `parts`: of how many reservations an UltraServer consists; `is_named_late`: the
    answer to its purchase does not name them.
    """

    offers: list[dict[str, Any]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    scores: dict[tuple[str, ...], int] = field(default_factory=dict)
    questions: int = 100
    scored_max: int = 1_000_000
    shown_after_s: float = 0.0
    states: dict[str, str] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    extension_offers: list[dict[str, Any]] = field(default_factory=list)
    payments: dict[str, str] = field(default_factory=dict)
    extended: list[dict[str, Any]] = field(default_factory=list)
    bought: list[dict[str, Any]] = field(default_factory=list)
    asked: set[tuple[str, ...]] = field(default_factory=set)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    interconnects: dict[str, str] = field(default_factory=dict)
    parts: int = 1
    is_named_late: bool = False

    def clear(self) -> None:
        for each in (self.offers, self.left, self.scores, self.states, self.bought, self.asked):
            each.clear()
        for more in (self.others, self.groups, self.extension_offers, self.payments, self.extended):
            more.clear()
        self.blocks.clear()
        self.interconnects.clear()
        self.parts, self.is_named_late = 1, False
        self.questions, self.scored_max, self.shown_after_s = 100, 1_000_000, 0.0

    def offered(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Those of the type, the number and about the duration, at most six."""
        is_ultra = "UltraserverType" in asked
        what, many = ("UltraserverType", "UltraserverCount") if is_ultra else INSTANCES
        hours, count = int(asked["CapacityDurationHours"]), int(asked[many])
        if hours % 24 or days_sold(hours / 24) * 24 != hours:
            raise EC2ClientError("InvalidParameterValue", f"{hours} hours are not offered.")
        if not 0 < count <= BLOCK_INSTANCES_MAX:
            raise EC2ClientError("InvalidParameterValue", f"{count} instances are not offered.")
        alike = [each for each in self.offers if ("UltraserverType" in each) is is_ultra]
        ours = [each for each in alike if each[what] == asked[what]]
        if not ours:
            said = f"{asked[what]} is not supported for Capacity Blocks."
            raise EC2ClientError("InvalidParameterValue", said)
        found = [
            each
            for each in ours
            if each[many] == count
            and abs(each["CapacityBlockDurationHours"] - hours) <= 24
            and self.left.get(each["CapacityBlockOfferingId"], 1) > 0
            and at(each["StartDate"]) >= at(asked["StartDateRange"])
        ]
        return found[:OFFERS_MAX]

    def sell(self, offer_id: str, tags: Tags, platform: str) -> dict[str, Any]:
        """EC2's answer. `tags`: by the type of resource that they are asked for."""
        found = next(
            (each for each in self.offers if each["CapacityBlockOfferingId"] == offer_id), None
        )
        if found is None:
            said = f"The Capacity Block offering ID '{offer_id}' cannot be found for this account."
            raise EC2ClientError("InvalidCapacityBlockOfferingIdNotFound", said)
        if self.left.get(offer_id, 1) < 1:
            said = f"The Capacity Block offering ID '{offer_id}' is no longer available."
            raise EC2ClientError("InvalidCapacityBlockOfferingIdExpired", said)
        self.left[offer_id] = self.left.get(offer_id, 1) - 1
        if "UltraserverType" in found:
            return sell_ultraservers(self, found, tags, platform)
        made = self.reserve(found, found["InstanceCount"], platform)
        made["Tags"] = tags.get("capacity-reservation", [])
        return {"CapacityReservation": {**made, "State": "payment-pending"}}

    def reserve(self, found: Mapping[str, Any], count: int, platform: str) -> dict[str, Any]:
        """A reservation of what was offered, for so many instances."""
        made = {
            "CapacityReservationId": f"cr-{len(self.bought) + 1:017x}",
            "InstanceType": found["InstanceType"],
            "InstancePlatform": platform,
            "AvailabilityZone": found["AvailabilityZone"],
            "Tenancy": found["Tenancy"],
            "TotalInstanceCount": count,
            "StartDate": found["StartDate"],
            "EndDate": found["EndDate"],
            "EndDateType": "limited",
            "InstanceMatchCriteria": "targeted",
            "ReservationType": "capacity-block",
            "CreateDate": time.time(),
        }
        self.bought.append(made)
        return made

    def shown(self) -> list[dict[str, Any]]:
        now_s = time.time()
        blocks = [
            {**each, "State": self._state(each, now_s), "EndDate": extended_end(self, each)}
            for each in self.bought
            if each["CreateDate"] + self.shown_after_s <= now_s
        ]
        if not (blocks or self.others):
            return []
        used = Counter(_reservations_of_instances())
        return [_with_room(each, used) for each in (*blocks, *self.others)]

    def _state(self, block: Mapping[str, Any], now_s: float) -> str:
        if said := self.states.get(block["CapacityReservationId"]):
            return said
        if now_s >= at(extended_end(self, block)):
            return "expired"
        return "active" if now_s >= at(block["StartDate"]) else "scheduled"

    def score(self, types: tuple[str, ...], count: str, region: str) -> list[dict[str, Any]]:
        if int(count) > self.scored_max:
            said = "The value for targetCapacity exceeds your limit. Reduce it, and try again."
            raise EC2ClientError("TargetCapacityLimitExceededException", said)
        if len(self.asked | {(*types, count)}) > self.questions:
            said = "You have exceeded your maximum allowed Spot placement configurations."
            raise EC2ClientError("MaxConfigLimitExceeded", said)
        self.asked.add((*types, count))
        low = 1 if len(types) < 3 else self.scores.get(types, 5)
        return [{"Region": region, "Score": low}]


def _reservations_of_instances() -> Iterator[str]:
    """That of each instance that is there; a stopped one takes no place."""
    for account in list(ec2_backends.values()):
        for backend in list(account.values()):
            for each in list(backend.all_instances()):
                if each.state in OCCUPYING:
                    yield getattr(each, "capacity_reservation_id", None) or ""


def _with_room(shown: dict[str, Any], used: Mapping[str, int]) -> dict[str, Any]:
    """How many it still takes, where nobody has said it."""
    free = shown["TotalInstanceCount"] - used[shown["CapacityReservationId"]]
    return {"AvailableInstanceCount": free, **shown}


def extended_end(model: LocalBlocks, block: Mapping[str, Any]) -> Any:
    """EC2 shows the new end at once here, before the payment; one that failed is taken back."""
    ends = [
        each["CapacityBlockExtensionEndDate"]
        for each in model.extended
        if each["CapacityReservationId"] == block["CapacityReservationId"]
        and model.payments.get(each["CapacityBlockExtensionOfferingId"]) != "payment-failed"
    ]
    return max((block["EndDate"], *ends), key=at)


def install_blocks(model: LocalBlocks) -> None:
    """EC2's answers; for every server and mock of this process."""
    responder: Any = EC2Response

    def describe_capacity_block_offerings(self: Any) -> ActionResult:
        return ActionResult({"CapacityBlockOfferings": model.offered(self._get_params())})

    def describe_capacity_reservations(self: Any) -> ActionResult:
        return ActionResult({"CapacityReservations": model.shown()})

    def purchase_capacity_block(self: Any) -> ActionResult:
        asked = self._get_params()
        tags = {each["ResourceType"]: each["Tags"] for each in asked.get("TagSpecifications", [])}
        if asked.get("DryRun"):
            raise EC2ClientError("DryRunOperation", "Request would have succeeded.")
        sold = model.sell(asked["CapacityBlockOfferingId"], tags, asked["InstancePlatform"])
        return ActionResult(sold)

    def get_spot_placement_scores(self: Any) -> ActionResult:
        asked = self._get_params()
        types, (region,) = tuple(asked["InstanceTypes"]), asked["RegionNames"]
        found = model.score(types, str(asked["TargetCapacity"]), region)
        return ActionResult({"SpotPlacementScores": found})

    answers: tuple[Callable[[Any], ActionResult], ...] = (
        describe_capacity_block_offerings,
        describe_capacity_reservations,
        purchase_capacity_block,
        get_spot_placement_scores,
    )
    for each in answers:
        setattr(responder, each.__name__, each)


def at(moment: Any) -> float:
    """Epoch seconds of what stands in an offer or in a request."""
    if isinstance(moment, datetime):
        return moment.timestamp()
    if isinstance(moment, str):
        return datetime.fromisoformat(moment).timestamp()
    return float(moment)
