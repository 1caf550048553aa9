"""Notices on a real slurmctld with many slurmd: `python -m bench.interruption_real` (root).

From the event on the default bus, through rule, queue, function and orders as deployed, to the
drained node and to the signal in the job's script. Lambda's batching window of a second is in
these figures; on AWS the latency of EventBridge, SQS and Lambda themselves comes on top.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import batched
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.deployed import Live, live
from bench.figures import Figure, percentile, table
from local.slurm.daemons import RealSlurm, why_not_here

SINGLES, STORM = 20, 64
NODES_PER_COMMAND = 50
JOIN_AT_ONCE = 8
SINGLES_APART_S = 4.0
# Jobs that ask for 90 s are requeued then, a reclaim comes after 120 s.
REQUEUED_S = 120.0
# `wait` is over as soon as the signal comes, and costs nothing meanwhile.
SCRIPT = "trap 'date +%s.%N > {file}' USR1; for i in 1 2 3 4 5; do sleep 600 & wait; done"


@dataclass(slots=True)
class Bench:
    """A cluster of real nodes with a job each."""

    slurm: RealSlurm
    made: Live

    def notes(self, name: str) -> Path:
        return self.slurm.folder / "out" / name

    def requeued(self) -> frozenset[str]:
        """The jobs that a command has named."""
        done = self.made.slurm.commands
        return frozenset(job for kind, ids, _ in done if kind == "requeue" for job in ids)

    def signalled_s(self, put_at_s: dict[str, float]) -> list[float]:
        """From each notice to the moment in which its job's script ran its trap."""

        def said(name: str) -> str:
            return self.notes(name).read_text() if self.notes(name).exists() else ""

        self.made.until("all signalled", lambda: all(said(name) for name in put_at_s), 60.0)
        return [float(said(name)) - put_at_s[name] for name in put_at_s]


@contextmanager
def benched(num_nodes: int) -> Iterator[Bench]:
    """As many nodes as there are jobs, bought by the planner."""
    with TemporaryDirectory(prefix="tg", dir="/tmp") as folder, RealSlurm(Path(folder)) as slurm:

        def boot(names: Sequence[str]) -> None:
            for chunk in batched(names, JOIN_AT_ONCE, strict=False):
                slurm.join(*chunk)

        with live(slurm.port, slurm.log, boot) as made:
            bench = Bench(slurm, made)
            # The script knows its node: the trap's note carries the name.
            script = SCRIPT.format(file=f"{bench.notes('$SLURMD_NODENAME')}")
            for _ in range(num_nodes):
                options = ("--gres=gpu:t4:4", "--comment=tidegate:ckpt=USR1@90")
                slurm.submit(*options, script=script)
            made.until("all run", lambda: len(_running(slurm)) == num_nodes, 300.0)
            made.stop_boots()
            time.sleep(3)
            yield bench


def _running(slurm: RealSlurm) -> list[str]:
    """The nodes with a running job."""
    return sorted(
        name for job in slurm.port.read().jobs if job.is_running for name in job.node_names
    )


def _jobs_on(slurm: RealSlurm, names: Sequence[str]) -> frozenset[str]:
    """The jobs that run there."""
    jobs = (job for job in slurm.port.read().jobs if job.is_running)
    return frozenset(job.job_id for job in jobs if not set(names).isdisjoint(job.node_names))


def singles(bench: Bench) -> list[Figure]:
    """One notice after the other."""
    cold_s = bench.made.warm()
    put_at_s: dict[str, float] = {}
    for name in _running(bench.slurm):
        put_at_s |= bench.made.notify([name])
        # The replacement is bought before the next notice comes.
        time.sleep(SINGLES_APART_S)
    drained_s, signalled_s = bench.made.drained_s(put_at_s), bench.signalled_s(put_at_s)
    print(f"  drained after {_shown(drained_s)} s, signalled after {_shown(signalled_s)} s")
    return [
        Figure("first run of the function, cold, on this machine", cold_s, "s"),
        Figure("notice put to drained, median", median(drained_s), "s"),
        Figure("notice put to drained, p95", percentile(drained_s, 95), "s", 1.5),
        Figure("notice put to signal in the script, p95", percentile(signalled_s, 95), "s", 2.0),
    ]


def _shown(found: Sequence[float]) -> str:
    return " ".join(f"{each:.2f}" for each in sorted(found))


def storm(bench: Bench) -> list[Figure]:
    """A notice for each node at once, until the last of their jobs is requeued."""
    bench.made.warm()
    bench.made.slurm.commands.clear()
    names = _running(bench.slurm)
    jobs = _jobs_on(bench.slurm, names)
    put_at_s = bench.made.notify(names)
    drained_s, signalled_s = bench.made.drained_s(put_at_s), bench.signalled_s(put_at_s)
    most = math.ceil(len(names) / NODES_PER_COMMAND)
    of = f"storm of {len(names)} on real slurmd"
    counts = {kind: len(bench.made.slurm.named(kind)) for kind in ("drain", "signal")}
    bench.made.until("all requeued", lambda: not jobs - bench.requeued(), REQUEUED_S)
    return [
        Figure(f"{of}, last drained", max(drained_s), "s", 20.0),
        Figure(f"{of}, last signal in its script", max(signalled_s), "s", 20.0),
        *(Figure(f"{of}, {kind} commands", count, "", most) for kind, count in counts.items()),
        Figure(f"{of}, jobs requeued", len(jobs & bench.requeued()), "", len(jobs)),
        Figure(f"{of}, jobs left on their nodes", len(_jobs_on(bench.slurm, names)), "", 0),
    ]


def figures(num_singles: int = SINGLES, num_storm: int = STORM) -> list[Figure]:
    found: list[Figure] = []
    for num_nodes, measure in ((num_singles, singles), (num_storm, storm)):
        with benched(num_nodes) as bench:
            found += measure(bench)
            print(f"  notices in each run of the function: {bench.made.interruptions()}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--singles", type=int, default=SINGLES)
    parser.add_argument("--storm", type=int, default=STORM)
    asked = parser.parse_args()
    if reason := why_not_here():
        raise SystemExit(reason)
    found = figures(asked.singles, asked.storm)
    print(table(found))
    raise SystemExit(not all(each.holds for each in found))


if __name__ == "__main__":
    main()
