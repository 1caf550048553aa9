"""What Slurm does with GPUs of several types on a node (MIG), and with GPUs in shards or by MPS.

The devices are files. `make contracts` asks later releases too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.core.buy.parts import parts_of_node
from tidegate.core.model.devices import Devices
from tidegate.core.model.slurm import Job, Node, Shape

SMALL, LARGE = "a100_1g.5gb", "a100_3g.20gb"
# How much Slurm counts of each GPU.
OF_ONE = {"shard": 4, "mps": 100}
PLACEHOLDERS = "State=FUTURE CPUs=48 RealMemory=187000"
CUT = f"NodeName=ph-m-[1-4] {PLACEHOLDERS} Gres=gpu:{SMALL}:28,gpu:{LARGE}:8 Feature=gpu,mig"
SHARED = (
    "GresTypes=gpu,mps,shard",
    f"NodeName=ph-l-[1-4] {PLACEHOLDERS} Gres=gpu:l4:2,shard:8 Feature=gpu,l4",
    f"NodeName=ph-s-[1-4] {PLACEHOLDERS} Gres=gpu:l4:2,mps:200 Feature=gpu,l4",
)


@pytest.fixture(scope="module")
def cut() -> Iterator[RealSlurm]:
    """A slurmctld of a cluster with `mig_profiles`."""
    with slurm_of_its_own(CUT) as running:
        yield running


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the prolog of each job hears, a file for each."""
    return tmp_path_factory.mktemp("prolog")


@pytest.fixture(scope="module")
def slurm(heard: Path) -> Iterator[RealSlurm]:
    """One of a cluster with `shards_per_gpu` in one pool and `mps_per_gpu` in another."""
    prolog = heard / "prolog"
    prolog.write_text(
        "#!/bin/bash\n"
        f'echo "$SLURM_JOB_GPUS:$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE." >{heard}/$SLURM_JOB_ID\n'
    )
    prolog.chmod(0o755)
    with slurm_of_its_own(CUT, *SHARED, f"Prolog={prolog}") as running:
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
    for gres in (f"gpu:{LARGE}:9", "shard:9", "mps:201"):
        with pytest.raises(AssertionError, match="Requested node configuration is not available"):
            slurm.submit(f"--gres={gres}", "--mem=100")


def shared(slurm: RealSlurm, name: str, gres: str) -> None:
    """A node with two GPUs, as its boot tells Slurm of them."""
    dev, count = f"{slurm.folder}/dev/gpu", 2 * OF_ONE[gres]
    slurm.join(
        name,
        gpu_type="l4",
        gpus=0,
        gres=f"gpu:l4:2,{gres}:{count}",
        gres_conf=f"Name=gpu Type=l4 File={dev}[0-1]\n"
        f"Name={gres} Count={count} Flags=all_sharing\n",
    )


@pytest.mark.parametrize("gres", OF_ONE)
def test_a_job_has_all_its_shards_on_one_gpu_and_nobody_has_that_whole(
    slurm: RealSlurm, gres: str
) -> None:
    shared(slurm, f"one-{gres}", gres)
    quarter, on = OF_ONE[gres] // 4, f"one-{gres}"

    three, whole = asking(slurm, f"{gres}:{3 * quarter}", on), asking(slurm, "gpu:1", on)
    until_settled(slurm, [three, whole], set())
    # One is free on the first GPU, and none on the other.
    two = asking(slurm, f"{gres}:{2 * quarter}", on)
    until_settled(slurm, [three, whole, two], {two})

    found = node(slurm, on)
    assert (found.gpus, found.gpus_alloc, found.gpus_shared) == (2, 1, 1)
    assert (found.shards, found.shared_gres) == (2 * OF_ONE[gres], gres)
    reading = slurm.port.read()
    parts = parts_of_node(found, [job for job in reading.jobs if not job.is_pending])
    assert parts is not None
    assert [parts.room(Shape(gpus=n * quarter, gres=gres)) for n in (1, 2)] == [1, 0]
    assert parts.room(Shape(gpus=1)) == 0
    slurm.clear()


@pytest.mark.parametrize("gres", OF_ONE)
def test_more_shards_than_a_gpu_has_wait_for_ever(slurm: RealSlurm, gres: str) -> None:
    """Accepted, since the node has so many: the planner says why, and buys nothing for it."""
    shared(slurm, f"two-{gres}", gres)

    job = asking(slurm, f"{gres}:{OF_ONE[gres] + 1}", f"two-{gres}")

    until_settled(slurm, [job], {job})
    slurm.clear()


def test_mps_of_all_gpus_is_given_away_and_the_prolog_hears_how_much(
    slurm: RealSlurm, heard: Path
) -> None:
    """By `all_sharing`: without it the second job would wait for the first one's GPU."""
    shared(slurm, "three", "mps")

    jobs = [asking(slurm, "mps:60", "three") for _ in range(2)]
    assert sorted(said_to_prolog(heard, job) for job in jobs) == ["0:60.", "1:60."]

    slurm.cancel(*jobs)
    assert said_to_prolog(heard, asking(slurm, "gpu:1", "three")) == "0:."
    slurm.clear()


def said_to_prolog(heard: Path, job: str) -> str:
    file = heard / job
    eventually(f"{job}'s prolog runs", lambda: file.exists() and file.read_text().endswith("\n"))
    return file.read_text().strip()
