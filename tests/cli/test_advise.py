"""`tidegate advise`: from an export of sacct, or from the head's own."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.sacct_history import DAY_S, MONDAY_S, ran, text, tres, when
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


def test_gpus_that_nodes_saw_do_nothing_are_advised_away(tmp_path: Path) -> None:
    four, one = "g5.12xlarge: {on-demand: 5.67}", "g5.xlarge: {on-demand: 1.00}"
    cluster = tmp_path / "bench.yaml"
    made = CLUSTER.format("g5.xlarge, g5.12xlarge").replace(
        "g5.xlarge: {on-demand: 1.00}", f"{one}\n  {four}"
    )
    cluster.write_text(made)
    rows, told = [], []
    for number in range(40):
        at_s = number * DAY_S / 4
        options = {"gpus": 4, "cpus": 4, "memory_gib": 8.0, "limit": "01:20:00"}
        rows += ran(str(number + 1), at_s, **options, used=tres(memory_gib=7, cpus=3.9))  # type: ignore[arg-type]
        run = f"{number + 1}|i-0123456789abcdef0|{MONDAY_S + at_s:.0f}"
        told.append(f"%{when(at_s)[:10]}|{run}|10800|14400|4|{1 << number % 3 // 2}")
    path = tmp_path / "jobs.txt"
    path.write_text(text([*rows, *told]))

    found = json.loads(asked(path, cluster, "-o", "json").stdout)
    blind = json.loads(asked(_without(path, "%"), cluster, "-o", "json").stdout)

    (advice,) = found["advice"]
    assert advice["proposal"]["options"] == "--gres=gpu:1"
    assert advice["types"] == ["g5.12xlarge", "g5.xlarge"]
    assert advice["saving"]["low_usd"] > 0
    assert blind["advice"] == []


def _without(path: Path, begins: str) -> Path:
    lines = [each for each in path.read_text().splitlines() if not each.startswith(begins)]
    path.write_text("\n".join([*lines, ""]))
    return path


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
