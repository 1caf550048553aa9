"""What every `Compute` and `Ledger` promises of nodes that are stopped and started again."""

from dataclasses import replace

import pytest

from tests.contracts.test_compute_contract import T4_A, Ec2, MotoEc2, SimEc2, alive, ids
from tests.contracts.test_ledger_contract import DRAIN, node, the_node, with_node
from tests.make import NOW_S
from tidegate.core.model.ec2 import LAUNCH_TAG, POOL_TAG, FleetResult, Offering
from tidegate.core.model.ledger import LaunchStatus, NodeRecord, Phase
from tidegate.ports import Finished, Ledger


@pytest.fixture(params=["sim", "moto"])
def ec2(request: pytest.FixtureRequest) -> Ec2:
    if request.param == "sim":
        return SimEc2()
    return MotoEc2(request.getfixturevalue("cloud"), request.getfixturevalue("names"))


def stopped(ledger: Ledger) -> NodeRecord:
    """Node i-1, which launch l-1 brought, is told to stop."""
    with_node(ledger, Phase.JOINED)
    ledger.stop_nodes(["i-1", "i-none"])
    return the_node(ledger)


def started(launch_id: str = "l-2") -> NodeRecord:
    return replace(node(), launch_id=launch_id, launched_at_s=NOW_S + 900, is_started=True)


def test_a_node_that_stops_is_released_and_the_first_time_counts(ledger: Ledger) -> None:
    first = stopped(ledger)

    ledger.stop_nodes(["i-1"])

    assert first.phase is Phase.RELEASED
    assert first.stopped_at_s is not None
    assert the_node(ledger) == first


def test_what_has_ended_is_not_told_to_stop(ledger: Ledger) -> None:
    with_node(ledger, Phase.TERMINATED)

    ledger.stop_nodes(["i-1"])

    (ended,) = ledger.nodes(["i-1"])
    assert (ended.phase, ended.stopped_at_s) == (Phase.TERMINATED, None)


def test_a_started_node_takes_the_place_of_what_it_was(ledger: Ledger) -> None:
    stopped(ledger)
    ledger.set_orders({"i-1": DRAIN})

    ledger.finish_launches(Finished("l-2", LaunchStatus.DONE, [started()]))

    assert the_node(ledger) == started()


def test_a_start_that_is_written_again_resets_nothing(ledger: Ledger) -> None:
    stopped(ledger)
    ledger.finish_launches(Finished("l-2", LaunchStatus.DONE, [started()]))
    ledger.advance_nodes({"i-1": Phase.RELEASED})
    ledger.finish_launches(Finished("l-2", LaunchStatus.DONE, [started()]))
    assert the_node(ledger).phase is Phase.RELEASED

    ledger.stop_nodes(["i-1"])
    ledger.finish_launches(Finished("l-2", LaunchStatus.DONE, [started()]))

    assert the_node(ledger).stopped_at_s is not None


@pytest.mark.parametrize("phase", [Phase.JOINED, Phase.TERMINATED])
def test_what_was_not_stopped_is_not_started(ledger: Ledger, phase: Phase) -> None:
    with_node(ledger, phase)

    ledger.finish_launches(Finished("l-2", LaunchStatus.DONE, [started()]))

    assert [(each.launch_id, each.phase) for each in ledger.nodes(["i-1"])] == [("l-1", phase)]


def start(ec2: Ec2, name: str, on: Offering = T4_A) -> FleetResult:
    """A start of a stopped instance, for launch l-2."""
    asked = ec2.request(on, token=f"start-{name}")
    request = replace(asked, starts=name, tags=((LAUNCH_TAG, "l-2"), (POOL_TAG, "t4")))
    ((answered,),) = ec2.compute.create_fleets([request])
    assert isinstance(answered.result, FleetResult)
    return answered.result


def bought(ec2: Ec2) -> str:
    (one,) = ec2.compute.create_fleet(ec2.request(T4_A)).instances
    return one.instance_id


def test_what_is_stopped_is_listed_and_does_not_live(ec2: Ec2) -> None:
    name = bought(ec2)

    ec2.compute.stop([name, "i-0123456789abcdef0"])
    ec2.compute.stop([name])

    (listed,) = ec2.compute.instances()
    assert (listed.instance_id, listed.is_alive, listed.is_stopped) == (name, False, True)
    assert listed.state_reason == "Client.UserInitiatedShutdown"


def test_what_is_started_lives_again_and_is_of_its_new_launch(ec2: Ec2) -> None:
    name = bought(ec2)
    ec2.compute.stop([name])

    first, again = start(ec2, name), start(ec2, name)

    assert ids(first) == ids(again) == {name}
    (listed,) = ec2.compute.instances()
    assert (listed.is_alive, listed.launch_id, listed.offering) == (True, "l-2", T4_A)


def test_what_is_stopped_can_be_ended(ec2: Ec2) -> None:
    name = bought(ec2)
    ec2.compute.stop([name])

    ec2.compute.terminate([name])

    assert ec2.compute.instances() == ()


def test_what_has_ended_is_not_started() -> None:
    """Of the simulated EC2 alone: moto starts it. EC2's word is in tests/adapters."""
    ec2 = SimEc2()
    name = bought(ec2)
    ec2.compute.stop([name])
    ec2.compute.terminate([name])

    assert start(ec2, name) == FleetResult((), ())
    assert alive(ec2) == set()
