"""What Slurm does with GPUs of several types on a node (MIG), and with GPUs in shards or by MPS.

The devices are files. `make contracts` asks later releases too.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tests.make import T4_BIG, pool
from tidegate.core.buy.parts import Parts, parts_of_node
from tidegate.core.model.devices import Devices
from tidegate.core.model.slurm import Job, Node, Shape
from tidegate.sim.slurm_parts import SubmitRefused, node_of

SMALL, LARGE = "a100_1g.5gb", "a100_3g.20gb"
# How much Slurm counts of each GPU.
OF_ONE = {"shard": 4, "mps": 100}
PLACEHOLDERS = "State=FUTURE CPUs=48 RealMemory=187000"
CUT = f"NodeName=ph-m-[1-4] {PLACEHOLDERS} Gres=gpu:{SMALL}:28,gpu:{LARGE}:8 Feature=gpu,mig"
SHARED = (
    "GresTypes=gpu,mps,shard",
    f"NodeName=ph-l-[1-4] {PLACEHOLDERS} Gres=gpu:l4:2,shard:l4:8 Feature=gpu,l4",
    f"NodeName=ph-s-[1-4] {PLACEHOLDERS} Gres=gpu:l4:2,mps:l4:200 Feature=gpu,l4",
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


type Slurm = RealSlurm | SimShares


class SimShares(SimBench):
    """The simulated slurmctld of the same two pools; `tells_shards`: as from 23.11 on."""

    def __init__(self, *, tells_shards: bool) -> None:
        types = {
            gres: replace(T4_BIG, gpus=2, gpu_type="l4", shards_per_gpu=one, shared_gres=gres)
            for gres, one in OF_ONE.items()
        }
        super().__init__(*(pool(gres, (of,)) for gres, of in types.items()))
        self.types, self.port.table.tells_shards = types, tells_shards

    @property
    def release(self) -> tuple[int, int]:
        return (24, 11) if self.port.table.tells_shards else (22, 5)


@pytest.fixture(params=["real", "simulated 22.05", "simulated 24.11"])
def bench(request: pytest.FixtureRequest) -> Iterator[Slurm]:
    """The same promises, kept by the simulated slurmctld and by the real one."""
    if request.param != "real":
        yield SimShares(tells_shards=request.param.endswith("24.11"))
        return
    real: RealSlurm = request.getfixturevalue("slurm")
    yield real
    real.clear()


def asking(slurm: Slurm, gres: str, node: str, *options: str) -> str:
    folder = slurm.folder if isinstance(slurm, RealSlurm) else ""
    says = f"echo gpus:$SLURM_JOB_GPUS. >{folder}/said-$SLURM_JOB_ID\nsleep 300"
    return slurm.submit(f"--gres={gres}", "-w", node, "-c1", "--mem=100", *options, script=says)


def pending(slurm: Slurm) -> dict[str, Job]:
    return {job.job_id: job for job in slurm.port.read().jobs if job.is_pending}


def until_settled(slurm: Slurm, jobs: list[str], waiting: set[str]) -> None:
    """Until exactly these of the jobs wait, and Slurm has looked at them."""

    def is_so() -> bool:
        left = pending(slurm)
        return set(left) & set(jobs) == waiting and all(
            job.reason not in ("None", "") for job in left.values()
        )

    eventually(f"{waiting} wait", is_so)


def until_over(slurm: Slurm, job: str) -> None:
    """Until it has left its node."""
    slurm.cancel(job)
    eventually(f"{job} is over", lambda: job not in [one.job_id for one in slurm.port.read().jobs])


def node(slurm: Slurm, name: str) -> Node:
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


def test_what_no_node_could_hold_is_refused_when_it_is_submitted(bench: Slurm) -> None:
    for gres in (f"gpu:{LARGE}:9", "shard:9", "mps:201"):
        with pytest.raises(
            (AssertionError, SubmitRefused), match="Requested node configuration is not available"
        ):
            bench.submit(f"--gres={gres}", "--mem=100")


def test_who_names_the_type_of_a_shared_gpu_is_accepted_while_no_node_is_up(bench: Slurm) -> None:
    """Slurm gives shares of live nodes the type of their GPUs; placeholders have to say it."""
    for gres in ("shard:l4:1", "shard:8", "mps:l4:200"):
        assert bench.submit(f"--gres={gres}", "--mem=100")


def shared(slurm: Slurm, name: str, gres: str, gpus: int = 2) -> None:
    """A node with so many GPUs, as its boot tells Slurm of them."""
    if isinstance(slurm, SimShares):
        of = replace(slurm.types[gres], gpus=gpus)
        slurm.port.register(node_of(name, of, (gres,), is_gated=False))
        return
    dev, count = f"{slurm.folder}/dev/gpu", gpus * OF_ONE[gres]
    slurm.join(
        name,
        gpu_type="l4",
        gpus=0,
        gres=f"gpu:l4:{gpus},{gres}:{count}",
        gres_conf=f"Name=gpu Type=l4 File={dev}[0-{gpus - 1}]\n"
        f"Name={gres} Count={count} Flags=all_sharing\n",
    )


def parts_of(slurm: Slurm, name: str) -> Parts:
    """What the planner reads of it."""
    reading = slurm.port.read()
    jobs = [job for job in reading.jobs if not job.is_pending]
    parts = parts_of_node(node(slurm, name), jobs)
    assert parts is not None
    return parts


@pytest.mark.parametrize("gres", OF_ONE)
def test_a_job_has_all_its_shards_on_one_gpu_and_nobody_has_that_whole(
    bench: Slurm, gres: str
) -> None:
    shared(bench, f"one-{gres}", gres)
    quarter, on = OF_ONE[gres] // 4, f"one-{gres}"

    three, whole = asking(bench, f"{gres}:{3 * quarter}", on), asking(bench, "gpu:1", on)
    until_settled(bench, [three, whole], set())
    # One is free on the first GPU, and none on the other.
    two = asking(bench, f"{gres}:{2 * quarter}", on)
    until_settled(bench, [three, whole, two], {two})

    found = node(bench, on)
    assert (found.gpus, found.gpus_alloc, found.gpus_shared) == (2, 1, 1)
    assert (found.shards, found.shared_gres) == (2 * OF_ONE[gres], gres)
    assert found.shards_used == ((3 * quarter,) if bench.release >= (23, 11) else ())
    parts = parts_of(bench, on)
    assert [parts.room(Shape(gpus=n * quarter, gres=gres)) for n in (1, 2)] == [1, 0]
    assert parts.room(Shape(gpus=1)) == 0


@pytest.mark.parametrize("gres", OF_ONE)
def test_more_shards_than_a_gpu_has_wait_for_ever(bench: Slurm, gres: str) -> None:
    """Accepted, since the node has so many: the planner says why, and buys nothing for it."""
    shared(bench, f"two-{gres}", gres)

    job = asking(bench, f"{gres}:{OF_ONE[gres] + 1}", f"two-{gres}")

    until_settled(bench, [job], {job})


@pytest.mark.parametrize("gres", OF_ONE)
def test_the_first_gpu_with_room_is_taken_although_another_is_in_use(
    bench: Slurm, gres: str
) -> None:
    """The second has half of its shards left, and all of the first are free: it is opened."""
    quarter, on = OF_ONE[gres] // 4, f"three-{gres}"
    shared(bench, on, gres)
    first = asking(bench, f"{gres}:{3 * quarter}", on)
    half = asking(bench, f"{gres}:{2 * quarter}", on)
    until_settled(bench, [first, half], set())
    until_over(bench, first)

    one, whole = asking(bench, f"{gres}:{quarter}", on), asking(bench, "gpu:1", on)
    until_settled(bench, [half, one, whole], {whole})

    found = node(bench, on)
    assert (found.gpus_alloc, found.gpus_shared) == (0, 2)
    if bench.release >= (23, 11):
        assert found.shards_used == (quarter, 2 * quarter)


@pytest.mark.parametrize("gres", OF_ONE)
def test_a_job_gets_a_node_for_itself_and_shards_only_where_that_has_one_gpu(
    bench: Slurm, gres: str
) -> None:
    """Slurm gives it all shards of the node, and of several GPUs it gives to no job any."""
    single, double, quarter = f"five-{gres}", f"six-{gres}", OF_ONE[gres] // 4
    shared(bench, single, gres, gpus=1)
    shared(bench, double, gres)

    runs = asking(bench, f"{gres}:{quarter}", single, "--exclusive")
    waits = asking(bench, f"{gres}:{quarter}", double, "--exclusive")
    until_settled(bench, [runs, waits], {waits})

    found = node(bench, single)
    told = found.gpus_alloc, found.gpus_shared, found.shards_used
    assert told == ((0, 1, (OF_ONE[gres],)) if bench.release >= (23, 11) else (1, 0, ()))
    alone = Shape(gpus=quarter, gres=gres, is_exclusive=True)
    assert parts_of(bench, double).room(alone) == 0
    assert parts_of(bench, single).room(replace(alone, is_exclusive=False)) == 0
    until_over(bench, runs)
    assert parts_of(bench, single).room(alone) > 0


def test_mps_of_all_gpus_is_given_away_and_the_prolog_hears_how_much(
    slurm: RealSlurm, heard: Path
) -> None:
    """By `all_sharing`: without it the second job would wait for the first one's GPU."""
    shared(slurm, "four", "mps")

    jobs = [asking(slurm, "mps:60", "four") for _ in range(2)]
    assert sorted(said_to_prolog(heard, job) for job in jobs) == ["0:60.", "1:60."]

    slurm.cancel(*jobs)
    assert said_to_prolog(heard, asking(slurm, "gpu:1", "four")) == "0:."
    slurm.clear()


def said_to_prolog(heard: Path, job: str) -> str:
    file = heard / job
    eventually(f"{job}'s prolog runs", lambda: file.exists() and file.read_text().endswith("\n"))
    return file.read_text().strip()
