"""GPUs that jobs share in drawn worlds. Slurm's rules: tests/contracts/test_shares_contract.py."""

from dataclasses import replace

from tests.make import T4_BIG
from tidegate.core.model.devices import MPS, SHARD
from tidegate.core.model.slurm import Association, Shape
from tidegate.sim.draw import draw
from tidegate.sim.draw_shares import HOW_OFTEN
from tidegate.sim.slurm_parts import SimJob, Submit, node_of, over_cap

SHARED = replace(T4_BIG, shards_per_gpu=4)


def asks(gpus: int, gres: str = SHARD) -> Submit:
    return Submit("ada", Shape(gpus, cpus=1, memory_mib=1_000, gres=gres), duration_s=60.0)


def test_some_worlds_share_gpus_in_one_way_and_their_jobs_ask_for_parts() -> None:
    worlds = [draw(seed, faults=()) for seed in range(120)]
    ways = [
        {
            (t.shared_gres, t.shards_per_gpu)
            for p in w.cluster.pools
            for t in p.instance_types
            if t.shards_per_gpu
        }
        for w in worlds
    ]
    shapes = [
        arrival.submit.shape
        for world, way in zip(worlds, ways, strict=True)
        for arrival in (world.arrivals if way else ())
    ]

    assert max(map(len, ways)) == 1
    assert 0 < sum(map(len, ways)) < 120 * HOW_OFTEN * 2
    assert {shape.gres for shape in shapes} == {"gpu", SHARD, MPS}
    assert any(shape.is_exclusive and shape.gres != "gpu" for shape in shapes)


def test_what_a_job_had_is_free_again_on_the_gpu_on_which_it_was() -> None:
    node = node_of("i-1", SHARED, (), is_gated=False)
    jobs = [SimJob(asks(n, gres), str(n), "") for n, gres in ((3, SHARD), (2, SHARD), (1, "gpu"))]
    for job in jobs:
        node.take(job)
    shares = node.shares
    assert shares is not None
    assert (shares.free, shares.used, shares.whole) == ([1, 2, -1, 4], (3, 2), 1)

    for job in (jobs[0], jobs[2]):
        node.give_back(job)

    assert (shares.free, node.allocated()) == ([4, 2, 4, 4], (1, 1_000, 0))
    assert not node.has_room(asks(4, "gpu"))
    assert node.has_room(asks(3, "gpu"))
    assert not node_of("i-2", T4_BIG, (), is_gated=False).has_room(asks(1))


def test_shards_count_against_no_cap_on_gpus() -> None:
    cap = (Association("account a", per_job=1),)

    assert over_cap(cap, asks(2, "gpu"), ()) == "AssocMaxGRESPerJob"
    assert over_cap(cap, asks(2), ()) == ""
