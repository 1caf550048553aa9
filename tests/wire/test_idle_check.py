"""The check of idle nodes in the cluster file, and what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.wire.cluster_files import good, load, problems
from tests.wire.test_monitoring import EXISTING
from tidegate.core.model.idle_check import IdleCheck, PairCheck

CHECK = {"script": "/shared/dcgm.sbatch", "user": "ci", "gpu_hours_per_day": 8}


def of(**more: Any) -> dict[str, Any]:
    return {"idle_check": CHECK | more}


def test_it_is_off_by_default_and_of_pools_with_gpus(tmp_path: Path) -> None:
    assert load(tmp_path, good()).cluster.idle_check is None

    found = load(tmp_path, good(of())).cluster.idle_check

    assert found is not None
    assert "t4" in found.pools
    assert found == IdleCheck("ci", found.pools, 8.0)


def documented() -> list[dict[str, Any]]:
    """The examples of the documents, in their order."""
    text = (Path(__file__).parents[2] / "docs" / "sick-nodes.md").read_text()
    found = [yaml.safe_load(part.split("```")[0]) for part in text.split("```yaml\n")[1:]]
    return [each["idle_check"] | {"pools": ["t4"]} for each in found if "idle_check" in each]


def test_the_example_of_the_documents_is_sound(tmp_path: Path) -> None:
    file = load(tmp_path, good({"idle_check": documented()[0]}))

    assert file.cluster.idle_check == IdleCheck("ci", ("t4",), 16.0)


def test_that_of_pairs_and_the_recipe_for_dcgmi_are_sound(tmp_path: Path) -> None:
    _, pair, dcgmi = documented()
    found = pair | {"user": "ci", "script": "/a/b"}

    file = load(tmp_path, good({"idle_check": found}))

    assert file.cluster.idle_check is not None
    assert file.cluster.idle_check.pair == PairCheck(1_209_600.0, 600.0)
    assert load(tmp_path, good({"idle_check": dcgmi})).cluster.idle_check is not None


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no budget": ({"gpu_hours_per_day": 0}, "idle_check.gpu_hours_per_day"),
    "root": ({"user": "root"}, "idle_check.user must be a person"),
    "no script": ({"script": "dcgmi diag -r 1"}, "idle_check.script must begin with #!, or be an"),
    "a typo": ({"pools": ["t5"]}, "idle_check.pools[0] no pool named t5"),
    "an unknown key": ({"level": 1}, "idle_check.level"),
    "never": ({"gpu_hours_per_day": 0.1}, "idle_check.gpu_hours_per_day is 0.1, and one check of"),
    "never a pair": (
        {"gpu_hours_per_day": 0.3, "pair": {"script": "/a/b"}},
        "idle_check.gpu_hours_per_day is 0.3, and one check of two ",
    ),
    "a pair of no script": ({"pair": {}}, "idle_check.pair.script"),
    "an array": (
        {"script": "#!/bin/bash\n#SBATCH --output=/dev/null --array=0-9\ntrue\n"},
        "idle_check.script must not have #SBATCH --array: a check is one job, with one time limit",
    ),
    "an array in short": ({"script": "#!/bin/bash\n#SBATCH -a0-9\n"}, "idle_check.script must not"),
    "a job of several": (
        {"pair": {"script": "#!/bin/bash\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 1\n"}},
        "idle_check.pair.script must not have #SBATCH hetjob",
    ),
    "a time that shrinks": (
        {"script": "#!/bin/bash\n#SBATCH --time-min=1\n"},
        "idle_check.script must not have #SBATCH --time-min",
    ),
    "too often": ({"every_s": 60}, "idle_check.every_s"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, what: str) -> None:
    more, begins = FAULTS[what]

    found = problems(tmp_path, good(of(**more)))

    assert any(each.startswith(begins) for each in found), found


def test_other_options_of_sbatch_are_the_script_s_own(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -A ci --output=/dev/null\necho --array=0-9 -a hetjob\n"

    assert load(tmp_path, good(of(script=text))).idle_check is not None


def test_a_head_that_was_there_before_has_nothing_to_submit_it_with(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, good({**EXISTING, **of()}))

    assert said.startswith("idle_check existing.head is not changed, and lacks what submits")


SHORT = {"pools": ["t4"], "max_time_s": 600}
BIG = {"pools": ["t4"], "min_nodes": 2, "default": True}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"partitions": {"short": SHORT}, **of()},
            "idle_check.time_limit_s is 900, and none of the partitions of pool t4 (short) takes 1"
            " node for 15 min: it would wait to its deadline and never begin; see their"
            " max_time_s, min_nodes, max_nodes and state, or add one",
        ),
        ({"pools.t4.max_job_time_s": 600, **of()}, "idle_check.time_limit_s is 900, and none"),
        ({"partitions": {"gpu": {"pools": ["t4"], "state": "down"}}, **of()}, "idle_check.time_"),
        ({"partitions": {"big": BIG, "short": SHORT}, **of()}, "idle_check.time_limit_s is 900, a"),
        (
            {"partitions": {"one": {"pools": ["t4"], "max_nodes": 1}}}
            | of(pair={"script": "/a/b", "time_limit_s": 90}),
            "idle_check.pair.time_limit_s is 90, and none of the partitions of pool t4 (one) takes"
            " 2 nodes for 2 min",
        ),
        (
            {"partitions": {"short": SHORT}, "rollout.check": {"script": "/a/b", "user": "ci"}}
            | {"rollout.check.time_limit_s": 601},
            "rollout.check.time_limit_s is 601, and none of the partitions of pool t4 (short) takes"
            " 1 node for 11 min",
        ),
    ],
)
def test_a_check_that_no_partition_takes_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Slurm would let it pend (PartitionTimeLimit) to its deadline, and nobody would hear of it."""
    (found,) = problems(tmp_path, good(change))

    assert found.startswith(said)


def test_one_partition_that_takes_it_is_enough(tmp_path: Path) -> None:
    parts = {"short": SHORT, "long": {"pools": ["t4"], "max_time_s": 900, "default": True}}

    assert load(tmp_path, good({"partitions": parts, **of()})).cluster.idle_check is not None
