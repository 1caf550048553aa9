"""userdata/head/submit_advice.lua on real Slurm: only classes that opt in ask what was advised."""

import subprocess
import time
from collections.abc import Iterator
from ctypes.util import find_library
from datetime import UTC, datetime
from typing import Any

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.core.explain.advised import about_advised
from tidegate.wire.advice import AdviceModel, AdviceRowModel
from userdata.submit import ADVICE, SUBMIT, submit_files

DAY_S = 86_400
GIB = 1024
SITE = """
function slurm_job_submit(job, parts, uid)
    if job.name == "refused" then return slurm.ERROR end
    if job.comment == "site" then job.time_limit = 45 end
    return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""
# What the class asks: as options for sbatch, and as the table has it.
LIKE = "-J train-17 -t 60 --mem=100G -c 8 --gres=gpu:4"


def row(day: float = 1, **changes: Any) -> AdviceRowModel:
    """Of jobs that are called train-#; `day`: proved so many days ago."""
    asks = {"nodes": 1, "gpus": 4, "cpus": 8, "memory_mib": 100 * GIB}
    instead = {"gpus": 1, "cpus": 2, "memory_mib": 22 * GIB, "time_limit_s": 1200}
    made = {
        "user": "root",
        "name": "train-#",
        "partition": "gpu",
        "asks": asks,
        "instead": instead,
        "why": ["gpus-unused", "memory-unused"],
        "proved_at": datetime.fromtimestamp(time.time() - day * DAY_S, UTC).isoformat(),
        "runs": 103,
        "saves_usd": 410.2,
        "between_usd": [301.1, 522.8],
    }
    return AdviceRowModel.model_validate(made | changes)


def lines(*rows: AdviceRowModel, change: str = "time memory cpus gpus", **of: str) -> str:
    """What the head reads, for one class that opts in."""
    opted = {"change": change.split(), **(of or {"user": "root"})}
    model = AdviceModel.model_validate({"table": "t.yaml", "classes": [opted]})
    return "".join(f"{line}\n" for line in model.lines(rows))


@pytest.fixture(scope="module")
def head() -> Iterator[RealSlurm]:
    if not find_library("lua5.1"):
        pytest.skip("real path: needs liblua5.1")
    with slurm_of_its_own() as made:
        script = made.folder / SUBMIT
        text = submit_files(has_estimate=False, advice=())[SUBMIT]
        site = made.folder / "site.lua"
        site.write_text(SITE)
        text = text.replace("/etc/slurm/job_submit.site.lua", str(site))
        script.write_text(text.replace(f"/etc/slurm/{ADVICE}", str(made.folder / ADVICE)))
        made.run("cp", str(script), f"/etc/slurm/{SUBMIT}")
        made.run("sh", "-c", "echo JobSubmitPlugins=require_timelimit,lua >>/etc/slurm/slurm.conf")
        made.kill_slurmctld()
        made.start_slurmctld()
        yield made


def follow(head: RealSlurm, text: str | None) -> None:
    path = head.folder / ADVICE
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)


def asks(head: RealSlurm, *options: str, script: str = "true") -> tuple[dict[str, str], str]:
    """What Slurm has of a job that was sent so, and what its user was told."""
    batch = head.folder / "batch.sh"
    batch.write_text(f"#!/bin/sh\n{script}\n")
    words = ["sbatch", "--parsable", "-H", "-o", "/dev/null", *options, str(batch)]
    done = subprocess.run(
        [*head.prefix, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr
    shown = head.run("scontrol", "-o", "show", "job", done.stdout.strip())
    found = dict(word.split("=", 1) for word in shown.split(" ") if "=" in word)
    return found, done.stderr.strip().removeprefix("sbatch: ")


def size(found: dict[str, str]) -> tuple[str, str, str, str]:
    tres = found.get("TresPerNode", found.get("TRES", ""))
    gpus = tres.replace("gres/", "").replace("gres:", "").removeprefix("gpu:")
    return found["TimeLimit"], found["MinMemoryNode"], found["CPUs/Task"], gpus


AS_ASKED = ("01:00:00", "100G", "8", "4")
LESS = ("00:20:00", "22G", "2", "1")


def test_a_job_of_a_class_that_opted_in_asks_what_was_advised_and_is_told(head: RealSlurm) -> None:
    follow(head, lines(row()))

    found, said = asks(head, *LIKE.split(), "--comment=tidegate:ckpt=USR1@9")

    assert size(found) == LESS
    assert said.startswith(
        "--time=0:20:00 instead of 1:00:00, --mem=22G instead of 100G, --cpus-per-task=2 instead of"
    )
    assert said.endswith("as asked: --comment=tidegate:as-asked")
    assert found["Comment"].startswith("tidegate:ckpt=USR1@9")
    assert found.get("TresPerTask", "cpu=2").removeprefix("cpu")[1:] == "2"  # from 23.11 on
    job = next(each for each in head.port.read().jobs if each.job_id == found["JobId"])
    assert (job.shape.gpus, job.shape.cpus, job.shape.memory_mib) == (1, 2, 22 * GIB)
    (why,) = about_advised(job)
    assert "--cpus-per-task=2 instead of 8, --gres=gpu:1 instead of gpu:4 since" in why
    assert "(gpus-unused, memory-unused)" in why


def test_only_what_the_class_lets_change_is_changed(head: RealSlurm) -> None:
    follow(head, lines(row(), change="memory", partition="gpu"))

    found, said = asks(head, *LIKE.split())

    assert size(found) == ("01:00:00", "22G", "8", "4")
    assert said.startswith("--mem=22G instead of 100G, as jobs like it used")


@pytest.mark.parametrize(
    ("options", "script"),
    [
        (f"{LIKE} --comment=tidegate:as-asked", "true"),
        (LIKE.replace("train", "other"), "true"),
        (f"{LIKE} -N2", "true"),
        (LIKE.replace("100G", "90G"), "true"),
        (LIKE.replace("-c 8", "-c 6"), "true"),
        (LIKE.replace("gpu:4", "gpu:2"), "true"),
        (f"{LIKE} -C a10g", "true"),
        (f"-t 60 : {LIKE}", "true"),
        (f"{LIKE.replace('-t 60', '-t 60 --time-min=30')}", "srun --mem=100G true"),
        (f"{LIKE} --comment={'x' * 1000}", "true"),
    ],
)
def test_what_is_other_work_or_is_exempt_is_left_as_it_is(
    head: RealSlurm, options: str, script: str
) -> None:
    follow(head, lines(row()))

    found, said = asks(head, *options.split(), script=script)

    assert said == ""
    assert found["TimeLimit"] == "01:00:00"
    assert found["MinMemoryNode"] != "22G"


def test_a_request_that_is_smaller_already_is_not_raised(head: RealSlurm) -> None:
    follow(head, lines(row()))

    found, said = asks(head, *LIKE.replace("-t 60", "-t 10").split(), script="srun -c 8 true")

    assert (said, size(found)) == ("", ("00:10:00", *AS_ASKED[1:]))


def test_steps_that_say_their_sizes_themselves_keep_them_and_lose_time_alone(
    head: RealSlurm,
) -> None:
    follow(head, lines(row()))

    found, _ = asks(head, *LIKE.split(), script="srun \\\n  --gres=gpu:4 true")

    assert size(found) == (LESS[0], *AS_ASKED[1:])


def test_without_good_advice_every_job_asks_as_it_was_sent(head: RealSlurm) -> None:
    old, of_ada = lines(row(day=61)), lines(row(user="ada"))
    for text in (None, "", "rubbish\n", "\t" * 17 + "\n", old, of_ada, lines(row(), account="ml")):
        follow(head, text)

        found, said = asks(head, *LIKE.split())

        assert (text, said, size(found)) == (text, "", AS_ASKED)
    assert "job_submit.lua:" not in head.log.read_text()  # where Lua tells of an error in it


def test_gpus_that_are_asked_in_another_way_stay(head: RealSlurm) -> None:
    follow(head, lines(row(), change="gpus"))

    asked = ("--gpus-per-node=4", "--gpus=4", "--gres=gpu:4 --mem-per-gpu=25G")
    for each in asked:
        options = LIKE.replace("--gres=gpu:4", each).replace("--mem=100G", "")
        found, said = asks(head, *options.split())
        assert said == "", found


def test_a_script_of_the_site_s_own_and_its_plugins_count_as_before(head: RealSlurm) -> None:
    follow(head, lines(row(), change="time"))

    refused = subprocess.run(
        [*head.prefix, "sbatch", "-J", "refused", "-t1", "--wrap", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    found, _ = asks(head, *LIKE.split(), "--comment=site")
    no_limit = [*head.prefix, "sbatch", "--wrap", "true"]
    unlimited = subprocess.run(no_limit, capture_output=True, text=True, check=False)

    assert refused.returncode != 0
    assert found["TimeLimit"] == "00:20:00"
    assert unlimited.returncode != 0  # require_timelimit


def test_steps_of_a_job_that_asks_less_run_with_what_it_has(head: RealSlurm) -> None:
    follow(head, lines(row()))
    head.join("n1")
    told = head.folder / "told"
    script = "srun sh -c 'echo $SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES' >" + str(told)

    found, _ = asks(head, *LIKE.split(), script=script)
    head.run("scontrol", "release", found["JobId"])

    eventually("the step has run", lambda: told.exists() and told.read_text().strip())
    assert told.read_text().split() == ["2", "0"]
    head.clear()
