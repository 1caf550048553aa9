"""What sacct tells of jobs with parts of GPUs, by which histories are replayed."""

import shutil
from collections.abc import Iterator

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.test_partitions_contract import CLUSTER_ID, SCRIPT
from tests.contracts.test_shares_contract import (
    CUT,
    LARGE,
    PLACEHOLDERS,
    SHARED,
    SMALL,
    instances,
    joins_cut,
    shared,
)
from tidegate.sim.replay.trace import SACCT_COMMAND, read_trace

# One instance that fills its GPU.
FULL = "a100_7g.40gb"
FILLED = f"NodeName=ph-f-[1-4] {PLACEHOLDERS} Gres=gpu:{FULL}:8 Feature=gpu,mig"
COUNTED = f"gres/gpu,gres/gpu:{SMALL},gres/gpu:{LARGE},gres/gpu:{FULL},gres/mps,gres/shard"
JOBS = {
    f"gpu:{SMALL}:2": ("gpu", SMALL, 2),
    f"gpu:{LARGE}:1": ("gpu", LARGE, 1),
    f"gpu:{FULL}:1": ("gpu", FULL, 1),
    "shard:l4:3": ("shard", "", 3),
    "mps:50": ("mps", "", 50),
}


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    if not all(shutil.which(each, path="/usr/sbin") for each in ("slurmdbd", "mariadbd")):
        pytest.skip("real path: needs slurmdbd and mariadbd")
    with slurm_of_its_own(CUT, FILLED, *SHARED) as made:
        script = shutil.copy(SCRIPT, made.folder)
        shutil.copy(CLUSTER_ID, made.folder)
        made.run("chmod", "755", str(made.folder))
        made.run("env", f"COUNTED={COUNTED}", "bash", str(script), str(made.folder))
        made.run("sacctmgr", "-i", "add", "account", "lab")
        made.run("sacctmgr", "-i", "add", "user", "root", "account=lab")
        joins_cut(made, "m1")
        of = instances(made, FULL)
        made.join("f1", gpu_type="mig", gpus=0, gres=f"gpu:{FULL}:1", gres_conf=of)
        shared(made, "s1", "shard")
        shared(made, "p1", "mps")
        yield made


def test_a_history_says_which_parts_of_gpus_its_jobs_asked_for(slurm: RealSlurm) -> None:
    jobs = {
        slurm.submit(f"--gres={gres}", "-c1", "--mem=100", script="sleep 1"): asked
        for gres, asked in JOBS.items()
    }

    def told() -> str | bool:
        text = slurm.run(*SACCT_COMMAND.replace("2026-01-01", "now-1hours").split())
        ended = [line for line in text.splitlines() if "COMPLETED" in line.split("|")[4]]
        return len([each for each in ended if "." not in each.split("|")[0]]) == len(jobs) and text

    text = str(eventually("all of them are told", told))
    found = {job.job_id: (job.gres, job.gpu_type, job.gpus_total) for job in read_trace(text).jobs}
    assert found == jobs
