"""A running job leaves a node that is drained for another that waits for it, as when it is moved to
spot; and its nodes' Prolog hears its comment, from which they load its data sets.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tidegate.core.model.slurm import Job, Node

type Bench = RealSlurm | SimBench

OLD, NEW = "i-00000000000000a1d", "i-00000000000000a2d"
SAYS = "tidegate:move tidegate:data=s3://sets/imagenet,tidegate:ckpt=USR1@60"
WHY = "tidegate: job 7 moves to spot, which saves 1.25 USD until its end (consolidatable: 7)"


@pytest.fixture(scope="module")
def heard() -> Iterator[Path]:
    """What each node's Prolog is told: the node, a blank, the job's comment."""
    folder = Path(mkdtemp(prefix="tgm", dir="/tmp"))
    folder.chmod(0o755)
    script = folder / "prolog"
    said = f'echo "$SLURMD_NODENAME $SLURM_JOB_COMMENT" >>{folder}/heard'
    script.write_text(f"#!/bin/sh\n{said}\n")
    script.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def real_bench(heard: Path) -> Iterator[RealSlurm]:
    with slurm_of_its_own(f"Prolog={heard}/prolog") as slurm:
        yield slurm


@pytest.fixture(params=["simulated", "real"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return SimBench() if request.param == "simulated" else request.getfixturevalue("real_bench")


def job(bench: Bench, job_id: str) -> Job:
    return next(each for each in bench.port.read().jobs if each.job_id == job_id)


def node(bench: Bench, name: str) -> Node:
    return next(each for each in bench.port.read().nodes if each.name == name)


def runs_on(bench: Bench, job_id: str, name: str) -> bool:
    found = job(bench, job_id)
    return (found.state, found.node_names) == ("RUNNING", (name,))


def test_a_job_leaves_its_drained_node_for_the_one_that_waits_for_it(
    bench: Bench, request: pytest.FixtureRequest
) -> None:
    bench.join(OLD)
    job_id = bench.submit("--gres=gpu:t4:4", f"--comment={SAYS}")
    eventually("it runs", lambda: runs_on(bench, job_id, OLD))
    bench.join(NEW, is_drained=True)

    # Its old node is closed: it runs on, and by that alone nothing starts elsewhere.
    bench.port.drain([OLD], WHY)
    bench.pause(1.0)
    assert runs_on(bench, job_id, OLD)
    assert {"DRAIN"} <= node(bench, OLD).state.words

    # Requeued before its next node is open, it waits and does not begin on the old one again.
    assert bench.port.requeue([job_id]) == {}
    eventually("its old run ended", lambda: job(bench, job_id).state == "PENDING")
    bench.pause(1.0)
    bench.port.start([job_id])
    bench.pause(1.5)
    assert job(bench, job_id).state == "PENDING"

    bench.port.undrain([NEW])
    bench.port.poke([NEW])
    eventually("it runs on the other", lambda: runs_on(bench, job_id, NEW))
    assert job(bench, job_id).restarts == 1
    eventually("the old one is free to go", lambda: node(bench, OLD).state.is_deletable)
    assert bench.port.delete([OLD]) == {}
    if isinstance(bench, RealSlurm):
        told = (request.getfixturevalue("heard") / "heard").read_text().splitlines()
        assert told == [f"{OLD} {SAYS}", f"{NEW} {SAYS}"]
