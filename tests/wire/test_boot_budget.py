"""The time of a boot as data: what the page says, and what `validate` makes of it."""

import re
from pathlib import Path

import pytest
import yaml

from tests.wire.cluster_files import good
from tidegate.wire.boot_budget import NOTHING, Range, boot_steps, notes, saved_by_baking
from tidegate.wire.config import ClusterFile, parse_cluster

PAGE = Path(__file__).parents[2] / "docs" / "boot.md"


def file(**change: object) -> ClusterFile:
    return parse_cluster(yaml.safe_dump(good(change)), "demo")


def test_the_page_shows_the_budget_and_its_sum():
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in PAGE.read_text().partition("## Times")[2].partition("## ")[0].splitlines()
        if line.startswith("| ") and not line.startswith("| |")
    ]

    *steps, together = rows
    assert steps == [
        [each.name, str(each.aws), str(each.baked), str(each.baked_8_gpus), each.source]
        for each in boot_steps()
    ]
    assert together[1:4] == [
        str(sum((getattr(each, kind) for each in boot_steps()), NOTHING))
        for kind in ("aws", "baked", "baked_8_gpus")
    ]


def test_a_file_without_images_hears_what_that_costs_each_boot():
    (said,) = notes(file())

    seconds = re.search(r"(\d+)-(\d+) s", said)
    assert seconds
    assert Range(int(seconds[1]), int(seconds[2])) == saved_by_baking(file())
    assert "images: {}" in said


def test_a_driver_that_each_boot_installs_is_the_most_of_it():
    plain, installed = saved_by_baking(file()), saved_by_baking(file(image="install"))

    assert installed - plain == Range(300, 900)


def test_until_the_first_image_is_there_nothing_is_saved():
    (said,) = notes(file(images={}))

    assert said.startswith("images: until one is baked")
    assert "tidegate image bake" in said


@pytest.mark.parametrize("image", ["ami-0123456789abcdef0"])
def test_an_image_of_one_s_own_is_its_owner_s(image):
    assert list(notes(file(image=image))) == []
