"""The template is synthesized once, the stack deployed afresh for each test file that asks."""

import os
from collections.abc import Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from local.assembly import synthesize
from tests.stack.broken import CLUSTER_FILE as BROKEN_FILE
from tests.stack.world import CLUSTER_FILE, StackWorld, stacked


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthesized once for all processes of a test run; nobody writes to it."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    out = folder / "stacked.out"
    with (folder / "stacked.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not out.exists():
            synthesize(CLUSTER_FILE, folder / "stacked.tmp").rename(out)
    return out


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly of a cluster in which much can be broken."""
    return synthesize(BROKEN_FILE, tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture
def world(assembly: Path) -> Iterator[StackWorld]:
    with stacked(assembly) as deployed:
        yield deployed
