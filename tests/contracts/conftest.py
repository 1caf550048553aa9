"""The local cloud that the real adapters are held against."""

from collections.abc import Iterator
from itertools import count

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_resources
from tests.make import NOW_S
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.ports import Ledger
from tidegate.sim.clock import SimClock
from tidegate.sim.ledger import SimLedger

NUMBERS = count(1)


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


@pytest.fixture
def names(cloud: LocalCloud) -> CloudNames:
    """A cluster of its own for each test: nothing in the cloud is shared but the market."""
    cloud.capacity.dry.clear()
    cloud.capacity.limited.clear()
    cloud.capacity.full_subnets.clear()
    return create_resources(cloud, f"c{next(NUMBERS)}")


@pytest.fixture
def clock() -> SimClock:
    return SimClock(NOW_S)


@pytest.fixture(params=["sim", "moto"])
def ledger(request: pytest.FixtureRequest, clock: SimClock) -> Ledger:
    if request.param == "sim":
        return SimLedger(clock)
    cloud: LocalCloud = request.getfixturevalue("cloud")
    names: CloudNames = request.getfixturevalue("names")
    return DynamoLedger(cloud.client("dynamodb"), names.table, clock)
