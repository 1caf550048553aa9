"""How many calls a look makes for a thousand nodes, and how long it takes at AWS's latencies.

python -m bench.calls

The control loop on simulated ports under virtual time: CreateFleet takes 3 s, every other call of
AWS 50 ms, and what is asked side by side takes its time side by side, as many at once as the
port allows. Each call of a port counts for the AWS calls that its adapter makes;
`tests/adapters/test_calls.py` compares them with what reaches the local cloud.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench import small
from bench.figures import Figure, table
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Job, Node, NodeState, Reading, Shape
from tidegate.ports import FLEETS_AT_ONCE
from tidegate.service.control import Control, Looked
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.ledger import SimLedger
from tidegate.sim.placement import placement

FLEET_S, OTHER_S = 3.0, 0.05
ASKED_WITHIN_S = 20.0
LIVES_S = 45.0  # a planner's time-out
RELEASE = "22.05.8"
CALLS_MAX = 60
NODES, GANG = 1000, 8

BOOT_S, LONG_S = 120.0, 7200.0

# Of the others each method is one call. A page of the ledger has about 1,000 nodes.
FREE = ("create_fleet",)  # counted where all of them are under way
VIEW = 2  # the epoch, then the rest
PAGE = 1000


def gangs(number: int = NODES // GANG) -> list[Job]:
    return [_job(n, nodes=GANG) for n in range(number)]


def singles(number: int = NODES) -> list[Job]:
    return [_job(n) for n in range(number)]


def unlike_gangs() -> list[Job]:
    """Of 2 to 21 nodes: no two may share a call, and all want the same node."""
    return [_job(n, nodes=2 + n) for n in range(20)]


def _job(number: int, nodes: int = 1) -> Job:
    """Each node is the job's alone."""
    shape = Shape(small.A10G_BIG.gpus, small.A10G_BIG.gpu_type, 1, 1000)
    return Job(str(number), "PENDING", ("gpu",), nodes, shape, "ada", reason="Resources")


def cluster() -> Cluster:
    return small.cluster(small.A10G_BIG, markets=(Market.ON_DEMAND,))


@dataclass
class Slow:
    """A cluster whose AWS takes its time. `asked_s`: when the last CreateFleet was answered."""

    of: Cluster = field(default_factory=cluster)
    calls: Counter[str] = field(default_factory=Counter)
    asked_s: float = 0.0
    sequence: int = 0

    def __post_init__(self) -> None:
        self.clock = SimClock()
        self.compute = SimCompute(self.clock, in_flight=self._in_flight)
        self.ledger = SimLedger(self.clock)
        self.bus = SimBus(self.clock)
        self.began_s = self.clock.now_s()

    def look(self, jobs: Sequence[Job], nodes: Sequence[Node] = ()) -> Looked:
        """The head reports these jobs and nodes; then one planner looks."""
        self.calls.clear()
        self.sequence += 1
        stamp = Stamp("i-head", agent_started_at_s=0.0, sequence=self.sequence)
        reading = Reading(RELEASE, tuple(jobs), tuple(nodes))
        self.bus.put_digest(Digest(self.of.name, stamp, self.clock.now_s(), reading))
        for port in (self.compute, self.ledger, self.bus):
            port.faults = self._passes
        self.began_s = self.clock.now_s()
        parts = self.of, self.compute, self.ledger, self.bus, self.clock
        return Control(*parts, placement(self.of)).look()

    @property
    def took_s(self) -> float:
        return self.clock.now_s() - self.began_s

    def _passes(self, point: str) -> None:
        when, method = point.split()
        if when == "before" and method not in FREE:
            pages = 1 + len(self.compute.live()) // PAGE
            number = {"view": VIEW - 1 + pages, "instances": pages}.get(method, 1)
            self.calls[method] += number
            self.clock.advance(number * OTHER_S)

    def _in_flight(self, number: int) -> None:
        self.calls["create_fleet"] += number
        assert number <= FLEETS_AT_ONCE, "more than go side by side"
        self.clock.advance(FLEET_S)
        self.asked_s = self.took_s


CASES: dict[str, Callable[[], Sequence[Job]]] = {
    "1,000 nodes as 125 gangs of 8": gangs,
    "1,000 nodes for single jobs": singles,
    "20 gangs of 2 to 21, one type": unlike_gangs,
}


def joined(slow: Slow, idle_s: float = 0.0) -> list[Node]:
    """Every instance as a node of Slurm, without a job for so long."""
    busy_at_s = slow.clock.now_s() - idle_s
    return [_node(each.instance_id, busy_at_s) for each in slow.compute.live()]


def _node(name: str, last_busy_at_s: float) -> Node:
    kind = small.A10G_BIG
    return Node(
        name,
        NodeState.parse("IDLE+DYNAMIC_NORM"),
        kind.vcpus,
        kind.slurm_memory_mib,
        kind.gpus,
        kind.gpu_type,
        last_busy_at_s=last_busy_at_s,
    )


def afterwards() -> Iterator[tuple[str, Slow]]:
    """Looks at a thousand nodes that have just joined, that nothing needs any more, that Slurm has
    let go of, and that EC2 has ended.
    """
    slow = Slow()
    slow.look(singles())
    slow.clock.advance(BOOT_S)
    slow.look(singles(), joined(slow))
    yield "1,000 nodes that have joined", slow
    slow.clock.advance(LONG_S)
    slow.look((), joined(slow, LONG_S))
    yield "1,000 nodes to let go", slow
    slow.look(())
    yield "1,000 nodes to end", slow
    slow.look(())
    yield "1,000 nodes that have ended", slow


def figures() -> Iterator[Figure]:
    for name, slow in afterwards():
        yield Figure(f"{name}: AWS calls of a look", slow.calls.total(), "", CALLS_MAX)
        yield Figure(f"{name}: the whole look", round(slow.took_s, 2), "s", LIVES_S)
    for name, jobs in CASES.items():
        slow = Slow()
        slow.look(jobs())
        wanted = sum(each.nodes for each in jobs())
        assert len(slow.compute.live()) == wanted, f"not all nodes for {name}"
        yield Figure(f"{name}: AWS calls of a look", slow.calls.total(), "", CALLS_MAX)
        yield Figure(f"{name}: of these CreateFleet", slow.calls["create_fleet"], "")
        yield Figure(f"{name}: asked for", round(slow.asked_s, 2), "s", ASKED_WITHIN_S)
        yield Figure(f"{name}: the whole look", round(slow.took_s, 2), "s", LIVES_S)


def main() -> None:
    print(table(list(figures())))


if __name__ == "__main__":
    main()
