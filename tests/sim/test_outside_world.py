"""The simulated ports where they do what AWS does only now and then."""

from dataclasses import replace

import pytest

from tests.contracts.test_compute_contract import T4_A, T4_B, offerings, request_for
from tests.make import NOW_S
from tests.sim.test_world import one_gpu, run, states, world
from tidegate.core.model.ec2 import (
    FleetRequest,
    FleetResult,
    Instance,
    InstanceState,
    Market,
    RefusalKind,
)
from tidegate.core.model.errors import Throttled
from tidegate.core.model.orders import Order, OrderKind
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.faults import KillAt, Killed
from tidegate.sim.slurm_rows import node_row


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


def test_a_token_that_is_repeated_buys_nothing_whatever_ec2_says_of_it() -> None:
    compute = SimCompute(SimClock(), repeats_answers=False)
    first = compute.create_fleet(request(2))

    again = compute.create_fleet(request(2))

    assert len(first.instances) == len(compute.live()) == 2
    assert again == FleetResult((), ())


def test_a_retired_host_ends_spot_and_stops_what_is_not() -> None:
    clock = SimClock()
    compute = SimCompute(clock, ending_s=10)
    spot = replace(request(token="spot"), market=Market.SPOT)
    names = [compute.create_fleet(each).instances[0].instance_id for each in (request(), spot)]

    for name in names:
        compute.retire(name)
    clock.advance(60)

    assert compute.live() == ()
    (stopped,) = compute.instances()
    assert (stopped.instance_id, stopped.state) == (names[0], InstanceState.STOPPED)

    compute.terminate(names)
    clock.advance(60)
    assert compute.instances() == ()
    assert {one.state for one in compute.everything.values()} == {InstanceState.TERMINATED}


def test_what_is_opened_takes_no_job_until_it_answers() -> None:
    """Measured: 2 to 4 s on 22.05 and 24.11, in which it shows NOT_RESPONDING."""
    w = world()
    w.slurm.table.ping_s = 3.0
    w.slurm.submit(one_gpu())
    run(w, 70)
    (name,) = w.slurm.nodes
    w.slurm.drain([name], "ada looks at a fan")
    w.slurm.submit(one_gpu())
    run(w, 1)
    w.slurm.cancel("1")

    w.slurm.undrain([name])

    assert "NOT_RESPONDING" in node_row(w.slurm.nodes[name]).state.words
    assert states(w)["2"] == "PENDING"
    run(w, 3)
    assert "NOT_RESPONDING" not in node_row(w.slurm.nodes[name]).state.words
    assert states(w)["2"] == "RUNNING"


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
    assert [one.subnet for one in result.refusals] == ["subnet-a"]


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
