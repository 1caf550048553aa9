"""Stopped nodes in the cluster file: how many, and what is refused."""

import pytest

from tests.wire.cluster_files import good, load, problems

GIB_HOUR = 0.08 / 730


def test_a_pool_keeps_stopped_nodes_at_the_price_of_their_disks(tmp_path):
    change = {"pools.t4.stopped_nodes": 2, "pools.t4.capacity_types": ["on-demand"]}

    pool = load(tmp_path, good(change)).cluster.pools[0]

    assert pool.stopped_nodes == 2
    assert pool.stopped_usd_per_hour == pytest.approx(100 * GIB_HOUR)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"pools.t4.capacity_types": ["spot"]},
            "the pool buys spot alone, and only on-demand nodes are stopped: add on-demand to"
            " capacity_types, or leave it out",
        ),
        (
            {"pools.t4.capacity_types": ["on-demand"], "pools.t4.limits.nodes": 1},
            "2, and the pool has at most 1 nodes (limits.nodes)",
        ),
    ],
)
def test_stopped_nodes_that_a_pool_cannot_have_are_refused(tmp_path, change, said):
    (problem,) = problems(tmp_path, good({"pools.t4.stopped_nodes": 2, **change}))

    place, _, text = problem.strip().partition(" ")
    assert (place, text.strip()) == ("pools.t4.stopped_nodes", said)


@pytest.mark.parametrize(("limit", "most"), [({}, 10_000), ({"nodes": 7}, 7)])
def test_how_many_are_stopped_may_follow_from_the_price_of_waiting(tmp_path, limit, most):
    change = {"pools.t4.stopped_nodes": "auto", "pools.t4.limits": limit}

    pool = load(tmp_path, good(change | {"pools.t4.start_s": 90})).cluster.pools[0]

    assert (pool.is_stopped_auto, pool.stopped_nodes, pool.start_s) == (True, most, 90.0)
    assert pool.stopped_usd_per_hour == pytest.approx(100 * GIB_HOUR)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pools.t4.stopped_nodes": "many"}, "must be a whole number or auto, is many"),
        ({"pools.t4.stopped_nodes": -1}, "pools.t4.stopped_nodes must be 0-10000, is -1"),
        (
            {"pools.t4.stopped_nodes": "auto", "pools.t4.start_s": 400},
            "a start takes 400 s and a boot 300 (boot_s): stopped nodes save nothing",
        ),
    ],
)
def test_what_no_start_can_be_worth_is_refused(tmp_path, change, said):
    (problem,) = problems(tmp_path, good(change))

    assert said in problem


@pytest.mark.parametrize(("waiting", "is_told"), [({"usd_per_job_hour": 0}, True), ({}, False)])
def test_that_auto_keeps_none_where_waiting_costs_nothing_is_told(tmp_path, waiting, is_told):
    change = {"pools.t4.stopped_nodes": "auto", "waiting": waiting}

    notes = load(tmp_path, good(change)).notes

    said = "pools.t4.stopped_nodes: auto keeps none, since waiting costs nothing"
    assert any(each.startswith(said) for each in notes) == is_told
