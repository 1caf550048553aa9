"""What sacct's lines mean; tests/contracts/test_partitions_contract.py asks a real one."""

import os
import subprocess
from pathlib import Path

import pytest

from tidegate.adapters.slurm_accounting import SlurmAccounting, idle_spans, parse
from tidegate.adapters.slurm_text import ParseError
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.offers.allocation import LostTime

NOW_S = 1_795_482_000.0  # 2026-11-24T01:00:00 in UTC
TRES = "billing=8,cpu=8,gres/gpu:a10g=2,gres/gpu=2,mem=15.50G,node=2"
LINE = "7|ada|vision|gpu|COMPLETED|2026-11-23T22:30:00|2026-11-23T23:00:00|2026-11-24T00:00:00|"
LINE += "{tres}|{nodes}|1001|{name}"


def line(tres: str = TRES, nodes: str = "i-0[1-2]", name: str = "train", **words: str) -> str:
    made = LINE.format(tres=tres, nodes=nodes, name=name)
    for old, new in words.items():
        made = made.replace({"ends": "2026-11-24T00:00:00"}.get(old, old), new)
    return made


FOLDED = "=i-0[1-2]|i-01,i-02"


def test_a_run_is_told_by_node():
    (run,) = parse(f"{line()}\n{FOLDED}\n", NOW_S)

    assert run.nodes == ("i-01", "i-02")
    assert (run.gpus, run.cpus, run.memory_mib) == (1.0, 4.0, 7936.0)
    assert (run.started_at_s, run.ended_at_s) == (NOW_S - 7200, NOW_S - 3600)
    assert not run.is_cut_short
    assert run.wait_s == 1800


@pytest.mark.parametrize("gres", ["shard", "mps"])
def test_a_run_is_told_with_its_part_of_shared_gpus(gres):
    (run,) = parse(f"{line(f'billing=1,cpu=2,gres/{gres}=50,mem=1G,node=2')}\n{FOLDED}\n", NOW_S)

    assert (run.gpus, run.shares) == (0.0, 25.0)


@pytest.mark.parametrize(
    ("state", "is_cut_short"),
    [
        ("COMPLETED", False),
        ("CANCELLED by 1000", False),
        ("FAILED", False),
        ("TIMEOUT", False),
        ("OUT_OF_MEMORY", False),
        ("NODE_FAIL", True),
        ("REQUEUED", True),
        ("PREEMPTED", True),
    ],
)
def test_a_run_that_its_node_or_a_requeue_ended_was_cut_short(state, is_cut_short):
    (run,) = parse(line(COMPLETED=state, nodes="i-01"), NOW_S)

    assert run.is_cut_short is is_cut_short


def test_what_still_runs_counts_until_now():
    (run,) = parse(line(COMPLETED="RUNNING", ends="Unknown", nodes="i-01"), NOW_S)

    assert run.ended_at_s == NOW_S


def test_a_name_may_hold_what_separates_the_fields():
    (run,) = parse(line(nodes="i-01", name="a|b|c"), NOW_S)

    assert run.name == "a|b|c"


def test_a_user_who_is_gone_keeps_his_number_and_his_jobs_are_not_nobodys():
    (run,) = parse(line(nodes="i-01").replace("|ada|", "||"), NOW_S)

    assert run.user == "uid 1001"


def test_a_job_without_gpus_is_no_trouble():
    (run,) = parse(line(nodes="i-01", tres="cpu=2,node=1"), NOW_S)

    assert (run.gpus, run.cpus, run.memory_mib) == (0.0, 2.0, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        line(nodes="None assigned"),
        line(nodes="i-01").replace("2026-11-23T23:00:00", "Unknown"),
        "",
    ],
)
def test_what_never_held_a_node_is_no_run(text):
    assert list(parse(text, NOW_S)) == []


@pytest.mark.parametrize(
    "text", ["7|ada|vision", line(nodes="i-01", tres="cpu=many"), line().replace("T23:00", "T2x")]
)
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(ParseError):
        list(parse(text, NOW_S))


class Here:
    """Runs commands on this machine, with a sacct and a scontrol of its own."""

    def __init__(self, folder: Path, sacct: str) -> None:
        self.folder = folder
        for name, text in (("sacct", sacct), ("scontrol", "printf '%s\\n' i-01 i-02")):
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={"PATH": f"{self.folder}:{os.environ['PATH']}"},
        )
        if done.returncode:
            raise SlurmUnavailable(done.stdout)
        return done.stdout


def test_the_head_unfolds_lists_and_is_asked_for_the_window_in_utc(tmp_path: Path):
    asks = f'echo "$TZ $*" >{tmp_path}/asked; echo a warning >&2; cat {tmp_path}/lines'
    (tmp_path / "lines").write_text(f"{line()}\n" * 500)

    runs = SlurmAccounting(Here(tmp_path, asks)).accounted(NOW_S - 86_400, NOW_S).runs

    assert {run.nodes for run in runs} == {("i-01", "i-02")}
    assert len(runs) == 500
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("UTC ")
    assert "--starttime=2026-11-23T01:00:00 --endtime=2026-11-24T01:00:00" in asked


def test_sacct_s_refusal_is_told(tmp_path: Path):
    refuses = "echo Slurm accounting storage is disabled >&2; exit 1"

    with pytest.raises(SlurmUnavailable, match="accounting storage is disabled"):
        SlurmAccounting(Here(tmp_path, refuses)).accounted(NOW_S - 60, NOW_S)


def test_an_answer_that_was_cut_off_is_no_bill(tmp_path: Path):
    class Cut(Here):
        def run(self, *argv: str) -> str:
            return super().run(*argv)[:-40]

    (tmp_path / "lines").write_text(f"{line()}\n" * 50)
    with pytest.raises(ParseError, match="cut off"):
        SlurmAccounting(Cut(tmp_path, f"cat {tmp_path}/lines")).accounted(NOW_S - 60, NOW_S)


def test_a_history_is_asked_for_with_its_steps_and_comes_whole(tmp_path: Path):
    asks = f'echo "$TZ $*" >{tmp_path}/asked; cat {tmp_path}/lines'
    (tmp_path / "lines").write_text("JobID|JobName\n" + "7.batch|a|b\n" * 500)

    said = SlurmAccounting(Here(tmp_path, asks)).history(NOW_S - 60, NOW_S, ["JobID", "JobName"])

    assert said == (tmp_path / "lines").read_text()
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("UTC ")
    assert "--format=JobID,JobName" in asked
    assert "--duplicates" in asked
    assert "--allocations" not in asked


def test_what_nodes_told_of_gpus_comes_with_both_by_days(tmp_path: Path):
    folder = tmp_path / ".tidegate" / "gpu-time"
    folder.mkdir(parents=True)
    told = f"7|i-0123456789abcdef0|{NOW_S - 1800:.0f}|60|120"
    for day, text in (("2026-11-20", f"{told}\n"), ("2026-11-23", f"{told}\n{told}|2|1\n")):
        (folder / day).write_text(text)
    (tmp_path / "lines").write_text("JobID|JobName\n7|a\n")
    port = SlurmAccounting(Here(tmp_path, f"cat {tmp_path}/lines"), str(tmp_path))

    said = port.history(NOW_S - 86_400, NOW_S, ["JobID", "JobName"]).splitlines()

    assert said == ["JobID|JobName", "7|a", f"%2026-11-23|{told}", f"%2026-11-23|{told}|2|1"]
    (tmp_path / "lines").write_text(f"{line()}\n")
    (run,) = parse(f"{line()}\n" + "".join(f"{each}\n" for each in said[2:]), NOW_S)
    assert port.accounted(NOW_S - 86_400, NOW_S).runs[0].job_id == run.job_id


def test_what_idle_nodes_were_for_comes_with_who_ran_and_not_with_a_history(tmp_path: Path):
    folder = tmp_path / ".tidegate" / "idle-time"
    folder.mkdir(parents=True)
    (folder / "2026-11-20").write_text("i-01|1|2|kept\n")
    (folder / "2026-11-23").write_text("i-01|1795474800|1795474860|kept\n")
    (tmp_path / "lines").write_text(f"{line()}\n")
    port = SlurmAccounting(Here(tmp_path, f"cat {tmp_path}/lines"), str(tmp_path))

    found = port.accounted(NOW_S - 86_400, NOW_S)

    assert found.idle == (IdleSpan("i-01", 1_795_474_800.0, 1_795_474_860.0, IdleUse.KEPT),)
    assert len(found.runs) == 1
    assert "kept" not in port.history(NOW_S - 86_400, NOW_S, ["JobID"])


@pytest.mark.parametrize(
    "text",
    [
        "%2026-11-23|i-01|1795474800|1795474860|lent",  # a newer agent's word
        "%2026-11-23|i-01|1795474800|-5|kept",
        "%2026-11-23|i-01|1795474800|kept",
        "%2026-11-23|7|i-01|1795474800|60|120",  # of a GPU
        "%rubbish",
        "7|ada|1|2|kept",
    ],
)
def test_a_line_that_says_nothing_of_an_idle_node_is_not_seen(text: str):
    assert list(idle_spans(text)) == []


def test_a_reader_of_the_version_before_does_not_see_them():
    """It knows lines that begin with %, and leaves out those that are not of GPUs."""
    told = "%2026-11-23|i-01|1795474800|1795474860|kept"

    (run,) = parse(f"{line(nodes='i-01')}\n{told}\n", NOW_S)
    assert run.gpu_times == ()


def test_what_requeued_jobs_lost_comes_with_their_runs(tmp_path: Path):
    """The line is what the agent writes; the newest of a run counts."""
    folder = tmp_path / ".tidegate" / "lost-work"
    folder.mkdir(parents=True)
    (first,) = parse(f"{line()}\n", NOW_S)
    began_s, since_s = round(first.started_at_s), round(first.started_at_s) + 60
    told = f"lost|{first.job_id}|{began_s}"
    (folder / "2026-11-23").write_text(
        f"{told}|{since_s + 90}|{since_s + 90}|{since_s + 200}|100|\n"
        f"{told}|{since_s}|{since_s + 90}|{since_s + 200}|100|60\n"
    )
    (folder / "jobs").write_text('{"works":{}}')
    (tmp_path / "lines").write_text(f"{line()}\n")
    port = SlurmAccounting(Here(tmp_path, f"cat {tmp_path}/lines"), str(tmp_path))

    (run,) = port.accounted(NOW_S - 86_400, NOW_S).runs

    assert run.lost == LostTime(float(since_s), is_rest_kept=True)
    assert "lost" not in port.history(NOW_S - 86_400, NOW_S, ["JobID"])


@pytest.mark.parametrize(
    "words",
    [
        "lost|{job}|{began}|1|2|3|100",  # one is missing
        "lost|{job}|{began}|-1|2|3|100|60",
        "lost|{job}|{began}|nan|2|3|100|60",
        "lost|8|{began}|1|2|3|100|60",  # another job
        "lost|{job}|5|1|2|3|100|60",  # another run
        "found|{job}|{began}|1|2|3|100|60",  # a newer agent's word
    ],
)
def test_a_line_that_says_nothing_of_lost_work_is_not_seen(words: str):
    (first,) = parse(f"{line()}\n", NOW_S)
    told = words.format(job=first.job_id, began=round(first.started_at_s))

    (run,) = parse(f"{line()}\n%2026-11-23|{told}\n", NOW_S)

    assert run.lost is None
    assert run.gpu_times == ()
    assert list(idle_spans(f"%2026-11-23|{told}")) == []
