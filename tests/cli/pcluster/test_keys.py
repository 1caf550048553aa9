"""ParallelCluster's schema, key by key: each is translated, named as lost, or needless."""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.cli.pcluster import pools
from tidegate.cli.pcluster.codes import CODES, LossCode
from tidegate.cli.pcluster.keys import LOST, NEEDLESS, TRANSLATED
from tidegate.cli.pcluster.network import Places
from tidegate.cli.pcluster.outcome import Translated, judge
from tidegate.cli.pcluster.shape import shaped
from tidegate.cli.pcluster.translate import translate

HERE = Path(__file__).parent
KEYS = (HERE / "keys.txt").read_text().splitlines()
ENTRIES = {*TRANSLATED, *LOST, *NEEDLESS}


def entries_for(key: str) -> list[str]:
    return [each for each in ENTRIES if f"{key}.".replace("[]", "").startswith(_start(each))]


def _start(entry: str) -> str:
    return f"{entry}.".replace("[]", "")


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_schema_has_one_answer(key: str):
    assert len(entries_for(key)) == 1, entries_for(key)


def test_there_is_no_answer_for_a_key_that_does_not_exist():
    real = tuple(f"{key}.".replace("[]", "") for key in KEYS)

    unreal = [each for each in ENTRIES if not any(key.startswith(_start(each)) for key in real)]

    assert unreal == []


def nested(key: str, value: object) -> dict[str, Any]:
    """A configuration with this value at `key`, each list with one entry."""
    name, _, below = key.partition(".")
    inner: object = nested(below, value) if below else value
    return {name.removesuffix("[]"): [inner] if name.endswith("[]") else inner}


@pytest.mark.parametrize("key", sorted(LOST))
def test_what_is_lost_is_named_with_its_place_and_what_that_means(key: str):
    done = Translated({})

    judge(nested(key, "something"), done)

    (loss,) = done.losses
    assert loss.place == key.replace("[]", "[0]")
    assert loss.lost == LOST[key]
    assert len(loss.lost.means.split()) > 3


@pytest.mark.parametrize("key", sorted(LOST))
def test_what_is_not_there_or_off_is_not_lost(key: str):
    done = Translated({})

    for value in (None, {}, [], *LOST[key].unless, {"Enabled": False}):
        judge(nested(key, value), done)

    assert done.losses == []


@pytest.mark.parametrize("key", sorted(NEEDLESS))
def test_what_is_needless_is_told_with_the_reason(key: str):
    done = Translated({})

    judge(nested(key, True), done)

    (note,) = done.notes
    assert note.endswith(NEEDLESS[key])
    assert done.losses == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("HeadNode.Sssh", "no such key; did you mean Ssh?"),
        ("Scheduling.SlurmQueues[].ComputeResources[].MaxCout", "did you mean MaxCount?"),
        ("Scheduling.AwsBatchQueues", "no such key"),
        ("VpcSettings", "no such key"),
    ],
)
def test_a_key_that_parallelcluster_does_not_have_is_told(key: str, said: str):
    done = Translated({})

    judge(nested(key, "x"), done)

    (loss,) = done.losses
    assert loss.lost.code == "unknown-key"
    assert loss.lost.is_heavy
    assert said in loss.lost.means


def without(value: object, parts: list[str]) -> object:
    """The value without what is at this path, wherever lists have it."""
    name, *below = parts
    if not isinstance(value, dict) or name.removesuffix("[]") not in value:
        return value
    changed = dict(value)
    if not below:
        del changed[name.removesuffix("[]")]
    elif name.endswith("[]"):
        entries = changed[name.removesuffix("[]")]
        changed[name.removesuffix("[]")] = [without(each, below) for each in entries]
    else:
        changed[name] = without(changed[name], below)
    return changed


def result(text: Any) -> object:
    old = shaped(text)
    if isinstance(old, list):
        return [str(each) for each in old]
    region = str(text.get("Region", "us-west-2"))
    done = translate(text, old, name="old", region=region, places=Places())
    return done.file, done.losses, done.gaps, done.notes


def examples() -> Iterator[dict[str, Any]]:
    """Files that together have every translated key."""
    full = yaml.safe_load((HERE / "files" / "full.yaml").read_text())
    yield full
    other = deepcopy(full)
    del other["SharedStorage"][1]
    yield other
    for name in ("images.yaml", "linked.yaml", "people.yaml", "storage.yaml"):
        yield yaml.safe_load((HERE / "files" / name).read_text())


@pytest.mark.parametrize("key", sorted(TRANSLATED - {"Scheduling.Scheduler"}))
def test_what_counts_as_translated_makes_a_difference(key: str):
    parts = key.split(".")

    changes = [
        result(without(text, parts)) != result(text)
        for text in examples()
        if without(text, parts) != text
    ]

    assert any(changes), "in no example" if not changes else "nothing reads it"


def test_the_page_explains_every_loss_that_must_be_accepted():
    page = (HERE.parents[2] / "docs" / "migrating.md").read_text()
    told = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    code = "".join(each.read_text() for each in Path(pools.__file__).parent.glob("*.py"))

    heavy = {each.code for each in LOST.values() if each.is_heavy}
    by_value = set(re.findall(r'lose\([^")]*(?:f?"[^"]*",\s*)?"([a-z]+(?:-[a-z]+)*)"', code))

    assert (heavy | by_value) - {"without-harm"} <= told
    assert told == CODES
    for each in LossCode:
        remedy = f"{each.remedy} " if each.remedy else ""
        assert f"| `{each}` | {each.meaning} | {remedy}|" in page, each
    assert len(by_value) > 10
    assert all(f'"{each}"' in code for each in told)
