"""What Slurm does with GPUs of several types on a node (MIG) and with GPUs in shards.

The devices are files. `make contracts` asks later releases too.
"""

from collections.abc import Iterator

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.core.buy.parts import parts_of_node
from tidegate.core.model.devices import Devices
from tidegate.core.model.slurm import Job, Node, Shape

SMALL, LARGE = "a100_1g.5gb", "a100_3g.20gb"
PLACEHOLDERS = "State=FUTURE CPUs=48 RealMemory=187000"
CUT = f"NodeName=ph-m-[1-4] {PLACEHOLDERS} Gres=gpu:{SMALL}:28,gpu:{LARGE}:8 Feature=gpu,mig"
SHARDS = (
    "GresTypes=gpu,shard",
    f"NodeName=ph-l-[1-4] {PLACEHOLDERS} Gres=gpu:l4:2,shard:8 Feature=gpu,l4",
)


@pytest.fixture(scope="module")
def cut() -> Iterator[RealSlurm]:
    """A slurmctld of a cluster with `mig_profiles`."""
    with slurm_of_its_own(CUT) as running:
        yield running


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    """One of a cluster with `shards_per_gpu`."""
    with slurm_of_its_own(CUT, *SHARDS) as running:
        yield running


def instances(slurm: RealSlurm, *types: str) -> str:
    """gres.conf of a node with these instances, each of three files as MIG's are."""
    dev = f"{slurm.folder}/dev/gpu"
    return "".join(
        f"Name=gpu Type={each} MultipleFiles={dev}0,{dev}{number + 1},{dev}{number + 2}\n"
        for number, each in enumerate(types)
    )


def asking(slurm: RealSlurm, gres: str, node: str) -> str:
    says = f"echo gpus:$SLURM_JOB_GPUS. >{slurm.folder}/said-$SLURM_JOB_ID; sleep 300"
    return slurm.submit(f"--gres={gres}", "-w", node, "-c1", "--mem=100", script=says)


def pending(slurm: RealSlurm) -> dict[str, Job]:
    return {job.job_id: job for job in slurm.port.read().jobs if job.is_pending}


def until_settled(slurm: RealSlurm, jobs: list[str], waiting: set[str]) -> None:
    """Until exactly these of the jobs wait, and Slurm has looked at them."""

    def is_so() -> bool:
        left = pending(slurm)
        return set(left) & set(jobs) == waiting and all(
            job.reason not in ("None", "") for job in left.values()
        )

    eventually(f"{waiting} wait", is_so)


def node(slurm: RealSlurm, name: str) -> Node:
    return next(each for each in slurm.port.read().nodes if each.name == name)


def said(slurm: RealSlurm, job: str) -> str | bool:
    file = slurm.folder / f"said-{job}"
    return eventually(f"{job} says", lambda: file.exists() and file.read_text().strip())


def joins_cut(slurm: RealSlurm, name: str) -> None:
    """As the boot does it: types stand together, in the order that the node tells."""
    told = f"gpu:{SMALL}:3,gpu:{LARGE}:2"
    of = instances(slurm, *[SMALL] * 3, *[LARGE] * 2)
    slurm.join(name, gpu_type="mig", gpus=0, gres=told, gres_conf=of)


def test_jobs_get_instances_of_the_type_they_ask_for(cut: RealSlurm) -> None:
    joins_cut(cut, "m1")

    asked = (f"gpu:{SMALL}:2", f"gpu:{LARGE}:1", f"gpu:{LARGE}:1", "gpu:1", f"gpu:{SMALL}:1")
    jobs = [asking(cut, gres, "m1") for gres in asked]
    until_settled(cut, jobs, {jobs[4]})

    assert node(cut, "m1").devices == (Devices(SMALL, 3, 3), Devices(LARGE, 2, 2))
    assert [said(cut, job) for job in jobs[:4]] == ["gpus:0,1.", "gpus:3.", "gpus:4.", "gpus:2."]


def test_before_24_11_shards_take_instances_of_a_second_type_from_jobs(slurm: RealSlurm) -> None:
    """Such a job starts without a device: the cluster file may not have both."""
    joins_cut(slurm, "m2")

    job = asking(slurm, f"gpu:{LARGE}:2", "m2")

    assert said(slurm, job) == ("gpus:3,4." if slurm.release >= (24, 11) else "gpus:.")
    slurm.clear()


def test_what_no_node_could_hold_is_refused_when_it_is_submitted(slurm: RealSlurm) -> None:
    for gres in (f"gpu:{LARGE}:9", "shard:9"):
        with pytest.raises(AssertionError, match="Requested node configuration is not available"):
            slurm.submit(f"--gres={gres}", "--mem=100")


def shared(slurm: RealSlurm, name: str) -> None:
    dev = f"{slurm.folder}/dev/gpu"
    slurm.join(
        name,
        gpu_type="l4",
        gpus=0,
        gres="gpu:l4:2,shard:8",
        gres_conf=f"Name=gpu Type=l4 File={dev}[0-1]\nName=shard Count=8\n",
    )


def test_a_job_has_all_its_shards_on_one_gpu_and_nobody_has_that_whole(slurm: RealSlurm) -> None:
    shared(slurm, "s1")

    three, whole = asking(slurm, "shard:3", "s1"), asking(slurm, "gpu:1", "s1")
    until_settled(slurm, [three, whole], set())
    two = asking(slurm, "shard:2", "s1")  # one is free on the first GPU, and none on the other
    until_settled(slurm, [three, whole, two], {two})

    found = node(slurm, "s1")
    assert (found.gpus, found.gpus_alloc, found.shards, found.gpus_shared) == (2, 1, 8, 1)
    reading = slurm.port.read()
    parts = parts_of_node(found, [job for job in reading.jobs if not job.is_pending])
    assert parts is not None
    assert [parts.room(Shape(gpus=n, gres="shard")) for n in (1, 2)] == [1, 0]
    assert parts.room(Shape(gpus=1)) == 0
    slurm.clear()


def test_more_shards_than_a_gpu_has_wait_for_ever(slurm: RealSlurm) -> None:
    """Accepted, since the node has so many: the planner says why, and buys nothing for it."""
    shared(slurm, "s2")

    job = asking(slurm, "shard:5", "s2")

    until_settled(slurm, [job], {job})
    slurm.clear()
