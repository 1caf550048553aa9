"""Idle nodes that a site's check tests: some nodes fail it, or it errs and all do."""

from tidegate.core.model.idle_check import is_idle_check_name
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.slurm_parts import SimJob

FAILS_AFTER_S = 20.0
# Of nodes, in a story in which the check is right.
BAD = 0.2
ERRS = 0.3


def spoil_tests(chaos: Chaos) -> None:
    """Until the faults end, tests of bad nodes fail; of one that errs all."""
    world, seed = chaos.world, chaos.options.seed
    share = 1.0 if stream(seed, "test errs").random() < ERRS else BAD

    def started(job: SimJob) -> None:
        if not is_idle_check_name(job.submit.name) or chaos.is_over:
            return
        name, run = job.submit.node_name, job.starts
        if stream(seed, f"test of {name}").random() < share:
            chaos.note("tests")
            world.at(world.clock.now_s() + FAILS_AFTER_S, lambda: _fail(chaos, job, run))

    world.slurm.table.on_start.append(started)


def _fail(chaos: Chaos, job: SimJob, run: int) -> None:
    if chaos.world.slurm.is_up and job.state == "RUNNING" and job.starts == run:
        chaos.sickened.add(job.submit.node_name)
        chaos.world.slurm.table.end(job, "FAILED")
