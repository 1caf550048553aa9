"""From the decision to let a node go to its end: `python -m bench.letting_go` (root).

On real Slurm, through the deployed stack in the local cloud: the look that decides, the guarded
order, its result in a digest, and the look that terminates. On AWS the latency of EventBridge,
SQS and Lambda comes on top, three times.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.deployed import Live, live
from bench.figures import Figure, table
from local.slurm.daemons import RealSlurm, why_not_here
from local.waiting import eventually

CLUSTER_FILE = Path(__file__).with_name("letting_go.yaml")
ROUNDS = 3
PATIENCE_S = 90.0
# What an idle node waits for the next look at most; no part of what is measured.
HEARTBEAT_S = 3.0
# Of the whole order: one round, at most so long.
AT_MOST_S = 10.0


@dataclass(slots=True)
class Leaving:
    """Real nodes that the deployed planner buys and lets go again."""

    slurm: RealSlurm
    made: Live

    def work(self, *options: str) -> tuple[str, str]:
        """A job that runs until it is cancelled: its id and its node."""
        job_id = self.slurm.submit("--gres=gpu:t4:4", *options)
        self.made.until(f"job {job_id} runs", lambda: bool(self._node_of(job_id)), PATIENCE_S)
        return job_id, self._node_of(job_id)

    def _node_of(self, job_id: str) -> str:
        jobs = [job for job in self.slurm.port.read().jobs if job.job_id == job_id]
        return next((name for job in jobs if job.is_running for name in job.node_names), "")

    def decided_at_s(self, name: str) -> float:
        """When the look began that ordered the node's release; 0: none has."""
        for run in self.made.world.router.invocations:
            if any(_releases(line, name) for line in run.lines):
                return run.at_s
        return 0.0

    def num_looks(self) -> int:
        return len(self.made.world.looks())

    def is_there(self, name: str) -> bool:
        return name in self.made.world.nodes()

    def left(self, name: str) -> float:
        """Wait for its end; seconds from the decision. Both clocks are this machine's."""
        self.made.until(f"{name} ended", lambda: not self.is_there(name), PATIENCE_S)
        ended_at_s = time.time()
        at_s = eventually(f"{name} was released", lambda: self.decided_at_s(name))
        return ended_at_s - at_s


def _releases(line: str, name: str) -> bool:
    if '"look":' not in line:
        return False
    rounds = json.loads(line)["look"]["rounds"]
    made = [one for each in rounds for one in each["decisions"]]
    return any(one["code"] == "release" and name in one["nodes"] for one in made)


@contextmanager
def leaving() -> Iterator[Leaving]:
    with TemporaryDirectory(prefix="tg", dir="/tmp") as folder, RealSlurm(Path(folder)) as slurm:

        def boot(names: Sequence[str]) -> None:
            slurm.join(*names)

        with live(slurm.port, slurm.log, boot, CLUSTER_FILE, HEARTBEAT_S) as made:
            yield Leaving(slurm, made)


def figures(rounds: int = ROUNDS) -> list[Figure]:
    took_s: list[float] = []
    with leaving() as found:
        for _ in range(rounds):
            job_id, name = found.work()
            found.slurm.cancel(job_id)
            took_s.append(found.left(name))
    print(f"  ended after {' '.join(f'{each:.2f}' for each in took_s)} s")
    return [Figure("release decided to instance terminated", max(took_s), "s", AT_MOST_S)]


def main() -> None:
    if reason := why_not_here():
        raise SystemExit(reason)
    found = figures()
    print(table(found))
    raise SystemExit(not all(each.holds for each in found))


if __name__ == "__main__":
    main()
