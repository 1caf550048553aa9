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


def test_the_example_of_the_documents_is_sound(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sick-nodes.md").read_text()
    found = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])

    file = load(tmp_path, good({"idle_check": found["idle_check"] | {"pools": ["t4"]}}))

    assert file.cluster.idle_check == IdleCheck("ci", ("t4",), 16.0)


def test_that_of_pairs_and_the_recipe_for_dcgmi_are_sound(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sick-nodes.md").read_text()
    pair, dcgmi = (part.split("```")[0] for part in text.split("```yaml\n")[2:4])
    found = yaml.safe_load(pair)["idle_check"] | {"pools": ["t4"], "user": "ci", "script": "/a/b"}

    file = load(tmp_path, good({"idle_check": found}))

    assert file.cluster.idle_check is not None
    assert file.cluster.idle_check.pair == PairCheck(1_209_600.0, 600.0)
    again = yaml.safe_load(dcgmi)["idle_check"] | {"pools": ["t4"]}
    assert load(tmp_path, good({"idle_check": again})).cluster.idle_check is not None


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
    "too often": ({"every_s": 60}, "idle_check.every_s"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, what: str) -> None:
    more, begins = FAULTS[what]

    found = problems(tmp_path, good(of(**more)))

    assert any(each.startswith(begins) for each in found), found


def test_a_head_that_was_there_before_has_nothing_to_submit_it_with(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, good({**EXISTING, **of()}))

    assert said.startswith("idle_check existing.head is not changed, and lacks what submits")
