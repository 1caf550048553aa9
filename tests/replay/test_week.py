"""A team that keeps hours, replayed: from its third week on nodes are there when it comes."""

from statistics import mean

from bench.week import office
from tests.replay.test_replay import EXACT, cluster
from tidegate.core.model.cluster import Cluster
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.world import World

WEEK_S = 7 * 86400.0


def at_20() -> Cluster:
    return cluster(more="waiting: {usd_per_job_hour: 20}\n")


def waits(world: World, week: int) -> float:
    return mean(run.wait_s for run in world.runs if run.job.submit_s // WEEK_S == week)


def test_the_rush_of_the_third_week_finds_its_nodes():
    world = replay(office(weeks=3), at_20(), EXACT).world

    assert waits(world, 0) > 280
    assert waits(world, 2) < 0.6 * waits(world, 0)


def test_two_jobs_teach_nothing():
    jobs = office(weeks=1).jobs[:2]

    done = replay(Trace(jobs), at_20(), EXACT)

    assert done.outcome.launches == 2
