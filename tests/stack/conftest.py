"""The template is synthesized once, the stack deployed afresh for each test file that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.stack_world import StackWorld
from tests.assemblies import assembled
from tests.stack.broken import CLUSTER_FILE as BROKEN_FILE
from tests.stack.world import CLUSTER_FILE, stacked


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody writes to it."""
    return assembled(CLUSTER_FILE, tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly of a cluster in which much can be broken."""
    return assembled(BROKEN_FILE, tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture
def world(assembly: Path) -> Iterator[StackWorld]:
    with stacked(assembly) as deployed:
        yield deployed
