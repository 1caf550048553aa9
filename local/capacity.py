"""What moto's CreateFleet lacks: a market that can be short, and an idempotent token.

moto 5.2.5 fills every fleet from its first override, takes any instance type, and ignores
ClientToken, priorities, MinTargetCapacity and SingleAvailabilityZone. `install_capacity_model`
puts a model of these in its place, for the whole process.

Source of the behaviour modelled: EC2 API reference, CreateFleet and CreateFleetError.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.fleets import Fleet, FleetsBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.spot_requests import SpotFleetLaunchSpec
from moto.ec2.responses.fleets import Fleets
from moto.ec2.utils import random_fleet_id

from tidegate.core.model.ec2 import Market, Offering

PLENTY = 1_000_000

# Taken here, once: a second installation must not wrap the first one's answer.
MOTO_ANSWER = Fleets.create_fleet


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An override that did not give all that was asked of it."""

    spec: SpotFleetLaunchSpec
    code: str
    message: str


@dataclass(slots=True)
class CapacityModel:
    """What the local EC2 still sells: everything, but for what is `dry`, `limited` or `refused`.

    `limited`: how many more of an offering there are; each launch takes one away.
    `refused`: with this code and these words, whatever there is of it.
    `snapshot_gib`: the root snapshot of an image; that of an image not named fits everywhere.
    """

    dry: set[Offering] = field(default_factory=set)
    limited: dict[Offering, int] = field(default_factory=dict)
    refused: dict[Offering, tuple[str, str]] = field(default_factory=dict)
    snapshot_gib: dict[str, int] = field(default_factory=dict)
    answers: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    def room(self, offering: Offering) -> int:
        return 0 if offering in self.dry else self.limited.get(offering, PLENTY)

    def take(self, offering: Offering, count: int) -> None:
        if offering in self.limited:
            self.limited[offering] -= count


@dataclass(frozen=True, slots=True)
class Target:
    """What a fleet asks for, and how it may be filled."""

    market: Market
    count: int
    min_count: int
    is_single_zone: bool

    @classmethod
    def of(
        cls, capacity: Mapping[str, Any], on_demand: Mapping[str, Any], spot: Mapping[str, Any]
    ) -> "Target":
        market = Market(capacity.get("DefaultTargetCapacityType") or Market.ON_DEMAND)
        options = spot if market is Market.SPOT else on_demand
        return cls(
            market=market,
            count=int(capacity["TotalTargetCapacity"]),
            min_count=int(options.get("MinTargetCapacity") or 0),
            is_single_zone=str(options.get("SingleAvailabilityZone", "")).lower() == "true",
        )


class CapacityFleet(Fleet):
    """A fleet of type `instant` that gets what the model gives, in the order of priorities."""

    model: CapacityModel
    shortfalls: list[Shortfall]

    def get_launch_spec_counts(
        self, weight_to_add: float
    ) -> tuple[dict[SpotFleetLaunchSpec, int], float]:
        """How many instances each override gives; the shortfalls are kept for the answer."""
        target = Target.of(
            self.target_capacity_specification, self.on_demand_options, self.spot_options
        )
        ranked = sorted(self.launch_specs, key=_priority)
        taken = self._choose(ranked, target)
        for spec, count in taken.items():
            self.model.take(self._offering(spec, target.market), count)
        return taken, weight_to_add

    def _choose(
        self, ranked: Sequence[SpotFleetLaunchSpec], target: Target
    ) -> dict[SpotFleetLaunchSpec, int]:
        groups = [ranked]
        if target.is_single_zone:
            zones = dict.fromkeys(map(self._zone, ranked))
            groups = [[spec for spec in ranked if self._zone(spec) == zone] for zone in zones]
        for group in groups:
            taken = self._fill(group, target)
            if sum(taken.values()) >= max(1, target.min_count):
                return taken
        return {}

    def _fill(
        self, ranked: Sequence[SpotFleetLaunchSpec], target: Target
    ) -> dict[SpotFleetLaunchSpec, int]:
        taken: dict[SpotFleetLaunchSpec, int] = {}
        used: dict[Offering, int] = {}
        for spec in ranked:
            wanted = target.count - sum(taken.values())
            if wanted == 0:
                break
            if spec.instance_type not in INSTANCE_TYPES:
                words = f"Invalid value '{spec.instance_type}' for InstanceType."
                self.shortfalls.append(Shortfall(spec, "InvalidParameterValue", words))
                continue
            offering = self._offering(spec, target.market)
            if words := self._too_small(spec):
                self.shortfalls.append(Shortfall(spec, "InvalidBlockDeviceMapping", words))
                continue
            if offering in self.model.refused:
                self.shortfalls.append(Shortfall(spec, *self.model.refused[offering]))
                continue
            count = min(wanted, self.model.room(offering) - used.get(offering, 0))
            if count:
                taken[spec] = count
                used[offering] = used.get(offering, 0) + count
            if count < wanted:
                self.shortfalls.append(_out_of(spec, offering))
        return taken

    def _too_small(self, spec: SpotFleetLaunchSpec) -> str:
        """EC2's words for a disk of the template that is smaller than the image's snapshot.

        Source: EC2's answer in aws/karpenter-provider-aws#3302.
        """
        snapshot_gib = self.model.snapshot_gib.get(str(spec.image_id), 0)
        named = spec.launch_template_spec or {}
        template = self.ec2_backend.get_launch_template(named["LaunchTemplateId"])
        data = template.get_version(named.get("Version", template.default_version_number)).data
        for mapping in data.get("BlockDeviceMappings", ()):
            gib = int(mapping.get("Ebs", {}).get("VolumeSize", snapshot_gib))
            if gib < snapshot_gib:
                snapshot = str(spec.image_id).replace("ami-", "snap-")
                return (
                    f"Volume of size {gib}GB is smaller than snapshot '{snapshot}', "
                    f"expect size >= {snapshot_gib}GB"
                )
        return ""

    def _zone(self, spec: SpotFleetLaunchSpec) -> str:
        return str(self.ec2_backend.get_subnet(spec.subnet_id).availability_zone)

    def _offering(self, spec: SpotFleetLaunchSpec, market: Market) -> Offering:
        return Offering(str(spec.instance_type), self._zone(spec), market)


def _priority(spec: SpotFleetLaunchSpec) -> float:
    """Lower comes first; EC2 puts overrides without a priority last."""
    return float((spec.overrides or {}).get("Priority", "inf"))


def _out_of(spec: SpotFleetLaunchSpec, offering: Offering) -> Shortfall:
    words = (
        f"We currently do not have sufficient {offering.instance_type} capacity in the "
        f"Availability Zone you requested ({offering.zone})."
    )
    return Shortfall(spec, "InsufficientInstanceCapacity", words)


def _error(shortfall: Shortfall, fleet: CapacityFleet) -> dict[str, Any]:
    capacity = fleet.target_capacity_specification
    return {
        "LaunchTemplateAndOverrides": {
            "LaunchTemplateSpecification": shortfall.spec.launch_template_spec,
            "Overrides": shortfall.spec.overrides,
        },
        "Lifecycle": capacity.get("DefaultTargetCapacityType") or "on-demand",
        "ErrorCode": shortfall.code,
        "ErrorMessage": shortfall.message,
    }


def _answer(responder: Fleets, model: CapacityModel) -> ActionResult:
    """moto's own answer, plus the errors; the same again for a token that was seen before."""
    asked = json.dumps(dict(responder.params), sort_keys=True, default=str)
    token = responder.params.get("ClientToken", "")
    if token in model.answers:
        seen, answered = model.answers[token]
        if seen != asked:
            words = (
                "The request uses the same client token as a previous, but non-identical request."
            )
            raise EC2ClientError("IdempotentParameterMismatch", words)
        return ActionResult(answered)
    result = cast(dict[str, Any], MOTO_ANSWER(responder).result)
    fleet = responder.ec2_backend.get_fleet(result["FleetId"])
    if isinstance(fleet, CapacityFleet) and fleet.shortfalls:
        result["Errors"] = [_error(shortfall, fleet) for shortfall in fleet.shortfalls]
    if token:
        model.answers[token] = (asked, result)
    return ActionResult(result)


def install_capacity_model(model: CapacityModel) -> None:
    """Put `model` into moto's EC2, for every server and mock of this process.

    Installing another model later replaces this one. Fleets of other types and RunInstances
    stay moto's own.
    """

    class ModelFleet(CapacityFleet):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.model = model
            self.shortfalls = []
            super().__init__(*args, **kwargs)

    def create_fleet(self: FleetsBackend, **asked: Any) -> Fleet:
        kind = ModelFleet if asked["fleet_type"] == "instant" else Fleet
        fleet = kind(self, random_fleet_id(), **asked)
        self.fleets[fleet.id] = fleet
        return fleet

    def answer(self: Fleets) -> ActionResult:
        return _answer(self, model)

    FleetsBackend.create_fleet = create_fleet  # type: ignore[assignment,method-assign]
    Fleets.create_fleet = answer  # type: ignore[method-assign]
