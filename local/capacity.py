"""What moto's CreateFleet lacks: a market that can be short, and an idempotent token.

moto 5.2.5 fills every fleet from its first override, takes any instance type, and ignores
ClientToken, priorities, MinTargetCapacity and SingleAvailabilityZone. `install_capacity_model`
puts a model of these in its place, for the whole process; what EC2 refuses by its own rules
(`launch_rules.py`) is refused here, to fleets, RunInstances and launch templates.

Source of the behaviour modelled: EC2 API reference, CreateFleet and CreateFleetError.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.fleets import Fleet, FleetsBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.models.spot_requests import SpotFleetLaunchSpec
from moto.ec2.responses.fleets import Fleets
from moto.ec2.utils import random_fleet_id

from local import launch_rules
from local.blocks import LocalBlocks
from local.launch_rules import Asked
from local.reserved import Held, held_for
from tidegate.core.model.ec2 import Market, Offering

PLENTY = 1_000_000
PREPAID = ("capacity-block", launch_rules.RESERVED_CAPACITY)

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
    `refused`: with this code and these words, whatever there is of it. `full_subnets`: those
    without a free address.
    `snapshot_gib`: the root snapshot of an image; that of an image not named fits everywhere.
    `listed_after_s`: how long an instance is missing in answers of DescribeInstances by filter.
    Source: EC2 developer guide, "Eventual consistency".
    `has_all_types`: each zone sells each type, as where its zones stand for others.
    `efa_devices`: of the instances that fleets have launched, by id.
    """

    dry: set[Offering] = field(default_factory=set)
    limited: dict[Offering, int] = field(default_factory=dict)
    refused: dict[Offering, tuple[str, str]] = field(default_factory=dict)
    full_subnets: set[str] = field(default_factory=set)
    snapshot_gib: dict[str, int] = field(default_factory=dict)
    listed_after_s: float = 0.0
    has_all_types: bool = False
    efa_devices: dict[str, int] = field(default_factory=dict)
    listed_at_s: dict[str, float] = field(default_factory=dict)
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
        asked = capacity.get("DefaultTargetCapacityType") or Market.ON_DEMAND
        is_lent = asked == launch_rules.RESERVED_CAPACITY
        market = Market.INTERRUPTIBLE if is_lent else Market(asked)
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
    blocks: LocalBlocks
    shortfalls: list[Shortfall]

    def create_on_demand_requests(self, weight_to_add: float) -> None:
        """Those that go into a reservation say so from then on."""
        super().create_on_demand_requests(weight_to_add)
        by_spec: dict[SpotFleetLaunchSpec, list[Any]] = {}
        for each in self.on_demand_instances:
            by_spec.setdefault(each["launch_spec"], []).append(each["instance"])
        for spec, instances in by_spec.items():
            held = self._held(spec)
            for instance, name in zip(instances, held.assign(len(instances)), strict=True):
                instance.capacity_reservation_id = name or None
                instance.lifecycle = held.lifecycle or None

    def note_devices(self) -> None:
        """The EFA interfaces that the templates ask for."""
        made = [(each["instance"], each["launch_spec"]) for each in self.on_demand_instances]
        made += [(each.instance, each.launch_spec) for each in self.spot_requests]
        for instance, spec in made:
            interfaces = self._asked(spec).data.get("NetworkInterfaces") or ()
            kinds = [str(each.get("InterfaceType", "")) for each in interfaces]
            self.model.efa_devices[instance.id] = sum(kind.startswith("efa") for kind in kinds)

    @staticmethod
    def _build_instance_data(
        instance: Any, lifecycle: str, launch_spec: SpotFleetLaunchSpec | None
    ) -> dict[str, Any]:
        return Fleet._build_instance_data(instance, instance.lifecycle or lifecycle, launch_spec)

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
            if refused := launch_rules.of_launch(self._asked(spec)):
                self.shortfalls.append(Shortfall(spec, refused.code, refused.words))
                continue
            if offering in self.model.refused:
                self.shortfalls.append(Shortfall(spec, *self.model.refused[offering]))
                continue
            if spec.subnet_id in self.model.full_subnets:
                self.shortfalls.append(_no_address(spec))
                continue
            held = self._held(spec)
            if held.refused and not held.free:
                self.shortfalls.append(Shortfall(spec, held.refused.code, held.refused.words))
                continue
            room = held.free if held.refused else self.model.room(offering)
            count = min(wanted, room - used.get(offering, 0))
            if count:
                taken[spec] = count
                used[offering] = used.get(offering, 0) + count
            if count < wanted:
                self.shortfalls.append(_out_of(spec, offering))
        for spec in taken:
            spec.group_set = groups_of(self._asked(spec).data)
        return taken

    def _asked(self, spec: SpotFleetLaunchSpec) -> Asked:
        """What this override launches, by its template."""
        named = spec.launch_template_spec or {}
        template = self.ec2_backend.get_launch_template(named["LaunchTemplateId"])
        data = template.get_version(named.get("Version", template.default_version_number)).data
        return Asked(
            data=data,
            image_id=str(spec.image_id),
            instance_type=str(spec.instance_type),
            zone="" if self.model.has_all_types else self._zone(spec),
            tags=tuple((spec.tag_specifications or {}).get("instance", {})),
            snapshot_gib=self.model.snapshot_gib.get(str(spec.image_id), 0),
            is_fleet=True,
        )

    def _held(self, spec: SpotFleetLaunchSpec) -> Held:
        data = self._asked(spec).data
        return held_for(self.blocks, data, str(spec.instance_type), self._zone(spec))

    def _zone(self, spec: SpotFleetLaunchSpec) -> str:
        return str(self.ec2_backend.get_subnet(spec.subnet_id).availability_zone)

    def _offering(self, spec: SpotFleetLaunchSpec, market: Market) -> Offering:
        return Offering(str(spec.instance_type), self._zone(spec), market)


def groups_of(data: Mapping[str, Any]) -> list[str]:
    """The security groups that a template names; moto's fleets would launch without them."""
    interfaces = data.get("NetworkInterfaces") or ()
    of_interfaces = (group for each in interfaces for group in each.get("Groups") or ())
    return list(dict.fromkeys([*(data.get("SecurityGroupIds") or ()), *of_interfaces]))


def _priority(spec: SpotFleetLaunchSpec) -> float:
    """Lower comes first; EC2 puts overrides without a priority last."""
    return float((spec.overrides or {}).get("Priority", "inf"))


def _out_of(spec: SpotFleetLaunchSpec, offering: Offering) -> Shortfall:
    words = (
        f"We currently do not have sufficient {offering.instance_type} capacity in the "
        f"Availability Zone you requested ({offering.zone})."
    )
    return Shortfall(spec, "InsufficientInstanceCapacity", words)


def _no_address(spec: SpotFleetLaunchSpec) -> Shortfall:
    """Source: aws/karpenter-provider-aws#3380."""
    words = (
        f"There are not enough free addresses in subnet '{spec.subnet_id}' to satisfy the "
        "requested number of instances."
    )
    return Shortfall(spec, "InsufficientFreeAddressesInSubnet", words)


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
    zones = {each.id: each.availability_zone for each in responder.ec2_backend.describe_subnets()}
    if refused := launch_rules.of_fleet(responder.params, zones):
        raise refused.raised()
    result = cast(dict[str, Any], MOTO_ANSWER(responder).result)
    fleet = responder.ec2_backend.get_fleet(result["FleetId"])
    if isinstance(fleet, CapacityFleet) and fleet.shortfalls:
        result["Errors"] = [_error(shortfall, fleet) for shortfall in fleet.shortfalls]
    if token:
        model.answers[token] = (asked, result)
    return ActionResult(result)


# The newest one installed.
_installed: list[CapacityModel] = []


def install_capacity_model(model: CapacityModel, blocks: LocalBlocks) -> None:
    """Put `model` into moto's EC2, for every server and mock of this process.

    `blocks`: the reservations that launches may go into.

    Installing another model later replaces this one. Fleets of other types stay moto's own.
    """
    _installed[:] = [model]
    _install_rules()

    class ModelFleet(CapacityFleet):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.model, self.blocks = model, blocks
            self.shortfalls = []
            super().__init__(*args, **kwargs)
            asked = self.target_capacity_specification.get("DefaultTargetCapacityType")
            if asked in PREPAID:  # moto launches nothing then
                self.create_on_demand_requests(self.target_capacity)
            self.note_devices()

    def create_fleet(self: FleetsBackend, **asked: Any) -> Fleet:
        kind = ModelFleet if asked["fleet_type"] == "instant" else Fleet
        fleet = kind(self, random_fleet_id(), **asked)
        self.fleets[fleet.id] = fleet
        return fleet

    def answer(self: Fleets) -> ActionResult:
        return _answer(self, model)

    FleetsBackend.create_fleet = create_fleet  # type: ignore[assignment,method-assign]
    Fleets.create_fleet = answer  # type: ignore[method-assign]


@cache
def _install_rules() -> None:
    """EC2's own rules before RunInstances and launch templates, and what is listed late."""
    instances: Any = InstanceBackend
    template: Any = LaunchTemplate
    run, listed = instances.run_instances, instances.describe_instances
    create_version = template.create_version

    def run_instances(
        self: Any, image_id: str, count: int, user_data: Any, *rest: Any, **asked: Any
    ) -> Any:
        if refused := _refused_run(self, image_id, user_data, asked):
            raise refused.raised()
        made = run(self, image_id, count, user_data, *rest, **asked)
        until_s = time.monotonic() + _installed[0].listed_after_s
        _installed[0].listed_at_s.update({each.id: until_s for each in made.instances})
        return made

    def describe_instances(self: Any, filters: Any = None) -> list[Any]:
        now_s, at_s = time.monotonic(), _installed[0].listed_at_s
        found = list(listed(self, filters))
        for each in found:
            each.instances = [one for one in each.instances if at_s.get(one.id, now_s) <= now_s]
        return [each for each in found if each.instances]

    def version(self: Any, data: Any, description: str) -> Any:
        if refused := launch_rules.of_template(data):
            raise refused.raised()
        return create_version(self, data, description)

    instances.run_instances = run_instances
    instances.describe_instances = describe_instances
    template.create_version = version


def _refused_run(
    backend: Any, image_id: str, user_data: Any, asked: Mapping[str, Any]
) -> launch_rules.Refused | None:
    """What EC2 says against a RunInstances call. What a fleet launches was judged by itself."""
    if asked.get("fleet_id") or asked.get("spot_fleet_id"):
        return None
    named, subnet_id = asked.get("launch_template"), asked.get("subnet_id")
    data = dict(backend._get_template_from_args(named).data) if named else {}
    own = {
        "BlockDeviceMappings": asked.get("block_device_mappings"),
        "NetworkInterfaces": asked.get("nics"),
        "SecurityGroupIds": asked.get("security_group_ids"),
        "MetadataOptions": asked.get("metadata_options"),
    }
    data |= {name: value for name, value in own.items() if value}
    launch = Asked(
        data=data,
        image_id=image_id,
        instance_type=str(asked.get("instance_type")),
        zone=backend.get_subnet(subnet_id).availability_zone if subnet_id else "",
        tags=tuple((asked.get("tags") or {}).get("instance", {})),
        snapshot_gib=_installed[0].snapshot_gib.get(image_id, 0),
        is_fleet=False,
    )
    return launch_rules.of_user_data(user_data) or launch_rules.of_launch(launch)
