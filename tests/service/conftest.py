"""A small simulated world around the real control loop."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.make import cluster, digest, placement
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Template
from tidegate.core.model.slurm import Job, Node
from tidegate.service.control import Control, Looked
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.faults import Faults
from tidegate.sim.ledger import SimLedger


@dataclass
class World:
    """One cluster's outside world; `control()` makes a planner that lives in it."""

    of: Cluster = field(default_factory=cluster)

    def __post_init__(self) -> None:
        self.clock = SimClock()
        self.compute = SimCompute(self.clock)
        self.ledger = SimLedger(self.clock)
        self.bus = SimBus(self.clock)
        self.sequence = 0

    def report(self, jobs: Sequence[Job] = (), nodes: Sequence[Node] = ()) -> Digest:
        """The head reports once more."""
        self.sequence += 1
        sent = digest(jobs, nodes, sequence=self.sequence)
        self.bus.put_digest(sent)
        return sent

    def control(self, **newer: Template) -> Control:
        """`newer`: what newer deployments made, by pool."""
        placed = placement(self.of)
        placed = replace(placed, templates={**placed.templates, **newer})
        return Control(self.of, self.compute, self.ledger, self.bus, self.clock, placed)

    def look(self, **newer: Template) -> Looked:
        return self.control(**newer).look()

    def break_with(self, faults: Faults) -> None:
        for port in (self.compute, self.ledger, self.bus):
            port.faults = faults


@pytest.fixture
def world() -> World:
    return World()
