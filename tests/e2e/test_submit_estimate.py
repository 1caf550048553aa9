"""userdata/head/job_submit.lua on real Slurm: who submits is told what it will cost."""

import subprocess
import time
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.test_shares_contract import SHARED
from tidegate.agent.price_file import NAME, text_of
from tidegate.core.offers.price_list import ListedPrice
from userdata.submit import SUBMIT, submit_files

PRICES = (
    ListedPrice("gpu", "c7i.large", 0, "", 2, 3_800, 0.09),
    ListedPrice("gpu", "g4dn.xlarge", 1, "t4", 4, 15_000, 0.5),
    ListedPrice("gpu", "g4dn.12xlarge", 4, "t4", 48, 180_000, 4.0),
    ListedPrice("gpu", "g6.xlarge", 1, "l4", 4, 15_000, 0.9, 4),
    ListedPrice("gpu", "g6.12xlarge", 4, "l4", 48, 180_000, 5.0, 4),
    ListedPrice("gpu", "g6e.xlarge", 1, "l40s", 4, 30_000, 1.6, 100, "mps"),
    ListedPrice("other", "c7i.medium", 0, "", 1, 1_900, 0.01),
)
ASKED = {
    "-c1 -t60": "about 0.04 USD an hour on c7i.large; at most 0.04 USD until its time limit",
    "-G1 -t10": "about 0.50 USD an hour on g4dn.xlarge; at most 0.08 USD until its time limit",
    "--gres=gpu:2": "about 2.00 USD an hour on g4dn.12xlarge",
    "--gres=gpu:t4:2 -N2 -t1-0": "about 4.00 USD an hour on 2 x g4dn.12xlarge; at most 96.00 USD"
    " until its time limit",
    "--gpus-per-node=t4:3 --exclusive": "about 4.00 USD an hour on g4dn.12xlarge",
    "--gpus-per-task=1 -n4 -N1": "about 4.00 USD an hour on g4dn.12xlarge",
    "-n4 --mem-per-cpu=3000": "about 0.50 USD an hour on g4dn.xlarge",
    "--mem=90000 -a1-3": "about 2.00 USD an hour on g4dn.12xlarge, each task",
    "--gres=shard:3": "about 0.68 USD an hour on g6.xlarge",
    "--gres=shard:l4:4 -c5": "about 1.25 USD an hour on g6.12xlarge",
    "--gres=shard:1 --exclusive": "about 0.90 USD an hour on g6.xlarge",
    "--gres=shard:1 --exclusive -c5": "",
    "--gres=mps:50 -N2": "about 1.60 USD an hour on 2 x g6e.xlarge",
    "--gres=shard:5": "",
    "-G9": "",
}
OLD = text_of(int(time.time()) - 100_000, PRICES)


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    if not find_library("lua5.1"):
        pytest.skip("real path: needs liblua5.1")
    with slurm_of_its_own(*SHARED) as made:
        script = made.folder / SUBMIT
        text = submit_files(has_estimate=True, advice=None)[SUBMIT]
        script.write_text(text.replace("/var/lib/tidegate/prices", str(made.folder / NAME)))
        # slurmctld does not start without the script: so the head's boot, too, puts it there first.
        made.run("cp", str(script), f"/etc/slurm/{SUBMIT}")
        made.run("sh", "-c", "echo JobSubmitPlugins=lua >>/etc/slurm/slurm.conf")
        made.kill_slurmctld()
        made.start_slurmctld()
        yield made


def said(slurm: RealSlurm, *options: str) -> str:
    """What sbatch says beside the job's id; the job is taken in any case."""
    command = [*slurm.prefix, "sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr
    return done.stderr.strip().removeprefix("sbatch: ")


def test_a_submission_says_what_the_job_will_cost(slurm: RealSlurm) -> None:
    (slurm.folder / NAME).write_text(text_of(int(time.time()), PRICES))

    assert {asked: said(slurm, *asked.split()) for asked in ASKED} == ASKED


@pytest.mark.parametrize("text", [None, "", "rubbish\n", "at \ngpu x 1 t4 0 0 nan\n", OLD])
def test_without_good_prices_nothing_is_said_and_every_job_is_taken(
    slurm: RealSlurm, text: str | None
) -> None:
    path: Path = slurm.folder / NAME
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)

    assert said(slurm, "-G1") == ""
    assert "job_submit.lua:" not in slurm.log.read_text()  # where Lua tells of an error in it
