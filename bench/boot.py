"""How long head and node take from their user data to ready, in namespaces on this machine.

    python -m bench.boot

Prints every stage with its time, and the stages on the critical path: the chain of needs that
nothing else could have shortened. Then how long nodes take from the start of their user data to
ready, whose stages come from S3 or are in the image. Stub tools stand in for GPUs and EFS, so what
a driver, an EBS volume or a real mount takes is not in it: docs/boot.md has that budget.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from statistics import median

from local import namespaces
from local.boot.cloud import AWS_PORT, buy, start_cloud, template
from local.boot.machines import LOCAL_NODE, READY, are_ready, boot_head, data_of_node
from local.boot.values import A10GX4
from local.hypervisor import Hypervisor
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tidegate.wire.console import boot_lines
from userdata.image import ARCHIVE_AT
from userdata.render import node_bundle

RUNS = 5


@dataclass(frozen=True)
class Row:
    """A stage of one boot, as stages.jsonl has it."""

    stage: str
    how: str
    at_ms: int
    ms: int
    tries: int

    @property
    def end_ms(self) -> int:
        return self.at_ms + self.ms


def critical_path(rows: Sequence[Row], needs: Mapping[str, Sequence[str]]) -> list[Row]:
    """From the stage that ended last back along what each waited for longest; in order."""
    by_name = {row.stage: row for row in rows}
    path = [max(rows, key=lambda row: row.end_ms)]
    while before := [by_name[need] for need in needs[path[-1].stage]]:
        path.append(max(before, key=lambda row: row.end_ms))
    return path[::-1]


def needs_of(graph: str) -> dict[str, list[str]]:
    """By stage, of a bundle's graph: name, time-out, patience, the setting without which it is left
    out, and what it needs.
    """
    lines = (line.split() for line in graph.splitlines())
    return {name: needs for name, _, _, _, *needs in lines}


def read(role: str, machine: Machine) -> tuple[list[Row], dict[str, list[str]]]:
    lines = machine.run(["cat", "/var/log/tidegate/stages.jsonl"]).stdout.splitlines()
    graph = machine.run(["cat", f"/opt/tidegate/boot/graph.{role}"]).stdout
    return [Row(**json.loads(line)) for line in lines], needs_of(graph)


def show(role: str, machine: Machine) -> None:
    rows, needs = read(role, machine)
    path = critical_path(rows, needs)
    print(f"{role}: {max(row.end_ms for row in rows)} ms from the first stage to ready")
    for row in sorted(rows, key=lambda row: row.at_ms):
        mark = "*" if row in path else " "
        print(f"  {mark} {row.stage:<12} at {row.at_ms:>5}  {row.ms:>5} ms  {row.how}")
    print(f"  * critical path: {' '.join(row.stage for row in path)}")


def user_data_ms(machine: Machine) -> float:
    """From the first thing that a node's user data writes down until it says that it is ready."""
    began_s = float(machine.run(["stat", "-c", "%.Y", "/etc/tidegate/boot.env"]).stdout)
    (ready,) = [each for each in boot_lines(machine.console.read_text()) if READY in each.text]
    return (datetime.fromisoformat(ready.at).timestamp() - began_s) * 1000


def is_ready(machine: Machine) -> bool:
    return READY in machine.console.read_text()


def compare(world: World, data: str) -> None:
    """Nodes of either kind in turns."""
    took: dict[str, list[float]] = {"from S3": [], "in the image": []}
    for number in range(2 * RUNS):
        name = list(took)[number % 2]
        files = {ARCHIVE_AT: node_bundle().tar} if number % 2 else {}
        spec = MachineSpec(
            f"i-0ba0000000000{number:03d}",
            A10GX4.instance_type,
            data,
            gpus=4,
            tags={"tidegate:pool": "gpu"},
            files=files,
        )
        machine = world.boot(spec)
        assert wait_for(partial(is_ready, machine))
        took[name].append(user_data_ms(machine))
        world.power_off(spec.instance_id)
    for name, times_ms in took.items():
        print(f"node with its stages {name}: {median(times_ms):.0f} ms from user data to ready")


def main() -> None:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        hypervisor = Hypervisor(cloud.ec2, world)
        hypervisor.start()
        show("head", boot_head(cloud, world))
        data = data_of_node(cloud, replace(LOCAL_NODE, munge=cloud.munge))
        node_id = buy(cloud, template(cloud, "node", data), A10GX4, "on-demand", pool="gpu")
        assert wait_for(lambda: are_ready(hypervisor, [node_id]))
        machine = hypervisor.machine(node_id)
        assert machine
        show("node", machine)
        compare(world, data)
        hypervisor.stop()


if __name__ == "__main__":
    namespaces.enter()
    main()
