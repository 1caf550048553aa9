"""For how long a check may say that the GPUs of a drawn world's job have idled."""

from dataclasses import replace

from tests.make import cluster, job
from tidegate.core.model.slurm import Job
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.idle_gpus import quiet_for_s
from tidegate.sim.checks.witness import Witness
from tidegate.sim.draw import draw
from tidegate.sim.sensors import LOOK_S, ORDERED_S, Sensors, habit_of, run_of
from tidegate.sim.world import SimWorld


def idling() -> tuple[Witness, Sensors, Job]:
    """A job whose GPUs do nothing from its start, and nodes that tell of each minute."""
    world = SimWorld(cluster(), lambda instance: 60.0)
    one = replace(job(7), state="RUNNING", started_at_s=world.clock.now_s())
    habits = ((seed, habit_of(seed, run_of(one))) for seed in range(999))
    seed = next(seed for seed, habit in habits if (habit.stops_s, habit.gaps) == (0.0, 0.0))
    sensors = Sensors(world, seed)
    world.gpu_uses = sensors
    chaos = Chaos(replace(draw(0), faults=frozenset()), world)
    return Witness(world, chaos), sensors, one


def passes(sensors: Sensors, one: Job, seconds: float) -> None:
    for _ in range(int(seconds / LOOK_S)):
        sensors.world.clock.advance(LOOK_S)
        sensors([one])


def test_an_order_may_go_by_what_an_agent_knew_that_is_gone() -> None:
    witness, sensors, one = idling()
    passes(sensors, one, 600.0)
    before_s = quiet_for_s(witness, "7")

    sensors.world.restart_agent()
    passes(sensors, one, LOOK_S)
    assert before_s >= 600.0
    assert quiet_for_s(witness, "7") == before_s + LOOK_S

    passes(sensors, one, ORDERED_S + LOOK_S)
    assert quiet_for_s(witness, "7") < ORDERED_S + 4 * LOOK_S
