"""What was synthesized once is kept, until anything that it is made of has changed."""

import os
import shutil
from pathlib import Path

import pytest

from cdk.wheels import digest
from local.assembly import FILES, NUM_KEPT, ROOT, NotSynthesized, _sources, copy_kept


def made(folder: Path) -> None:
    folder.mkdir()
    (folder / "manifest.json").write_text("whole")


def never(folder: Path) -> None:
    pytest.fail(f"{folder} is made again")


def test_the_second_who_asks_gets_a_copy_of_his_own(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "key"
    copy_kept(kept, tmp_path / "first", made)
    (tmp_path / "first" / "manifest.json").write_text("written to")

    copy_kept(kept, tmp_path / "second", never)

    assert (tmp_path / "second" / "manifest.json").read_text() == "whole"


def test_what_failed_half_way_is_not_kept(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        made(folder)
        raise NotSynthesized

    kept = tmp_path / "kept" / "key"
    with pytest.raises(NotSynthesized):
        copy_kept(kept, tmp_path / "first", fails)
    assert not kept.exists()

    copy_kept(kept, tmp_path / "second", made)
    assert (tmp_path / "second" / "manifest.json").exists()


def test_those_that_were_not_asked_for_the_longest_are_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for number in range(NUM_KEPT):
        copy_kept(folder / str(number), tmp_path / "out", made)
        os.utime(folder / str(number), (number, number))
    copy_kept(folder / "0", tmp_path / "out", never)

    copy_kept(folder / "more", tmp_path / "out", made)

    assert (folder / "0").exists()
    assert not (folder / "1").exists()


@pytest.mark.parametrize(
    "name", ["uv.lock", "userdata/lib.sh", "tidegate/data/compat.yaml", "cdk/stack.py"]
)
def test_a_change_of_any_source_makes_another(tmp_path: Path, name: str) -> None:
    for file in {*FILES, "userdata/lib.sh", "tidegate/data/compat.yaml", "cdk/stack.py"}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    before = digest(tmp_path, list(_sources(tmp_path)))

    with (tmp_path / name).open("a") as opened:
        opened.write("\n")

    assert digest(tmp_path, list(_sources(tmp_path))) != before
