"""The simulated ports where they do what AWS does only now and then."""

import pytest

from tests.contracts.test_compute_contract import T4_A, T4_B, offerings, request_for
from tests.make import NOW_S
from tidegate.core.model.ec2 import FleetRequest, Instance, Market, RefusalKind
from tidegate.core.model.errors import Throttled
from tidegate.core.model.orders import Order, OrderKind
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.faults import KillAt, Killed


def request(count: int = 1, *, min_count: int = 0, token: str = "token") -> FleetRequest:
    return request_for(
        T4_A,
        T4_B,
        count=count,
        min_count=min_count,
        token=token,
        template="lt-1",
        subnets={"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    )


def test_a_fresh_instance_is_missing_for_a_while() -> None:
    clock = SimClock()
    compute = SimCompute(clock, describe_lag_s=10)
    compute.create_fleet(request())

    assert compute.instances() == ()
    assert len(compute.live()) == 1

    clock.advance(10)
    assert len(compute.instances()) == 1


def test_an_exhausted_quota_is_named_and_counts_what_lives() -> None:
    compute = SimCompute(SimClock(), quotas={Market.ON_DEMAND: 2})

    result = compute.create_fleet(request(3))

    assert offerings(result) == [T4_A, T4_A]
    assert {one.kind for one in result.refusals} == {RefusalKind.QUOTA}

    compute.end(result.instances[0].instance_id)
    assert offerings(compute.create_fleet(request(1, token="next"))) == [T4_A]


def test_a_gang_above_the_quota_is_refused_for_the_quota() -> None:
    compute = SimCompute(SimClock(), quotas={Market.ON_DEMAND: 2})

    result = compute.create_fleet(request(3, min_count=3))

    assert result.instances == ()
    assert {one.kind for one in result.refusals} == {RefusalKind.QUOTA}


def test_a_full_subnet_is_named_and_passed_over() -> None:
    compute = SimCompute(SimClock(), full_subnets={"subnet-a"})

    result = compute.create_fleet(request(2))

    assert offerings(result) == [T4_B, T4_B]
    assert [(one.offering, one.kind) for one in result.refusals] == [(T4_A, RefusalKind.SUBNET)]


def test_the_world_hears_of_each_start_and_end_once() -> None:
    started: list[Instance] = []
    ended: list[Instance] = []
    compute = SimCompute(SimClock(), on_launch=[started.append], on_end=[ended.append])
    for _ in range(2):
        compute.create_fleet(request(2))

    first, second = compute.instances()
    compute.terminate([first.instance_id])
    compute.terminate([first.instance_id])

    assert {one.instance_id for one in started} == {first.instance_id, second.instance_id}
    assert [one.instance_id for one in ended] == [first.instance_id]


def test_a_kill_before_the_call_leaves_nothing_and_after_it_the_effect() -> None:
    for step, bought in ((0, 0), (1, 1)):
        compute = SimCompute(SimClock(), faults=KillAt(step))

        with pytest.raises(Killed):
            compute.create_fleet(request())

        assert len(compute.live()) == bought


def test_killed_is_no_exception_that_a_handler_would_catch() -> None:
    assert not issubclass(Killed, Exception)


def test_a_throttled_call_has_no_effect() -> None:
    def throttle(point: str) -> None:
        if point == "before create_fleet":
            raise Throttled("slow down")

    compute = SimCompute(SimClock(), faults=throttle)

    with pytest.raises(Throttled):
        compute.create_fleet(request())

    assert compute.live() == ()


def test_an_acknowledged_order_may_be_delivered_again() -> None:
    bus = SimBus(SimClock())
    order = Order("o-1", OrderKind.DRAIN, ("i-0b662ef9931388ba0",), NOW_S)
    bus.send_orders([order])
    (received,) = bus.receive_orders(urgent=True, wait_s=0)
    bus.acknowledge(received)

    bus.repeat(order)

    (again,) = bus.receive_orders(urgent=True, wait_s=0)
    assert again.order == order
