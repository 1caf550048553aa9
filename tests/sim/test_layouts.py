"""GPUs that are cut, in drawn worlds and on simulated nodes."""

from dataclasses import replace
from random import Random

from tests.core.shared_gpus import ONE_A100, cut
from tests.make import T4, T4_BIG, cluster, pool
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.slurm import Shape
from tidegate.sim.draw import draw
from tidegate.sim.layouts import HOW_OFTEN, KNOWN, with_layouts
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit, node_of


def asks(gpus: int, gpu_type: str, *, is_exclusive: bool = False) -> Submit:
    return Submit("ada", Shape(gpus, gpu_type, 1, 1_000, is_exclusive), duration_s=60.0)


def node() -> SimNode:
    cut_into = (("a100_1g.5gb", 4), ("a100_3g.20gb", 1))
    return node_of("i-1", ONE_A100, (), is_gated=False, instances=cut_into)


def holding(*submits: Submit) -> SimNode:
    made = node()
    for number, submit in enumerate(submits):
        made.jobs[str(number)] = SimJob(submit, str(number), "")
    return made


def test_a_job_takes_instances_of_its_type_alone() -> None:
    made = holding(asks(3, "a100_1g.5gb"))

    assert made.free_instances() == {"a100_1g.5gb": 1, "a100_3g.20gb": 1}
    assert made.has_room(asks(1, "a100_3g.20gb"))
    assert not made.has_room(asks(2, "a100_1g.5gb"))
    assert made.has_room(asks(2, ""))


def test_who_names_no_type_takes_the_first_that_are_free() -> None:
    assert holding(asks(5, "")).free_instances() == {"a100_1g.5gb": 0, "a100_3g.20gb": 0}
    assert not holding(asks(4, "")).has_room(asks(1, "a100_1g.5gb"))
    assert not holding(asks(1, "", is_exclusive=True)).has_room(asks(1, "a100_3g.20gb"))


def test_one_world_in_five_with_gpus_is_cut_and_its_jobs_ask_for_parts() -> None:
    worlds = [draw(seed, faults=()) for seed in range(60)]
    of = [[t for p in w.cluster.pools for t in p.instance_types if t.profiles] for w in worlds]
    asked = {
        arrival.submit.shape.gpu_type
        for world, types in zip(worlds, of, strict=True)
        for arrival in (world.arrivals if types else ())
    }

    assert 0 < sum(map(bool, of)) < 60 * HOW_OFTEN * 2
    assert any(name.endswith(tuple(KNOWN)) for name in asked)


def test_a_world_without_gpus_stays_as_it_is() -> None:
    of = cut(replace(ONE_A100, gpus=0, gpu_type="", profiles=()))

    assert all(with_layouts(Random(seed), of, ()) == (of, ()) for seed in range(20))


def test_headroom_that_no_type_holds_any_more_is_none() -> None:
    """A cluster file may not ask for it."""
    rooms = Headroom(Shape(gpus=4)), Headroom(Shape(gpus=1)), Headroom(Shape(cpus=4))
    of = replace(pool(types=(T4, T4_BIG)), headroom=rooms)

    drawn = [with_layouts(Random(seed), cluster(of), ())[0].pools[0] for seed in range(60)]

    kept = {
        next((t.name for t in each.instance_types if t.profiles), ""): each.headroom
        for each in drawn
    }
    assert set(kept) == {"", T4.name, T4_BIG.name}
    assert kept[""] == kept[T4.name] == rooms
    assert kept[T4_BIG.name] == rooms[1:]
