"""An image that makes bad nodes, deployed within a story; and the mended one after it."""

from dataclasses import replace

from tidegate.core.model.ec2 import SHUT_DOWN, Instance
from tidegate.core.model.site_check import is_check_name
from tidegate.sim.chaos import DEAD_MAN_S, HEALTH_GATE_S, NEVER_S, Chaos
from tidegate.sim.draw import stream
from tidegate.sim.slurm_parts import SimJob, SimNode

# What the deployment of a story makes nodes from, and the one after a bad image.
DEPLOYED, MENDED = "two-2", "three-3"

DOES_NOT_BOOT, HAS_NO_GPU, FAILS_JOBS = "does not boot", "has no GPU", "fails jobs"
IS_SLOW = "is slow"  # no job fails, and the site's check does
FAILS_AFTER_S = 2.0


def bad_image(chaos: Chaos) -> str:
    """What is wrong with what this story deploys; "": nothing."""
    if "image" not in chaos.options.faults:
        return ""
    kinds = (DOES_NOT_BOOT, HAS_NO_GPU, FAILS_JOBS, IS_SLOW)
    return stream(chaos.options.seed, "image kind").choice(kinds)


def spoil_image(chaos: Chaos) -> None:
    """From now on whatever is made from the deployed template is bad, as long as faults come."""
    world, kind = chaos.world, bad_image(chaos)
    boots, boot_well = world.boot_s, world.booted

    def is_bad(name: str) -> bool:
        return world.compute.everything[name].template == DEPLOYED and not chaos.is_over

    def boot_s(instance: Instance) -> float:
        usual_s, name = boots(instance), instance.instance_id
        if kind != DOES_NOT_BOOT or not is_bad(name):
            return usual_s
        chaos.note("image")
        off_s = HEALTH_GATE_S
        if stream(chaos.options.seed, f"image {name}").random() < 0.5:
            off_s = world.cluster.timings.boot_bound_s + DEAD_MAN_S
        world.at(world.clock.now_s() + off_s, lambda: world.compute.end(name, SHUT_DOWN))
        return NEVER_S

    def booted(node: SimNode) -> SimNode:
        found = boot_well(node)
        if kind != HAS_NO_GPU or not is_bad(node.name):
            return found
        chaos.note("image")
        memory_mib = node.memory_mib // 2
        return replace(found, gpus=0, instances=(), shares=None, memory_mib=memory_mib)

    def started(job: SimJob) -> None:
        fails = kind == FAILS_JOBS or (kind == IS_SLOW and is_check_name(job.submit.name))
        if fails and any(map(is_bad, job.node_names)):
            chaos.note("image")
            _fails_soon(chaos, job, job.starts)

    world.boot_s, world.booted = boot_s, booted
    world.slurm.table.on_start.append(started)


def _fails_soon(chaos: Chaos, job: SimJob, run: int) -> None:
    """This run of the job fails, also where it is suspended meanwhile or slurmctld is away."""
    world = chaos.world

    def fail() -> None:
        if job.starts != run or job.state not in ("RUNNING", "SUSPENDED"):
            return
        if world.slurm.is_up and job.state == "RUNNING":
            world.slurm.table.end(job, "FAILED")
        else:
            _fails_soon(chaos, job, run)

    world.at(world.clock.now_s() + FAILS_AFTER_S, fail)
