"""What every `Compute` promises: run on the simulated EC2 and on the adapter against moto."""

from dataclasses import replace
from typing import Protocol

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_launch_template
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.core.model.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    FleetRequest,
    FleetResult,
    Market,
    Offering,
    Override,
    RefusalKind,
)
from tidegate.core.model.errors import RequestMismatch
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute

A, B = "us-east-1a", "us-east-1b"
T4_A = Offering("g4dn.xlarge", A, Market.ON_DEMAND)
T4_B = Offering("g4dn.xlarge", B, Market.ON_DEMAND)
A10G_A = Offering("g5.xlarge", A, Market.ON_DEMAND)
A10G_B = Offering("g5.xlarge", B, Market.ON_DEMAND)


class Ec2(Protocol):
    """A `Compute` whose market the test can script."""

    @property
    def compute(self) -> SimCompute | Ec2Compute: ...

    def limit(self, offering: Offering, left: int) -> None: ...

    def fill(self, zone: str) -> str:
        """The zone's subnet has no free address any more; its id."""
        ...

    def request(
        self, *offerings: Offering, count: int = 1, min_count: int = 0, token: str = "token"
    ) -> FleetRequest: ...


class SimEc2:
    def __init__(self) -> None:
        self.compute = SimCompute(SimClock())

    def limit(self, offering: Offering, left: int) -> None:
        self.compute.shortages[offering] = left

    def fill(self, zone: str) -> str:
        subnet_id = {A: "subnet-a", B: "subnet-b"}[zone]
        self.compute.full_subnets.add(subnet_id)
        return subnet_id

    def request(
        self, *offerings: Offering, count: int = 1, min_count: int = 0, token: str = "token"
    ) -> FleetRequest:
        return request_for(
            *offerings,
            count=count,
            min_count=min_count,
            token=token,
            template="lt-1",
            subnets={A: "subnet-a", B: "subnet-b"},
        )


class MotoEc2:
    def __init__(self, cloud: LocalCloud, names: CloudNames) -> None:
        self.compute = Ec2Compute(cloud.client("ec2"), names.cluster)
        self.cloud, self.names = cloud, names
        self.template = create_launch_template(cloud, f"{names.cluster}-nodes", "#!/bin/sh\n")

    def limit(self, offering: Offering, left: int) -> None:
        self.cloud.capacity.limited[offering] = left

    def fill(self, zone: str) -> str:
        self.cloud.capacity.full_subnets.add(self.names.subnets[zone])
        return self.names.subnets[zone]

    def request(
        self, *offerings: Offering, count: int = 1, min_count: int = 0, token: str = "token"
    ) -> FleetRequest:
        return request_for(
            *offerings,
            count=count,
            min_count=min_count,
            token=f"{self.names.cluster}-{token}",
            template=self.template,
            subnets=dict(self.names.subnets),
        )


def request_for(
    *offerings: Offering,
    count: int,
    min_count: int,
    token: str,
    template: str,
    subnets: dict[str, str],
) -> FleetRequest:
    return FleetRequest(
        client_token=token,
        launch_template_id=template,
        launch_template_version="1",
        market=offerings[0].market,
        count=count,
        min_count=min_count,
        overrides=tuple(
            Override(one.instance_type, one.zone, subnets[one.zone], priority)
            for priority, one in enumerate(offerings)
        ),
        tags=((LAUNCH_TAG, "l-1"), (POOL_TAG, "t4")),
    )


@pytest.fixture(params=["sim", "moto"])
def ec2(request: pytest.FixtureRequest) -> Ec2:
    if request.param == "sim":
        return SimEc2()
    return MotoEc2(request.getfixturevalue("cloud"), request.getfixturevalue("names"))


def ids(result: FleetResult) -> set[str]:
    return {instance.instance_id for instance in result.instances}


def offerings(result: FleetResult) -> list[Offering]:
    return sorted(instance.offering for instance in result.instances)


def refused(result: FleetResult) -> set[Offering]:
    return {refusal.offering for refusal in result.refusals}


def alive(ec2: Ec2) -> set[str]:
    return {one.instance_id for one in ec2.compute.instances() if one.is_alive}


def test_a_fleet_comes_from_the_first_offering_when_there_is_room(ec2: Ec2) -> None:
    result = ec2.compute.create_fleet(ec2.request(A10G_B, T4_A, count=3))

    assert offerings(result) == [A10G_B] * 3
    assert result.refusals == ()


def test_the_priority_decides_and_not_the_place_in_the_request(ec2: Ec2) -> None:
    request = ec2.request(A10G_B, T4_A, count=2)
    turned = replace(request, overrides=request.overrides[::-1])

    assert offerings(ec2.compute.create_fleet(turned)) == [A10G_B] * 2


def test_what_was_bought_is_listed_with_its_launch_and_pool(ec2: Ec2) -> None:
    result = ec2.compute.create_fleet(ec2.request(T4_B, count=2))

    listed = ec2.compute.instances()
    assert {one.instance_id for one in listed} == ids(result)
    assert {(one.offering, one.launch_id, one.pool) for one in listed} == {(T4_B, "l-1", "t4")}
    assert all(one.is_alive for one in listed)


def test_what_a_launch_brought_is_found_when_it_has_ended_too(ec2: Ec2) -> None:
    first, second = sorted(ids(ec2.compute.create_fleet(ec2.request(T4_B, count=2))))
    ec2.compute.terminate([first])

    found = {one.instance_id: one for one in ec2.compute.launched_by(["l-1", "l-none"])}

    assert {name: one.is_alive for name, one in found.items()} == {first: False, second: True}
    assert {(one.offering, one.pool) for one in found.values()} == {(T4_B, "t4")}
    assert ec2.compute.launched_by(["l-none"]) == ec2.compute.launched_by([]) == ()


def test_what_is_asked_for_by_its_id_is_shown_when_it_has_ended_too(ec2: Ec2) -> None:
    first, second = sorted(ids(ec2.compute.create_fleet(ec2.request(T4_B, count=2))))
    ec2.compute.terminate([first])

    found = ec2.compute.by_id([first, second, "i-00000000000000000"])

    assert {one.instance_id: one.is_alive for one in found} == {first: False, second: True}
    assert {one.instance_id for one in ec2.compute.instances() if one.is_alive} == {second}
    assert ec2.compute.by_id(["i-00000000000000000"]) == ec2.compute.by_id([]) == ()


def test_launch_times_of_result_and_list_agree(ec2: Ec2) -> None:
    (bought,) = ec2.compute.create_fleet(ec2.request(T4_A)).instances

    (listed,) = ec2.compute.instances()
    assert bought.launched_at_s == pytest.approx(listed.launched_at_s, abs=2)


def test_spot_is_bought_and_listed_as_spot(ec2: Ec2) -> None:
    spot = replace(T4_A, market=Market.SPOT)

    result = ec2.compute.create_fleet(ec2.request(spot))

    assert offerings(result) == [spot]
    assert [one.offering for one in ec2.compute.instances()] == [spot]


def test_the_same_request_again_buys_nothing_and_gets_the_same_answer(ec2: Ec2) -> None:
    request = ec2.request(T4_A, count=2)
    first = ec2.compute.create_fleet(request)

    again = ec2.compute.create_fleet(request)

    assert ids(again) == ids(first)
    assert alive(ec2) == ids(first)


def test_another_request_under_a_used_token_is_a_mismatch_and_buys_nothing(ec2: Ec2) -> None:
    first = ec2.compute.create_fleet(ec2.request(T4_A, count=1))

    with pytest.raises(RequestMismatch):
        ec2.compute.create_fleet(ec2.request(T4_A, count=2))

    assert alive(ec2) == ids(first)


def test_a_short_offering_is_named_and_the_next_one_fills_up(ec2: Ec2) -> None:
    ec2.limit(T4_A, 1)

    result = ec2.compute.create_fleet(ec2.request(T4_A, T4_B, count=3))

    assert offerings(result) == [T4_A, T4_B, T4_B]
    assert [(one.offering, one.kind) for one in result.refusals] == [(T4_A, RefusalKind.CAPACITY)]
    assert result.refusals[0].code == "InsufficientInstanceCapacity"


def test_a_fleet_may_come_in_part(ec2: Ec2) -> None:
    ec2.limit(T4_A, 2)

    result = ec2.compute.create_fleet(ec2.request(T4_A, count=5))

    assert offerings(result) == [T4_A, T4_A]
    assert refused(result) == {T4_A}


def test_a_full_subnet_is_refused_as_such_and_named(ec2: Ec2) -> None:
    full = ec2.fill(A)

    result = ec2.compute.create_fleet(ec2.request(T4_A, T4_B, count=2))

    assert offerings(result) == [T4_B] * 2
    (refusal,) = result.refusals
    assert (refusal.offering, refusal.kind) == (T4_A, RefusalKind.SUBNET)
    assert refusal.subnet == full
    assert full in refusal.message


def test_when_nothing_is_to_be_had_every_offering_is_refused(ec2: Ec2) -> None:
    for offering in (T4_A, T4_B, A10G_A):
        ec2.limit(offering, 0)

    result = ec2.compute.create_fleet(ec2.request(T4_A, T4_B, A10G_A, count=2))

    assert result.instances == ()
    assert refused(result) == {T4_A, T4_B, A10G_A}
    assert alive(ec2) == set()


def test_capacity_that_was_bought_is_gone(ec2: Ec2) -> None:
    ec2.limit(T4_A, 1)
    ec2.compute.create_fleet(ec2.request(T4_A, token="first"))

    result = ec2.compute.create_fleet(ec2.request(T4_A, token="second"))

    assert result.instances == ()
    assert refused(result) == {T4_A}


def test_a_short_market_says_nothing_about_the_other(ec2: Ec2) -> None:
    ec2.limit(replace(T4_A, market=Market.SPOT), 0)

    result = ec2.compute.create_fleet(ec2.request(T4_A))

    assert offerings(result) == [T4_A]


def test_a_gang_that_no_zone_can_hold_buys_nothing(ec2: Ec2) -> None:
    ec2.limit(T4_A, 2)
    ec2.limit(T4_B, 2)

    result = ec2.compute.create_fleet(ec2.request(T4_A, T4_B, count=3, min_count=3))

    assert result.instances == ()
    assert refused(result) == {T4_A, T4_B}
    assert alive(ec2) == set()


def test_a_refused_gang_takes_no_capacity_away(ec2: Ec2) -> None:
    ec2.limit(T4_A, 2)
    ec2.compute.create_fleet(ec2.request(T4_A, count=3, min_count=3, token="gang"))

    result = ec2.compute.create_fleet(ec2.request(T4_A, count=2, token="single"))

    assert offerings(result) == [T4_A, T4_A]


def test_a_gang_comes_from_one_zone(ec2: Ec2) -> None:
    ec2.limit(T4_A, 2)

    result = ec2.compute.create_fleet(ec2.request(T4_A, T4_B, count=3, min_count=3))

    assert offerings(result) == [T4_B] * 3
    assert refused(result) == {T4_A}


def test_a_gang_may_mix_types_within_its_zone(ec2: Ec2) -> None:
    ec2.limit(T4_A, 2)
    ec2.limit(A10G_B, 0)
    ec2.limit(T4_B, 0)

    asked = ec2.request(T4_A, T4_B, A10G_A, A10G_B, count=3, min_count=3)
    result = ec2.compute.create_fleet(asked)

    assert offerings(result) == [T4_A, T4_A, A10G_A]


def test_more_than_the_minimum_may_come_in_part(ec2: Ec2) -> None:
    ec2.limit(T4_A, 3)

    result = ec2.compute.create_fleet(ec2.request(T4_A, count=5, min_count=2))

    assert offerings(result) == [T4_A] * 3


def test_ended_instances_are_no_longer_alive(ec2: Ec2) -> None:
    first, *others = sorted(ids(ec2.compute.create_fleet(ec2.request(T4_A, count=3))))

    ec2.compute.terminate([first])

    assert alive(ec2) == set(others)


def test_an_unknown_id_keeps_no_other_instance_alive(ec2: Ec2) -> None:
    bought = sorted(ids(ec2.compute.create_fleet(ec2.request(T4_A, count=3))))

    ec2.compute.terminate([bought[0], "i-0000000000000dead", *bought[1:], "i-0000000000000beef"])

    assert alive(ec2) == set()


def test_ending_twice_or_nothing_is_no_error(ec2: Ec2) -> None:
    bought = sorted(ids(ec2.compute.create_fleet(ec2.request(T4_A))))
    ec2.compute.terminate(bought)

    ec2.compute.terminate(bought)
    ec2.compute.terminate([])

    assert alive(ec2) == set()


def test_requests_side_by_side_are_each_answered_once(ec2: Ec2) -> None:
    ec2.limit(T4_B, 0)
    asked = [
        ec2.request(T4_A, token="1"),
        ec2.request(T4_B, token="2"),
        ec2.request(A10G_A, A10G_B, count=2, token="3"),
    ]

    came = [each for batch in ec2.compute.create_fleets(asked) for each in batch]

    found = {each.request: each.result for each in came}
    assert len(came) == len(found) == 3
    results = [found[each] for each in asked]
    assert all(isinstance(each, FleetResult) for each in results)
    assert [len(each.instances) for each in results if isinstance(each, FleetResult)] == [1, 0, 2]
    assert len(alive(ec2)) == 3


def test_side_by_side_a_used_token_is_the_answer_of_its_request_alone(ec2: Ec2) -> None:
    ec2.compute.create_fleet(ec2.request(T4_A, count=1))

    answers = ec2.compute.create_fleets(
        [ec2.request(T4_A, count=2), ec2.request(T4_A, token="new")]
    )
    found = {each.request.client_token: each.result for batch in answers for each in batch}

    assert sorted(type(each).__name__ for each in found.values()) == [
        "FleetResult",
        "RequestMismatch",
    ]
    assert len(alive(ec2)) == 2
