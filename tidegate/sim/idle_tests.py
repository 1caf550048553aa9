"""Idle nodes that a site's checks test, alone and in pairs: some fail, or a check errs."""

from tidegate.core.model.idle_check import is_idle_check_name, is_pair_check_name
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.slurm_parts import SimJob

FAILS_AFTER_S = 20.0
# Of nodes, in a story in which the check is right.
BAD = 0.2
ERRS = 0.3
# Of pairs, where their check errs: one that always fails would condemn nobody.
ERRS_OF_PAIRS = 0.7


def spoil_tests(chaos: Chaos) -> None:
    """Until the faults end, tests of bad nodes fail; of one that errs all. A pair fails where one
    of it is bad; where their check errs, most pairs do.
    """
    world, seed = chaos.world, chaos.options.seed
    share = 1.0 if stream(seed, "test errs").random() < ERRS else BAD
    pairs_err = stream(seed, "test of pairs errs").random() < ERRS

    def sick(job: SimJob) -> list[str]:
        names = job.submit.node_name.split(",")
        if not is_pair_check_name(job.submit.name):
            return [n for n in names if stream(seed, f"test of {n}").random() < share]
        if pairs_err:
            return names if stream(seed, job.submit.name).random() < ERRS_OF_PAIRS else []
        return [name for name in names if stream(seed, f"pairs of {name}").random() < BAD]

    def started(job: SimJob) -> None:
        if not is_idle_check_name(job.submit.name) or chaos.is_over:
            return
        if found := sick(job):
            run = job.starts
            chaos.note("tests")
            world.at(world.clock.now_s() + FAILS_AFTER_S, lambda: _fail(chaos, job, run, found))

    world.slurm.table.on_start.append(started)


def _fail(chaos: Chaos, job: SimJob, run: int, sick: list[str]) -> None:
    if chaos.world.slurm.is_up and job.state == "RUNNING" and job.starts == run:
        chaos.sickened.update(sick)
        chaos.world.slurm.table.end(job, "FAILED")
