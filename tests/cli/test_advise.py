"""`tidegate advise`: from an export of sacct, or from the head's own."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.sacct_history import ran, text
from tests.advise.test_proof import CLUSTER, LARGE, SMALL, history
from tests.cli.conftest import Town
from tidegate.cli.main import app


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "bench.yaml"
    path.write_text(CLUSTER.format(f"{SMALL}, {LARGE}"))
    return path


def asked(path: Path, cluster: Path, *words: str) -> Result:
    return CliRunner().invoke(
        app, ["advise", str(path), "--cluster", str(cluster), "--boot", "30", *words]
    )


def test_the_advice_says_what_to_ask_what_it_saves_and_how_far_that_held(
    tmp_path: Path, cluster: Path
) -> None:
    path = tmp_path / "jobs.txt.gz"
    path.write_bytes(gzip.compress(text(history()).encode()))

    people = asked(path, cluster)
    found = json.loads(asked(path, cluster, "-o", "json").stdout)

    assert people.exit_code == 0, people.output
    first = next(line for line in people.stdout.splitlines() if line.startswith("ada, train-#"))
    assert first.endswith("59.6 % of all: --mem=7G")
    assert "memory-unused: asks 64 GiB of memory, used at most 5.0 in 40 runs" in people.stdout
    assert f"the cheapest that holds it: {SMALL} instead of {LARGE}" in people.stdout
    assert "checked: the first 5 days" in people.stdout
    (one,) = found["advice"]
    assert one["proposal"]["options"] == "--mem=7G"
    assert one["proposal"]["findings"][0]["code"] == "memory-unused"
    assert one["saving"]["low_usd"] > 0
    assert abs(found["held_out"]["error"]) < 0.01


def test_a_history_without_usage_is_told_how_to_be_exported(tmp_path: Path, cluster: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text(ran("7")).replace("TRESUsageInTot", "Other"))

    done = asked(path, cluster)

    assert done.exit_code == 1
    assert "TRESUsageInTot are missing; export them with sacct -a -P -D" in done.output


@pytest.mark.parametrize(
    "lines", ["", "job_id,submit_s,duration_s,gpus,nodes,partition\na,1,2,1,1,p\n"]
)
def test_what_is_no_export_of_sacct_is_refused(tmp_path: Path, cluster: Path, lines: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(lines)

    done = asked(path, cluster)

    assert (done.exit_code, "missing" in done.output) == (1, True)


def test_jobs_whose_usage_slurm_did_not_record_are_counted(tmp_path: Path, cluster: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(
        text(
            line.replace("cpu=", "no=").replace("mem=", "no=") if ".batch" in line else line
            for line in history()
        )
    )

    done = asked(path, cluster)

    assert "nothing to advise that is sure to save" in done.stdout
    assert (
        "(usage-unknown): Slurm did not record what they used: set JobAcctGatherType" in done.stdout
    )


def test_without_a_file_the_head_s_sacct_is_asked(counted: Town, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text(text(ran("7")))

    done = counted.ask("advise")

    assert done.exit_code == 0, done.output
    assert "nothing is said of this history: it was billed on 1 days" in done.output
    assert "1 class of 1 jobs (few-runs)" in done.output


def test_without_accounting_the_remedy_is_told(town: Town) -> None:
    done = town.ask("advise")

    assert done.exit_code == 1
    assert "add accounting: true to slurm" in done.output
