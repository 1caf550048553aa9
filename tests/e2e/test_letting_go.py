"""Nodes that are let go, and those that somebody wants kept, on real Slurm and as deployed."""

import time
from collections.abc import Iterator

import pytest

from bench.letting_go import AT_MOST_S, Leaving, leaving
from local.slurm.daemons import why_not_here
from tidegate.core.model.slurm import Node

FEATURES = "gpu,t4"
IDLE_S = 5.0  # of the pool


@pytest.fixture(scope="module")
def world() -> Iterator[Leaving]:
    if reason := why_not_here():
        pytest.skip(reason)
    with leaving() as found:
        yield found


def node(world: Leaving, name: str) -> Node:
    return next(each for each in world.slurm.port.read().nodes if each.name == name)


def mark(world: Leaving, name: str, features: str) -> None:
    """As `docs/letting-go.md` tells it; of `Features=` alone Slurm takes nothing away again."""
    both = (f"AvailableFeatures={features}", f"ActiveFeatures={features}")
    world.slurm.run("scontrol", "update", f"NodeName={name}", *both)


def test_a_node_ends_within_ten_seconds_of_the_decision(world: Leaving) -> None:
    job_id, name = world.work()
    world.slurm.cancel(job_id)

    assert world.left(name) <= AT_MOST_S


def test_a_comment_and_a_feature_hold_a_node_that_has_expired_and_is_idle(world: Leaving) -> None:
    (kept_job, kept), (other_job, other) = world.work("--comment=tidegate:keep"), world.work()

    world.made.until("the other expires", lambda: node(world, other).state.is_drain, 90.0)
    assert "expired" in node(world, other).reason
    assert not node(world, kept).state.is_drain

    mark(world, kept, f"{FEATURES},tidegate:keep")
    world.slurm.cancel(kept_job)
    world.made.until("the kept node idles", lambda: node(world, kept).state.is_idle, 90.0)
    looked = world.num_looks()
    time.sleep(IDLE_S)
    world.slurm.cancel(other_job)
    world.left(other)
    world.made.until("it was looked at", lambda: world.num_looks() > looked + 2, 90.0)
    assert world.is_there(kept)
    assert node(world, kept).state.is_idle

    mark(world, kept, FEATURES)
    assert world.left(kept) <= AT_MOST_S
