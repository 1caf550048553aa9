"""Which classes opt in to advice, the table of it, and what the head is given of both."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdk.bootstrap import slurm_values
from local.boot.bundles import opened
from local.boot.values import HEAD
from tests.advise.test_proof import CLUSTER, LARGE, SMALL
from tidegate.core.model.errors import BadConfig
from tidegate.wire.advice import AdviceModel, AdviceRowModel, notes
from tidegate.wire.config import load_cluster, parse_cluster
from userdata.render import head_bundle, slurm_conf

POLICY = "slurm: {advice: {table: advice.yaml, classes: [{user: ada, change: [time, memory]}]}}\n"
FILE = CLUSTER.format(f"{SMALL}, {LARGE}") + POLICY
PROVED_S = 1_790_000_000
TABLE = """
cluster: bench
classes:
- user: ada
  name: train-#
  partition: gpu
  asks: {nodes: 1, gpus: 4, cpus: 8, memory_mib: 102400}
  instead: {gpus: 1, memory_mib: 22528, time_limit_s: 1190}
  why: [gpus-unused, memory-unused]
  proved_at: 2026-09-21T14:13:20Z
  runs: 103
  saves_usd: 410.2
  between_usd: [301.1, 522.8]
"""


def cluster(folder: Path, table: str | None = TABLE, text: str = FILE) -> Path:
    if table is not None:
        (folder / "advice.yaml").write_text(table)
    path = folder / "bench.yaml"
    path.write_text(text)
    return path


def rows(folder: Path) -> tuple[AdviceRowModel, ...]:
    return load_cluster(cluster(folder)).advised


def policy(*classes: dict[str, Any]) -> AdviceModel:
    return AdviceModel.model_validate({"table": "advice.yaml", "classes": classes})


def test_the_head_gets_the_lines_that_a_class_opts_in_to(tmp_path: Path) -> None:
    values = slurm_values(load_cluster(cluster(tmp_path)))

    files = opened(head_bundle(replace(HEAD, slurm=values)))

    (line,) = files["files/advice"].splitlines()
    assert line.split("\t")[:10] == ["ada", "train-#", "gpu", "", "1", "4", "", "8", "102400", ""]
    assert line.split("\t")[10:15] == ["", "", "", "22528", "20"]  # GPUs did not opt in
    assert line.split("\t")[15:] == [
        "2026-09-21",
        str(PROVED_S + 60 * 86_400),
        "gpus-unused,memory-unused",
    ]
    assert "JobSubmitPlugins=lua\n" in files["files/slurm.conf"]
    assert "submit_estimate" not in files["files/job_submit.lua"]


def test_the_first_class_that_an_account_may_be_of_comes_first(tmp_path: Path) -> None:
    of = policy(
        {"account": "Vision", "name": "train-#", "change": ["time"]},
        {"user": "bob", "change": ["gpus"]},
        {"partition": "gpu", "change": ["gpus"]},
    )

    found = [line.split("\t") for line in of.lines(rows(tmp_path))]

    assert [(each[3], each[10], each[14]) for each in found] == [
        ("vision", "", "20"),
        ("", "1", ""),
    ]


def test_plugins_of_the_site_stay_before_ours(tmp_path: Path) -> None:
    text = FILE.replace("slurm: {", "slurm: {settings: {JobSubmitPlugins: throttle}, ")

    values = slurm_values(load_cluster(cluster(tmp_path, text=text)))

    assert "JobSubmitPlugins=throttle,lua\n" in slurm_conf(values)


def test_without_a_table_nothing_is_followed_and_validate_says_so(tmp_path: Path) -> None:
    file = load_cluster(cluster(tmp_path, table=None))

    assert file.slurm.advice is not None
    assert slurm_values(file).advice == ()
    (said,) = notes(file.slurm.advice, file.advised, PROVED_S)
    assert "advice.yaml holds no advice, so no job is changed" in said
    assert parse_cluster(FILE, "a function's").advised == ()


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (59, ["slurm.advice.classes[1]: advice.yaml advises nothing of its jobs"]),
        (61, ["1 of 1 classes in advice.yaml were proved more than 60 days ago", "classes[1]"]),
    ],
)
def test_advice_that_does_nothing_is_told(tmp_path: Path, days: int, said: list[str]) -> None:
    of = policy({"user": "ada", "change": ["time"]}, {"user": "bob", "change": ["time"]})

    found = list(notes(of, rows(tmp_path), PROVED_S + days * 86_400))

    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("- a list", "must be a mapping"),
        (TABLE.replace("bench", "other"), "cluster  is other, and the cluster is bench"),
        (TABLE.replace("train-#", '"a\\tb"'), "classes[0].name  must be text of a line"),
        (TABLE.replace("cpus: 8", "cpus: -8"), "classes[0].asks.cpus  must be at least 0, is -8"),
        (TABLE.replace("runs: 103", "run: 103"), "unknown name; did you mean runs?"),
        (TABLE.replace("20Z", "20"), "the zone is missing"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_the_place(
    tmp_path: Path, table: str, said: str
) -> None:
    path = cluster(tmp_path, table)

    with pytest.raises(BadConfig) as refused:
        load_cluster(path)

    assert str(refused.value).startswith(str(tmp_path / "advice.yaml"))
    assert said in str(refused.value)
