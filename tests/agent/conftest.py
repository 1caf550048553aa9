import pytest

from tests.agent.fakes import NOW_S, FakeBus, FakeClock, FakeSlurm
from tidegate.agent.loop import Agent
from tidegate.agent.orders import Worker


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def bus() -> FakeBus:
    return FakeBus()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def worker(slurm, clock):
    return Worker(slurm, clock.sleep)


@pytest.fixture
def outcomes(worker, clock):
    """Carry an order out; outcome by name."""

    def carry(made):
        results = worker.carry_out([made], clock.now_s()).results
        assert all(one.detail.endswith(".") for one in results), "a detail is a sentence"
        return {one.name: one.outcome for one in results}

    return carry


@pytest.fixture
def agent(slurm, bus, clock):
    return Agent(
        slurm=slurm,
        bus=bus,
        clock=clock,
        cluster="dev",
        head_instance_id="i-1",
        agent_started_at_s=NOW_S,
        sleep=clock.sleep,
    )
