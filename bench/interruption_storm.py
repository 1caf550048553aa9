"""1,000 notices in 10 s through the deployed stack: `python -m bench.interruption_storm`.

In real time: the events of the default bus, rule, queue, interruption function and orders are
those of the template in the local cloud, the agent is the head's. Slurm is the simulated one,
whose commands take what real ones were measured to take. The planner is switched off: it would
work in the local cloud's own process for seconds, and no notice waits for it.
"""

import argparse
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.deployed import CLUSTER_FILE, Live, live
from bench.figures import Figure, percentile, table
from bench.interruption import NAMES_PER_COMMAND, NOTICES, WITHIN_S, CostlySlurm
from tidegate.adapters.clock import SystemClock
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import LaunchStatus, NodeRecord, Phase
from tidegate.core.model.slurm import Shape
from tidegate.ports import Finished
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimNode, Submit
from tidegate.wire.config import load_cluster

STEP_S = 0.2
GRACE_S = 15
KINDS = ("drain", "signal", "requeue")


@dataclass(slots=True)
class LiveSlurm:
    """The simulated Slurm in real time: one command at a time, and a log that grows."""

    slurm: SimSlurm
    log: Path
    costly: CostlySlurm = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.costly = CostlySlurm(self.slurm, SystemClock(), time.sleep)
        self.log.touch()

    def __getattr__(self, name: str) -> Any:
        command = getattr(self.costly, name)

        def locked(*given: Any) -> Any:
            with self.lock:
                return command(*given)

        return locked

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Time passes."""
        is_over = threading.Event()

        def step() -> None:
            seen = -1
            while not is_over.wait(STEP_S):
                with self.lock:
                    self.slurm.step()
                    changes = self.slurm.table.changes
                if changes != seen:
                    seen = changes
                    self.log.write_text(f"{changes}\n")

        thread = threading.Thread(target=step)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


@contextmanager
def benched(num_nodes: int) -> Iterator[tuple[LiveSlurm, Live]]:
    """So many nodes with a job each, without instances behind them: nothing is planned."""
    cluster = load_cluster(CLUSTER_FILE).cluster
    (pool,) = cluster.pools
    (kind,) = pool.instance_types
    on = Offering(kind.name, pool.zones[0], Market.SPOT)
    names = [f"i-{number:017x}" for number in range(1, num_nodes + 1)]
    with TemporaryDirectory(prefix="tidegate-bench-") as folder:
        slurm = LiveSlurm(SimSlurm(cluster, SystemClock()), Path(folder) / "slurmctld.log")
        features = pool.features(kind.name, Market.SPOT)
        for name in names:
            node = SimNode(
                name, kind.vcpus, kind.slurm_memory_mib, kind.gpus, kind.gpu_type, features
            )
            slurm.slurm.register(node)
            shape = Shape(kind.gpus, kind.gpu_type)
            slurm.slurm.submit(Submit("ada", shape, 1e6, comment=f"tidegate:ckpt=USR1@{GRACE_S}"))
        assert len(_running(slurm)) == num_nodes
        with slurm.passing(), live(slurm, slurm.log) as made:
            records = [
                NodeRecord(name, "l-0", pool.name, on, time.time(), 1.45, Phase.JOINED)
                for name in names
            ]
            made.ledger.finish_launches(Finished("l-0", LaunchStatus.DONE, records))
            made.until("a digest", made.has_digest, 30.0)
            yield slurm, made


def _running(slurm: LiveSlurm) -> list[str]:
    """The nodes with a running job."""
    with slurm.lock:
        jobs = list(slurm.slurm.jobs.values())
        return sorted(name for job in jobs if job.state == "RUNNING" for name in job.node_names)


def figures(num_notices: int = NOTICES, within_s: float = WITHIN_S) -> list[Figure]:
    with benched(num_notices) as (slurm, made):
        names = _running(slurm)
        made.warm()
        made.slurm.commands.clear()
        put_at_s = made.notify(names, within_s=within_s)
        took_s = made.drained_s(put_at_s)
        jobs = list(slurm.slurm.jobs.values())
        made.until("all requeued", lambda: all(job.requeues for job in jobs), 120.0)
        made.world.router.settle()
        lost = _not_recorded(made, names) + len(made.world.dead_letters("QueuesDead"))
        print(f"  notices in each run of the function: {made.interruptions()}")
        for kind in KINDS:
            print(f"  {kind} commands for so many names: {made.slurm.named(kind)}")
    of = f"{num_notices:,} notices in {within_s:g} s, deployed"
    last_s = max(made.slurm.drained_at_s.values()) - min(put_at_s.values())
    most = math.ceil(num_notices / NAMES_PER_COMMAND)
    wrong = sum(job.signals != ["USR1"] for job in jobs)
    return [
        Figure(f"{of}, first notice to last drained", last_s, "s", 20.0),
        Figure(f"{of}, notice to drained, p95", percentile(took_s, 95), "s"),
        *(Figure(f"{of}, {kind}s", len(made.slurm.named(kind)), "", most) for kind in KINDS),
        Figure(f"{of}, jobs not signalled once", wrong, "", 0),
        Figure(f"{of}, notices lost", lost, "", 0),
    ]


def _not_recorded(made: Live, names: Sequence[str]) -> int:
    """Nodes whose notice the ledger does not have."""
    return len(names) - sum(each.reclaim_at_s is not None for each in made.ledger.nodes(names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notices", type=int, default=NOTICES)
    parser.add_argument("--within-s", type=float, default=WITHIN_S)
    asked = parser.parse_args()
    found = figures(asked.notices, asked.within_s)
    print(table(found))
    raise SystemExit(not all(each.holds for each in found))


if __name__ == "__main__":
    main()
