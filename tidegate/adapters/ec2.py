"""EC2: fleets of type `instant`, the cluster's instances, and their end."""

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import field
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import (
    aws_call,
    code_of,
    cure,
    is_instance_not_found,
    is_never_stopped,
    is_not_now,
    is_of_ended,
    is_protected,
    is_refusal,
    message_of,
    refusal_kind,
    tolerating,
)
from tidegate.adapters.clock import SystemClock, answered_at_s
from tidegate.adapters.dry_runs import refused_by
from tidegate.adapters.ec2_instances import instance_of, tags_of
from tidegate.core.model.ec2 import (
    CLUSTER_TAG,
    HEAD_ROLE,
    JOB_TAG,
    LAUNCH_TAG,
    LOGIN_ROLE,
    POOL_TAG,
    ROLE_TAG,
    TEMPLATE_TAG,
    FleetRequest,
    FleetResult,
    Instance,
    InstanceState,
    Market,
    Offering,
    Override,
    Refusal,
    RefusalKind,
)
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.ports import FLEETS_AT_ONCE, Answered, Clock

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, TagTypeDef

logger = logging.getLogger(__name__)

type Judge = Callable[[ClientError], bool]

# EC2 takes up to 1,000 ids; smaller chunks keep one unknown id from delaying many.
TERMINATE_CHUNK = 200

# EC2 takes up to 200 values in a filter ("List and filter using the CLI and API", EC2 user guide).
FILTER_CHUNK = 200

# A reservation is a discount on demand. What is lent: EC2 API, ReservedCapacityOptionsRequest.
_PAID_AS = {
    Market.SPOT: "spot",
    Market.ON_DEMAND: "on-demand",
    Market.RESERVED: "on-demand",
    Market.CAPACITY_BLOCK: "capacity-block",
    Market.INTERRUPTIBLE: "reserved-capacity",
}

_ALIVE: "FilterTypeDef" = {
    "Name": "instance-state-name",
    "Values": [each.value for each in InstanceState if each is not InstanceState.TERMINATED],
}


@frozen
class Ec2Compute:
    """The instances of one cluster."""

    client: "EC2Client"
    cluster: str
    clock: Clock = field(default_factory=SystemClock)

    def create_fleets(self, requests: Sequence[FleetRequest]) -> Generator[tuple[Answered, ...]]:
        """In threads: botocore's clients may be shared by them."""
        if len(requests) == 1:
            yield (self._answered(requests[0]),)
            return
        with ThreadPoolExecutor(FLEETS_AT_ONCE, "fleet") as threads:
            waiting = {threads.submit(self._answered, request) for request in requests}
            try:
                while waiting:
                    came, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield tuple(each.result() for each in came)
            finally:
                for each in waiting:
                    each.cancel()

    def _answered(self, request: FleetRequest) -> Answered:
        try:
            ask = self._start if request.starts else self.create_fleet
            return Answered(request, ask(request))
        except TidegateError as trouble:
            return Answered(request, trouble)

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """One alone. Errors: as `create_fleets` answers."""
        asked = fleet_arguments(request, self.cluster)
        with aws_call():
            answer = tolerating(
                lambda: self.client.create_fleet(**asked),
                lambda error: is_refusal(error) or is_of_ended(code_of(error)),
            )
        if isinstance(answer, ClientError) and is_of_ended(code_of(answer)):
            return FleetResult((), ())
        if isinstance(answer, ClientError):
            return FleetResult((), refuse_all(request, answer))
        launched_at_s = answered_at_s(answer, self.clock)
        return FleetResult(
            tuple(_launched(answer.get("Instances", ()), request, launched_at_s)),
            tuple(_refusals(answer.get("Errors", ()), request)),
        )

    def _start(self, request: FleetRequest) -> FleetResult:
        """The tags first, which the node reads as it boots. An instance that still stops, or has
        ended, brings nothing, and neither does what EC2 does not start for a reason of its own.

        Source: EC2 API, StartInstances; "Error codes for the Amazon EC2 API".
        """
        ids = [request.starts]
        tags: list[TagTypeDef] = [
            {"Key": k, "Value": v} for k, v in request.tags if k != CLUSTER_TAG
        ]
        with aws_call():
            self.client.create_tags(Resources=ids, Tags=tags)
            answer = tolerating(lambda: self.client.start_instances(InstanceIds=ids), is_not_now)
        if isinstance(answer, ClientError):
            refused = refuse_all(request, answer) if is_refusal(answer) else ()
            return FleetResult((), refused)
        entry = {"InstanceType": request.overrides[0].instance_type, "InstanceIds": ids}
        launched_at_s = answered_at_s(answer, self.clock)
        return FleetResult(tuple(_launched([entry], request, launched_at_s)), ())

    def dry_run(self, request: FleetRequest) -> str:
        """EC2 answers a call with DryRun by an error in any case: DryRunOperation means yes."""
        asked = fleet_arguments(request, self.cluster)
        refused = refused_by(self.client.create_fleet, **asked)
        return str(refused or "")

    def dry_run_instance(self, request: FleetRequest) -> str | None:
        """RunInstances, which a fleet calls as its caller, with PassRole for the nodes' role."""
        asked = instance_arguments(request, self.cluster)
        refused = refused_by(self.client.run_instances, **asked)
        # A template with interfaces of its own (EFA) takes no subnet beside it, but from a fleet.
        return None if refused and refused.is_of_shape else str(refused or "")

    def instances(self) -> tuple[Instance, ...]:
        return self._listed(_ALIVE)

    def launched_for(self, job_id: str) -> tuple[Instance, ...]:
        """Those that this job was the first to need. Errors: Throttled, NotAuthorized."""
        return self._listed(_ALIVE, {"Name": f"tag:{JOB_TAG}", "Values": [job_id]})

    def launched_by(self, launch_ids: Collection[str]) -> tuple[Instance, ...]:
        """Source: EC2 user guide, "Terminate Amazon EC2 instances": an ended instance is shown for
        a short while (about an hour, by the API reference), and its tags may go before it does.
        """
        return tuple(
            one
            for chunk in batched(sorted(launch_ids), FILTER_CHUNK, strict=False)
            for one in self._listed({"Name": f"tag:{LAUNCH_TAG}", "Values": list(chunk)})
        )

    def by_id(self, instance_ids: Collection[str]) -> tuple[Instance, ...]:
        """By a filter: one id that EC2 does not know would be an error for all of them."""
        return tuple(
            one
            for chunk in batched(sorted(instance_ids), FILTER_CHUNK, strict=False)
            for one in self._described({"Name": "instance-id", "Values": list(chunk)})
        )

    def _listed(self, *more: "FilterTypeDef") -> tuple[Instance, ...]:
        return self._described({"Name": f"tag:{CLUSTER_TAG}", "Values": [self.cluster]}, *more)

    def _described(self, *filters: "FilterTypeDef") -> tuple[Instance, ...]:
        pages = self.client.get_paginator("describe_instances").paginate(
            Filters=list(filters), PaginationConfig={"PageSize": 1000}
        )
        with aws_call():
            return tuple(
                instance_of(described)
                for page in pages
                for reservation in page["Reservations"]
                for described in reservation.get("Instances", ())
                if tags_of(described).get(ROLE_TAG) not in (HEAD_ROLE, LOGIN_ROLE)
            )

    def terminate(self, instance_ids: Sequence[str]) -> None:
        for chunk in batched(instance_ids, TERMINATE_CHUNK, strict=False):
            self._each(self.client.terminate_instances, chunk, is_instance_not_found)

    def stop(self, instance_ids: Sequence[str]) -> None:
        for chunk in batched(instance_ids, TERMINATE_CHUNK, strict=False):
            self._each(self.client.stop_instances, chunk, is_never_stopped)

    def _each(
        self, call: Callable[..., object], chunk: Sequence[str], is_passed_over: Judge
    ) -> None:
        """EC2 ends or stops none of them when it does not one, which may be protected: halve."""
        with aws_call():
            failed = tolerating(
                lambda: call(InstanceIds=list(chunk)),
                lambda error: is_passed_over(error) or is_protected(error),
            )
        if isinstance(failed, ClientError) and len(chunk) > 1:
            middle = len(chunk) // 2
            self._each(call, chunk[:middle], is_passed_over)
            self._each(call, chunk[middle:], is_passed_over)
        elif isinstance(failed, ClientError) and is_protected(failed):
            logger.warning("%s is not ended: %s", chunk[0], message_of(failed))


def fleet_arguments(request: FleetRequest, cluster: str) -> dict[str, Any]:
    """The CreateFleet call, made from the request alone so that a repeat is identical.

    The cluster tag is set here: an instance without it would never be found again.
    """
    return {
        "Type": "instant",
        "ClientToken": request.client_token,
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateId": request.launch_template_id,
                    "Version": request.launch_template_version,
                },
                "Overrides": [
                    {
                        "InstanceType": override.instance_type,
                        "SubnetId": override.subnet_id,
                        "Priority": float(override.priority),
                        **_grouped(override),
                    }
                    for override in request.overrides
                ],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.count,
            "DefaultTargetCapacityType": _PAID_AS[request.market],
        },
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": _tag_list(request, cluster)}
            for kind in ("fleet", "instance")
        ],
        **_market_options(request),
    }


def instance_arguments(request: FleetRequest, cluster: str) -> dict[str, Any]:
    """The RunInstances call that a fleet makes for one instance of the first override.

    The metadata options stand in the request too: policies with conditions on them look there and
    not into the template (aws/karpenter-provider-aws#9256).
    """
    first = request.overrides[0]
    market = {"InstanceMarketOptions": {"MarketType": _PAID_AS[request.market]}}
    return {
        "MinCount": 1,
        "MaxCount": 1,
        "LaunchTemplate": {
            "LaunchTemplateId": request.launch_template_id,
            "Version": request.launch_template_version,
        },
        "InstanceType": first.instance_type,
        "SubnetId": first.subnet_id,
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": _tag_list(request, cluster)},
        ],
        **(market if request.market is Market.SPOT else {}),
        **_grouped(first),
    }


def _tag_list(request: FleetRequest, cluster: str) -> list[dict[str, str]]:
    tags = dict(request.tags) | {CLUSTER_TAG: cluster}
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _market_options(request: FleetRequest) -> dict[str, Any]:
    """Strategies that keep our order; for spot EC2 puts capacity first and order second.

    EC2 takes a minimum only together with one zone or one type, and a gang needs one zone.
    """
    minimum: dict[str, Any] = {}
    if request.min_count > 1:
        minimum = {"MinTargetCapacity": request.min_count, "SingleAvailabilityZone": True}
    if request.market is Market.SPOT:
        strategy = "capacity-optimized-prioritized"
        return {"SpotOptions": {"AllocationStrategy": strategy, **minimum}}
    if request.market is Market.CAPACITY_BLOCK:
        # The launch template names the block; EC2 takes no options beside it.
        return {}
    if request.market is Market.INTERRUPTIBLE:
        return {"ReservedCapacityOptions": {"ReservationTypes": [request.market.value]}}
    # Of a reservation as well: beside the usage strategy `use-capacity-reservations-first` a fleet
    # passes over templates that name one (Karpenter, designs/odcr.md, appendix).
    return {"OnDemandOptions": {"AllocationStrategy": "prioritized", **minimum}}


def _grouped(override: Override) -> dict[str, Any]:
    group = override.placement_group
    return {"Placement": {"GroupName": group}} if group else {}


def refuse_all(request: FleetRequest, error: ClientError) -> tuple[Refusal, ...]:
    """EC2 refused the whole call: none of its offerings is to be had."""
    code, message = code_of(error), message_of(error)
    every = _each_refused(request, request.overrides, code, message)
    return tuple({one.key: one for one in every}.values())


def _each_refused(
    request: FleetRequest, overrides: Iterable[Override], code: str, message: str
) -> Iterator[Refusal]:
    kind = refusal_kind(code, message)
    for each in overrides:
        yield Refusal(
            *(_offering(each, request), kind, code, message, cure(code, message)),
            subnet=each.subnet_id if kind is RefusalKind.SUBNET else "",
        )


def _launched(
    entries: Sequence[Mapping[str, Any]], request: FleetRequest, launched_at_s: float
) -> Iterator[Instance]:
    tags = dict(request.tags)
    for entry in entries:
        offering = _offering(_meant(entry, request)[0], request)
        for instance_id in entry.get("InstanceIds", ()):
            yield Instance(
                instance_id=instance_id,
                offering=offering,
                state=InstanceState.PENDING,
                launched_at_s=launched_at_s,
                launch_id=tags.get(LAUNCH_TAG, ""),
                pool=tags.get(POOL_TAG, ""),
                template=tags.get(TEMPLATE_TAG, ""),
            )


def _refusals(entries: Sequence[Mapping[str, Any]], request: FleetRequest) -> tuple[Refusal, ...]:
    """One refusal per offering: EC2 may report an override once per attempt."""
    refusals: dict[Offering, Refusal] = {}
    for entry in entries:
        code, message = entry.get("ErrorCode", ""), entry.get("ErrorMessage", "")
        if is_of_ended(code):
            continue
        for refusal in _each_refused(request, _meant(entry, request), code, message):
            before = refusals.get(refusal.offering)
            # A word about the offering says more than one about how we ask.
            if before is None or before.kind is RefusalKind.THROTTLED:
                refusals[refusal.offering] = refusal
    return tuple(refusals.values())


def _meant(entry: Mapping[str, Any], request: FleetRequest) -> tuple[Override, ...]:
    """The overrides that an entry of the answer is about.

    EC2 echoes the override with each instance and error; what it leaves out of the echo
    could be any of ours. The zone is that of the subnet we named.
    """
    echoed = entry.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    instance_type = echoed.get("InstanceType") or entry.get("InstanceType")
    subnet_id = echoed.get("SubnetId")
    return tuple(
        override
        for override in request.overrides
        if instance_type in (None, override.instance_type)
        and subnet_id in (None, override.subnet_id)
    )


def _offering(override: Override, request: FleetRequest) -> Offering:
    return Offering(override.instance_type, override.zone, request.market)
