import pytest

from tests.agent.fakes import FakeBus, FakeClock, FakeSlurm


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def bus() -> FakeBus:
    return FakeBus()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
