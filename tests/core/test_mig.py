"""What a GPU can be cut into, by NVIDIA's placements."""

import pytest

from tests.core.shared_gpus import A100_PROFILES, PROFILES
from tidegate.core.model.mig import (
    devices,
    instances,
    layout_text,
    layouts,
    plus,
    profile,
    uniform,
)

NUMBER = {each.name: number for number, each in enumerate(PROFILES)}


def counts(*names: str) -> tuple[int, ...]:
    found = (0,) * len(PROFILES)
    for name in names:
        found = plus(found, NUMBER[name])
    return found


@pytest.mark.parametrize(
    "names",
    [
        ["1g.5gb"] * 7,
        ["1g.10gb"] * 4,
        ["2g.10gb"] * 3 + ["1g.5gb"],
        ["2g.10gb"] * 3 + ["1g.10gb"],
        ["3g.20gb"] * 2,
        ["3g.20gb", "2g.10gb", "2g.10gb"],
        ["3g.20gb"] + ["1g.5gb"] * 4,
        ["4g.20gb", "3g.20gb"],
        ["4g.20gb", "2g.10gb", "1g.5gb"],
        ["7g.40gb"],
    ],
    ids="+".join,
)
def test_what_nvidia_s_guide_shows_is_allowed(names: list[str]) -> None:
    assert counts(*names) in layouts(PROFILES)


@pytest.mark.parametrize(
    "names",
    [
        ["1g.5gb"] * 8,
        ["4g.20gb"] * 2,  # it begins at slice 0 alone
        ["3g.20gb"] * 2 + ["1g.5gb"],  # two of them take all memory
        ["2g.10gb"] * 4,
        ["3g.20gb"] + ["1g.5gb"] * 5,
        ["7g.40gb", "1g.5gb"],
    ],
    ids="+".join,
)
def test_what_overlaps_is_not(names: list[str]) -> None:
    assert counts(*names) not in layouts(PROFILES)


def tilings(slot: int = 0) -> set[tuple[int, ...]]:
    """From this slice of memory on: it stays empty, or an instance begins there."""
    if slot >= 8:
        return {counts()}
    found = tilings(slot + 1)
    for number, each in enumerate(PROFILES):
        if slot in each.starts:
            found |= {plus(rest, number) for rest in tilings(slot + each.size)}
    return found


def test_layouts_are_all_ways_to_lay_instances_side_by_side() -> None:
    assert layouts(PROFILES) == tilings()


def test_a_gpu_holds_as_many_of_a_profile_as_nvidia_says() -> None:
    for each in PROFILES:
        alone = {c[NUMBER[each.name]] for c in layouts(PROFILES)}
        assert max(alone) == each.most == A100_PROFILES[each.name]


@pytest.mark.parametrize(
    ("name", "most"), [("1g.5gb+me", 1), ("1g.24gb+gfx", 4), ("5g.20gb", 1), ("1g.5gb", 3)]
)
def test_of_what_has_no_known_placement_no_layout_is_made(name: str, most: int) -> None:
    assert profile(name, "x", most=most, slices=7) is None


def test_a_gpu_of_four_slices_has_placements_of_its_own() -> None:
    made = [
        profile(name, name, most=most, slices=4)
        for name, most in (("1g.24gb", 4), ("2g.48gb", 2), ("4g.96gb", 1))
    ]
    four = tuple(each for each in made if each)

    assert len(four) == 3
    assert (2, 1, 0) in layouts(four)
    assert (3, 1, 0) not in layouts(four)
    assert {c for c in layouts(four) if c[2]} == {(0, 0, 1)}


def test_a_layout_is_read_as_it_was_written() -> None:
    cut = [counts("3g.20gb", "3g.20gb")] * 2 + [counts("1g.5gb", "4g.20gb", "1g.5gb")]

    text = layout_text(cut, PROFILES)

    assert text == "2=3g.20gb:2 1=1g.5gb:2/4g.20gb:1"
    assert instances(text) == {"3g.20gb": 4, "1g.5gb": 2, "4g.20gb": 1}
    assert devices(text, PROFILES) == (
        ("a100_1g.5gb", 2),
        ("a100_3g.20gb", 4),
        ("a100_4g.20gb", 1),
    )
    assert instances("rm -rf /") == {}
    assert uniform(PROFILES, 8, "a100_2g.10gb") == "8=2g.10gb:3"
