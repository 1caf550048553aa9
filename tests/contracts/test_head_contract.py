"""What every `Head` promises: run on the simulated one and on the adapter against moto."""

from typing import Protocol

import pytest

from local.cloud import IMAGE_ID, LocalCloud
from local.cloud_resources import CloudNames
from tidegate.adapters.ec2_head import Ec2Head
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG, InstanceState
from tidegate.ports import Head
from tidegate.sim.clock import SimClock
from tidegate.sim.head import SimHead


class Bench(Protocol):
    @property
    def head(self) -> Head: ...

    def lose(self) -> None:
        """The head is terminated and not replaced."""
        ...

    def settle(self) -> None:
        """Let a change that was asked for come to its end."""
        ...


class SimBench:
    def __init__(self) -> None:
        self._clock = SimClock()
        self.head = SimHead(self._clock)

    def lose(self) -> None:
        self.head.exists = False

    def settle(self) -> None:
        self._clock.advance(self.head.start_s + self.head.stop_s)


class MotoBench:
    def __init__(self, cloud: LocalCloud, names: CloudNames) -> None:
        self.ec2 = cloud.client("ec2")
        self.cluster = names.cluster
        self.head = Ec2Head(self.ec2, names.cluster)
        self.instance_id = self.launch()

    def launch(self, **tags: str) -> str:
        every = {CLUSTER_TAG: self.cluster, ROLE_TAG: HEAD_ROLE} | tags
        tag_list = [{"Key": key, "Value": value} for key, value in every.items()]
        made = self.ec2.run_instances(
            ImageId=IMAGE_ID,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tag_list}],
        )
        return str(made["Instances"][0]["InstanceId"])

    def lose(self) -> None:
        self.ec2.terminate_instances(InstanceIds=[self.instance_id])

    def settle(self) -> None:
        """moto takes no time."""

    def state_of(self, instance_id: str) -> str:
        described = self.ec2.describe_instances(InstanceIds=[instance_id])
        return str(described["Reservations"][0]["Instances"][0]["State"]["Name"])


@pytest.fixture
def moto(cloud: LocalCloud, names: CloudNames) -> MotoBench:
    return MotoBench(cloud, names)


@pytest.fixture(params=["sim", "moto"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return SimBench() if request.param == "sim" else request.getfixturevalue("moto")


def test_a_head_stops_and_starts_again(bench: Bench) -> None:
    states = [bench.head.state()]
    for ask in (bench.head.stop, bench.head.start):
        assert ask() == ""
        bench.settle()
        states.append(bench.head.state())

    assert states == [InstanceState.RUNNING, InstanceState.STOPPED, InstanceState.RUNNING]


def test_what_is_so_already_is_no_trouble(bench: Bench) -> None:
    assert bench.head.start() == ""
    assert bench.head.state() is InstanceState.RUNNING

    for _ in range(2):
        assert bench.head.stop() == ""
        bench.settle()
    assert bench.head.state() is InstanceState.STOPPED


def test_a_lost_head_is_none_and_cannot_be_started(bench: Bench) -> None:
    bench.lose()

    assert bench.head.state() is None
    assert bench.head.start() == "the head: EC2 shows no instance with its tags"
    assert bench.head.stop() == "the head: EC2 shows no instance with its tags"


def test_a_replaced_head_is_found(moto: MotoBench) -> None:
    moto.lose()
    successor = moto.launch()

    moto.head.stop()

    assert moto.state_of(successor) == "stopped"


def test_nodes_and_heads_of_others_are_left_alone(moto: MotoBench) -> None:
    node = moto.launch(**{ROLE_TAG: "node"})
    other = moto.launch(**{CLUSTER_TAG: f"{moto.cluster}-other"})

    moto.head.stop()

    assert moto.state_of(moto.instance_id) == "stopped"
    assert {moto.state_of(node), moto.state_of(other)} == {"running"}
