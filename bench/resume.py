"""From a failure below a job of several nodes to its next run: `python -m bench.resume`.

In virtual time by the real service, planner and agent, for each kind of failure, with a spare node
(`headroom_nodes`) and without; as root also on real Slurm through the deployed stack in the local
cloud, where a bought node joins at once. On AWS a boot takes longer, and the latency of
EventBridge, SQS and Lambda comes on top.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.deployed import Live, live
from bench.figures import Figure, table
from bench.small import T4_BIG, UNLIMITED, cluster
from local.slurm.daemons import RealSlurm, started_slurm, why_not_here
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import GATE_TAG, LAUNCH_TAG
from tidegate.core.model.slurm import SetBy, Shape
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

BOOT_S = 60.0
# From the moment in which the last node that it needs is there.
AT_MOST_S = 60.0
PATIENCE_S = 90.0
NODE = Shape(4, "t4", 1, 1000, True)
XID = "tidegate-health: xid: Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)"

# -- in virtual time -------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """A gang on two nodes, one of which is about to fail, and when what happened since then."""

    world: SimWorld
    gang: SimJob
    began_s: float = 0.0
    at_s: dict[str, float] = field(default_factory=dict)

    @property
    def good(self) -> str:
        return self.gang.node_names[0]

    @property
    def bad(self) -> str:
        return self.gang.node_names[1]

    def note(self, what: str) -> None:
        if self.began_s:
            self.at_s.setdefault(what, self.world.clock.now_s() - self.began_s)

    def listen(self) -> None:
        w = self.world
        w.compute.on_request.append(lambda _: self.note("bought"))
        w.slurm.on_join.append(lambda _: self.note("joined"))
        w.slurm.on_command.append(lambda verb, _: self.note(verb))
        w.slurm.table.on_start.append(lambda job: self.note(f"job {job.job_id} starts"))


def story(limits: Limits = UNLIMITED, *, spare_nodes: int = 0) -> Story:
    """The gang has run for a while, and the spare nodes are there."""
    w = SimWorld(cluster(T4_BIG, limits=limits, spare_nodes=spare_nodes), lambda _: BOOT_S)
    job_id = w.slurm.submit(Submit("ada", NODE, 20_000.0, nodes=2, priority=1))
    w.step(200)
    found = Story(w, w.slurm.jobs[job_id])
    assert found.gang.state == "RUNNING"
    found.listen()
    return found


def slurmd_dies(of: Story) -> None:
    of.world.slurm.die(of.bad)


def instance_ends(of: Story) -> None:
    of.world.compute.end(of.bad)
    of.world.tell_of_change(of.bad)


def gpu_fails(of: Story) -> None:
    of.world.slurm.is_drained_by(SetBy.ROOT, of.bad, XID)


FAILURES: dict[str, Callable[[Story], None]] = {
    "instance ends": instance_ends,
    "GPU fails": gpu_fails,
    "slurmd dies": slurmd_dies,
}


def virtual() -> Iterator[Figure]:
    for what, fails in FAILURES.items():
        for spare_nodes, beside in ((0, "no spare"), (1, "a spare")):
            of = story(spare_nodes=spare_nodes)
            of.began_s = of.world.clock.now_s()
            fails(of)
            of.world.step(400)
            runs_s = of.at_s["job 1 starts"]
            found_s = min(of.at_s.get(verb, runs_s) for verb in ("requeue", "down", "start"))
            ready_s = max(of.at_s["joined"], found_s) if not spare_nodes else found_s
            name = f"{what}, {beside}"
            yield Figure(f"{name}: to requeued", round(found_s, 1), "s")
            yield Figure(f"{name}: to running again", round(runs_s, 1), "s")
            late_s = round(runs_s - ready_s, 1)
            yield Figure(f"{name}: nodes there to running", late_s, "s", AT_MOST_S)


# -- on real Slurm ---------------------------------------------------------------------------


@dataclass(slots=True)
class Gang:
    """A job of several nodes on real Slurm, in the deployed cluster."""

    slurm: RealSlurm
    made: Live
    job_id: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The nodes that it runs on."""
        jobs = [job for job in self.slurm.port.read().jobs if job.job_id == self.job_id]
        return frozenset(name for job in jobs if job.is_running for name in job.node_names)

    @property
    def all_names(self) -> frozenset[str]:
        """Every node that Slurm has."""
        return frozenset(node.name for node in self.slurm.port.read().nodes)

    def runs(self, what: str, *, nodes: int) -> frozenset[str]:
        self.made.until(what, lambda: len(self.names) == nodes, PATIENCE_S)
        return self.names

    def leaves(self, name: str) -> None:
        self.made.until("it left the node", lambda: name not in self.names, PATIENCE_S)

    @property
    def bought(self) -> frozenset[str]:
        """Every node that EC2 ever gave, also those that have ended."""
        return self._tagged({"Name": "tag-key", "Values": [LAUNCH_TAG]})

    @property
    def gated(self) -> frozenset[str]:
        """Those that join drained, as their tag tells them."""
        return self._tagged({"Name": f"tag:{GATE_TAG}", "Values": ["drain"]})

    def _tagged(self, by: dict[str, object]) -> frozenset[str]:
        told = self.made.world.cloud.observer("ec2").describe_instances(Filters=[by])
        return frozenset(i["InstanceId"] for r in told["Reservations"] for i in r["Instances"])

    def ends(self, name: str) -> None:
        """The instance ends without a notice, and EC2 says so."""
        self.slurm.die(name)
        self.made.world.cloud.observer("ec2").terminate_instances(InstanceIds=[name])
        self.made.world.cloud.observer("events").put_events(Entries=[_ended(name)])


def _ended(name: str) -> dict[str, object]:
    return {
        "Source": "aws.ec2",
        "DetailType": "EC2 Instance State-change Notification",
        "Resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{name}"],
        "Detail": json.dumps({"instance-id": name, "state": "shutting-down"}),
    }


@contextmanager
def deployed() -> Iterator[Gang]:
    """A cluster whose bought nodes join at once, drained where they are meant for a gang."""
    with started_slurm() as slurm:
        found: list[Gang] = []

        def boot(names: Sequence[str]) -> None:
            gated = found[0].gated
            slurm.join(*(name for name in names if name not in gated))
            slurm.join(*(name for name in names if name in gated), is_drained=True)

        with live(slurm.port, slurm.log, boot, shared_dir=slurm.folder) as made:
            found.append(Gang(slurm, made))
            yield found[0]


def real() -> Iterator[Figure]:
    with deployed() as gang:
        for beside in ("no spare", "a spare"):
            gang.job_id = gang.slurm.submit("-N2", "--gres=gpu:t4:4", "--exclusive")
            first = gang.runs("it runs", nodes=2)
            lost = max(first)
            began_s = time.monotonic()
            gang.ends(lost)
            gang.leaves(lost)
            gang.runs("it runs again", nodes=2)
            took_s = round(time.monotonic() - began_s, 1)
            name = f"real Slurm, instance ends, {beside}: to running again"
            yield Figure(name, took_s, "s", AT_MOST_S)
            gang.slurm.cancel(gang.job_id)
            gang.job_id = gang.slurm.submit("-N3", "--gres=gpu:t4:4", "--exclusive")
            gang.runs("three nodes are there", nodes=3)
            gang.slurm.cancel(gang.job_id)


def figures() -> Iterator[Figure]:
    yield from virtual()
    if not why_not_here():
        yield from real()


if __name__ == "__main__":
    print(table(list(figures())))
