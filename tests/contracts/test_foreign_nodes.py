"""A node that Tidegate did not boot, under our slurm.conf: its jobs run and nothing drains it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own

ROOT = Path(__file__).parents[2]
CONF = ROOT / "tests" / "golden" / "slurm.conf"
NODE = "rack1"


def hook_lines() -> tuple[str, ...]:
    """What our slurm.conf has slurmd run on every node."""
    found = re.findall(r"^(?:Prolog|Epilog|HealthCheck\w+)=.*$", CONF.read_text(), re.MULTILINE)
    assert {line.split("=")[0] for line in found} >= {"Prolog", "Epilog", "HealthCheckProgram"}
    return tuple(re.sub("HealthCheckInterval=.*", "HealthCheckInterval=1", line) for line in found)


@pytest.fixture
def slurm() -> Iterator[RealSlurm]:
    with slurm_of_its_own(*hook_lines()) as made:
        made.join(NODE)
        yield made


def test_its_jobs_run_and_it_stays_open(slurm: RealSlurm):
    done = slurm.folder / "done"
    job = slurm.submit("-w", NODE, script=f"sleep 2; touch {done}")

    eventually("the job has left the queue", lambda: not slurm.state(job))

    assert done.exists()
    assert "DRAIN" not in slurm.node_words(NODE)


@pytest.mark.parametrize(
    ("context", "said", "code"),
    [
        ("prolog_slurmd", "10-first 20-fails", 3),
        ("epilog_slurmd", "10-after 20-last", 0),
        ("prolog_task", "", 0),
    ],
)
def test_ours_runs_its_scripts_by_name_until_one_fails(tmp_path, context, said, code):
    scripts = {
        "prolog.d": {"30-never": "exit 0", "20-fails": "exit 3", "10-first": "exit 0"},
        "epilog.d": {"20-last": "exit 0", "10-after": "exit 0"},
    }
    for folder, each in scripts.items():
        (tmp_path / folder).mkdir()
        for name, text in each.items():
            script = tmp_path / folder / f"{name}.sh"
            script.write_text(f"#!/bin/sh\nprintf '%s ' {name}\n{text}\n")
            script.chmod(0o755)
    source = ["bash", "-c", f"source {ROOT}/userdata/node/slurmd.sh; hooks"]
    hooks = subprocess.run(source, capture_output=True, text=True, check=True).stdout

    done = subprocess.run(
        ["bash", "-c", hooks.replace("/etc/tidegate", str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
        env={"SLURM_SCRIPT_CONTEXT": context},
    )

    assert (done.stdout.strip(), done.returncode) == (said, code)
