"""One synthesized stack for all tests that only read it."""

import pytest

from tests.cdk.made import Stack, dev_file, synthesized


@pytest.fixture(scope="session")
def both(tmp_path_factory) -> dict[str, Stack]:
    """The two stacks of clusters/dev.yaml."""
    return synthesized(tmp_path_factory.mktemp("dev"), dev_file())


@pytest.fixture(scope="session")
def dev(both: dict[str, Stack]) -> Stack:
    """The stack with what can be made again."""
    return both["tidegate-dev"]


@pytest.fixture(scope="session")
def data(both: dict[str, Stack]) -> Stack:
    """The stack with what is kept."""
    return both["tidegate-dev-data"]
