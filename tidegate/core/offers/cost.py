"""What a node costs until its job has ended, interruptions included."""

from math import exp, expm1

from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Pool
from tidegate.core.model.frozen import frozen

SECONDS_PER_HOUR = 3600.0

# How long a job without a time limit is taken to run.
UNKNOWN_S = 3600.0

# A job that may not be requeued is lost for good when EC2 reclaims its node; somebody has to
# notice, look and submit it again, which is dearer than the hours of its node.
LOST_JOB_FACTOR = 20.0

# What is done again is paid for again, and who waits for it waits again. And durations are guesses
# with long tails, so that little is to be lost where much was not expected. On two weeks of venus
# thinned to 1/20, `clusters/dev.yaml` lost 8.5 % of its GPU-hours with 4 and 0.9 % with 10, for 2 %
# less money; `clusters/research.yaml` 2.6 % and 1.0 %, for 1 % more.
LOST_WORK_FACTOR = 10.0

# A job that was interrupted has shown that it runs longer than was guessed, or that its nodes are
# taken back more often: each time it is taken to run so many times as long.
# `RESTARTS_MAX`: more than enough for any hazard, and far from an overflow.
RESTART_FACTOR, RESTARTS_MAX = 2.0, 64

# A job that loses nothing still pays for another boot.
PIECE_MIN_S = 1.0

# e to the power of this is more than any price can make good.
EXPONENT_MAX = 50.0


@frozen
class Expected:
    """What a job needs of one of its nodes: `hours` that are paid for, and `wait_usd`, what it
    costs that the job starts later than on the quickest node of its pools, and waits again after
    interruptions, as a part for each of its nodes.
    """

    hours: float
    wait_usd: float

    def usd(self, usd_per_hour: float) -> float:
        """What a node of this price is expected to cost until its end."""
        return usd_per_hour * self.hours + self.wait_usd


@frozen
class Again:
    """What interruptions are expected to do to a job: how often, and the hours that it is longer
    for them, boots included.
    """

    times: float = 0.0
    hours: float = 0.0


def expected(
    need: Need, *, boot_s: float, hazard_per_hour: float, checkpoint_s: float | None
) -> Expected:
    """Boot and run; with interruptions at `hazard_per_hour` on each node also the work that is
    done again, `LOST_WORK_FACTOR` times, and the boots that the job waits for again.
    `checkpoint_s`: the work that an interruption costs at most where the job does not say; None:
    all of it.
    """
    hours, times = (boot_s + run_s(need)) / SECONDS_PER_HOUR, 0.0
    if hazard_per_hour:
        again = interrupted(
            need, boot_s=boot_s, hazard_per_hour=hazard_per_hour, checkpoint_s=checkpoint_s
        )
        times = again.times
        hours += again.hours * (LOST_WORK_FACTOR if need.is_requeueable else LOST_JOB_FACTOR)
    if not need.wait_usd_per_hour:
        return Expected(hours, 0.0)
    later_s = boot_s - need.quickest_boot_s + times * boot_s
    wait_usd = need.wait_usd_per_hour * later_s / SECONDS_PER_HOUR
    return Expected(hours, wait_usd / (need.nodes + len(need.beside)))


def billed_hours(
    need: Need, *, boot_s: float, hazard_per_hour: float, checkpoint_s: float | None
) -> float:
    """The expected hours that one node of the job is paid for."""
    return expected(
        need, boot_s=boot_s, hazard_per_hour=hazard_per_hour, checkpoint_s=checkpoint_s
    ).hours


def interrupted(
    need: Need, *, boot_s: float, hazard_per_hour: float, checkpoint_s: float | None
) -> Again:
    """How often the job is expected to be interrupted, and how much longer that makes it."""
    boot, run = boot_s / SECONDS_PER_HOUR, run_s(need) / SECONDS_PER_HOUR
    hazard = hazard_per_hour * (need.nodes + len(need.beside))
    if not hazard:
        return Again()
    if not need.is_requeueable:
        chance = 1.0 - exp(-hazard * run)
        return Again(chance, (boot + run) * chance)
    loss_s = need.checkpoint_s if need.checkpoint_s is not None else checkpoint_s
    piece_s = run_s(need) if loss_s is None else max(min(loss_s, run_s(need)), PIECE_MIN_S)
    piece = piece_s / SECONDS_PER_HOUR
    restarts = min(need.restarts, RESTARTS_MAX) if loss_s is None else 0
    exponent = min(hazard * piece * RESTART_FACTOR**restarts, EXPONENT_MAX)
    # Each piece runs until it is not interrupted: the mean of a geometric series of truncated
    # attempts, less the one that counts.
    hours = run / piece * ((boot + piece / exponent) * expm1(exponent) - piece)
    return Again(run / piece * expm1(exponent), hours)


def run_s(need: Need) -> float:
    """How long the job is expected to run."""
    for known_s in (need.expected_s, need.time_limit_s):
        if known_s is not None and known_s > 0:
            return known_s
    return UNKNOWN_S


def allows_time(pool: Pool, need: Need) -> bool:
    """Whether the job's time limit is within what the pool allows."""
    if pool.max_job_time_s is None:
        return True
    return need.time_limit_s is not None and need.time_limit_s <= pool.max_job_time_s
