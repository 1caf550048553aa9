"""Damaged files, as `bench.fuzz` draws them by the thousand: a few of each, with every run."""

import random
from pathlib import Path

from bench.fuzz import damaged, faults_of, hidden

FILES, PAIRS = 24, 6


def test_damaged_files_are_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"

    found = [list(faults_of(each, file)) for each in damaged(random.Random(1), FILES)]

    assert [each for each in found if each] == []


def test_of_two_faults_none_hides_the_other(tmp_path: Path) -> None:
    draw = random.Random(2)

    found = [hidden(draw, tmp_path / "cluster.yaml") for _ in range(PAIRS)]

    assert [each for each in found if each] == []
