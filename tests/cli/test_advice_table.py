"""`tidegate advise --write`: what the table keeps, and what is taken off it."""

from pathlib import Path

import pytest

from bench.sacct_history import DAY_S, MONDAY_S, ran, text, tres
from tests.advise.test_proof import CLUSTER, LARGE, SMALL, history, usual
from tests.cli.test_advise import asked
from tidegate.cli.advice_table import Table, lines, row, table
from tidegate.sim.advise.usage import Ran, read_usage
from tidegate.sim.replay.trace import read_trace
from tidegate.wire.advice import AdviceModel
from tidegate.wire.config import load_cluster

NOW_S = MONDAY_S + 20 * DAY_S
POLICY = "slurm: {advice: {table: advice.yaml, classes: [{user: ada, change: [memory]}]}}\n"


def ended(state: str, at_s: float, name: str = "train-9") -> list[Ran]:
    """A job that asks 7 GiB, as was advised."""
    used = tres(memory_gib=5.0, cpus=3.0)
    rows = ran("139", at_s, cpus=4, memory_gib=7, name=name, used=used, state=state)
    told = text(rows)
    return list(read_usage(told, read_trace(told), sums_gpus=True))


def again(
    runs: list[Ran],
    *,
    starts_at_s: float = NOW_S + 3600,
    now_s: float = NOW_S + DAY_S,
    advised: bool = False,
) -> Table:
    """The table after the next `--write`, whose history starts with `runs`."""
    before = [row(each, NOW_S) for each in usual().advice]
    said = usual().advice if advised else ()
    return table(said, before, runs, starts_at_s=starts_at_s, now_s=now_s, max_age_days=60)


def test_what_was_proved_is_written_and_read_again(tmp_path: Path) -> None:
    cluster, jobs = tmp_path / "bench.yaml", tmp_path / "jobs.txt"
    cluster.write_text(CLUSTER.format(f"{SMALL}, {LARGE}") + POLICY)
    jobs.write_text(text(history()))

    done = asked(jobs, cluster, "--write", str(tmp_path / "advice.yaml"))

    (made,) = load_cluster(cluster).advised
    assert (made.family, made.runs, made.why) == (("ada", "train-#", "gpu"), 40, ("memory-unused",))
    assert (made.asks.memory_mib, made.instead.memory_mib) == (64 * 1024, 7 * 1024)
    assert (made.instead.cpus, made.instead.gpus, made.instead.time_limit_s) == (None, None, None)
    assert 0 < made.between_usd[0] <= made.saves_usd <= made.between_usd[1]
    assert f"{tmp_path / 'advice.yaml'}: 1 class" in done.stdout
    assert "the head follows it from the next deployment on" in done.stdout


def test_advice_that_nobody_opts_in_to_is_told() -> None:
    made = again([])
    classes = [{"user": "bob", "change": ["time"]}]
    of_bob = AdviceModel.model_validate({"table": "t.yaml", "classes": classes})

    assert "  not followed: ada, train-#, gpu: no class of slurm.advice opts in" in list(
        lines(Path("t.yaml"), made, of_bob)
    )
    assert "the cluster file has no slurm.advice" in " ".join(lines(Path("t.yaml"), made, None))


def test_what_is_followed_stays_though_its_jobs_ask_less_now() -> None:
    made = again(ended("COMPLETED", 0))

    assert (len(made.rows), made.kept, made.ended) == (1, 1, ())
    assert made.rows[0].proved_at.timestamp() == NOW_S


def test_what_is_proved_again_is_as_new_and_what_is_too_old_goes() -> None:
    new, old = again([], advised=True), again([], now_s=NOW_S + 60 * DAY_S)

    assert [each.proved_at.timestamp() for each in new.rows] == [NOW_S + DAY_S]
    assert old.rows == ()


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "TIMEOUT"])
@pytest.mark.parametrize("advised", [True, False])
def test_a_job_that_had_too_little_takes_its_class_off(state: str, *, advised: bool) -> None:
    made = again(ended(state, 0), advised=advised)
    other = again(ended(state, 0, name="eval"), advised=advised)
    earlier = again(ended(state, 0), starts_at_s=NOW_S - 3600)

    assert (made.rows, len(other.rows), len(earlier.rows)) == ((), 1, 1)
    (said, _) = (each for each in lines(Path("t.yaml"), made, None) if "classes" not in each)
    assert said == (
        f"  taken off: ada, train-#, gpu: job 139 ended with {state} after it was advised"
    )
