"""A small stack in the local cloud for each test, and a router over it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.deploy import Deployment, deploy, destroy
from local.router.router import Router
from tests.local.stack import HANDLERS, assembly, template

NUMBERS = count(1)


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


@dataclass
class Stack:
    """The stack of one test: deploy, put events, look."""

    cloud: LocalCloud
    folder: Path
    name: str
    template: dict[str, Any] = field(default_factory=template)
    handlers: str = HANDLERS

    def deploy(self) -> Deployment:
        return deploy(self.cloud, self.assembly(), self.name)

    def assembly(self) -> Path:
        return assembly(self.folder, self.name, self.template, self.handlers)

    def properties(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.template["Resources"][name].setdefault("Properties", {})
        return found

    def add(self, name: str, resource: dict[str, Any]) -> None:
        self.template["Resources"][name] = resource


@pytest.fixture
def stack(cloud: LocalCloud, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(cloud, tmp_path, f"stack{next(NUMBERS)}")
    yield made
    destroy(cloud, made.name)


@pytest.fixture
def route(cloud: LocalCloud) -> Iterator[Callable[..., Router]]:
    """Makes the router of a test, with what the test wants different."""
    with ExitStack() as running:

        def make(**different: Any) -> Router:
            return running.enter_context(Router(cloud, own_code=("handlers",), **different))

        yield make
