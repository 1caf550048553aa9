import pytest

from tests.agent.fakes import FakeBus, FakeClock, FakeSlurm, agent_of
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
    return agent_of(slurm, bus, clock)
