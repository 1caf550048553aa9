"""Damaged files, as `bench.fuzz` draws them by the thousand: a few of each, with every run."""

import random
from pathlib import Path

import pytest
import yaml

from bench.fuzz import CLUSTERS, damaged, faults_of, hidden
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import parse_cluster

FILES, PAIRS = 24, 6


def test_damaged_files_are_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"

    found = [list(faults_of(each, file)) for each in damaged(random.Random(1), FILES)]

    assert [each for each in found if each] == []


def test_of_two_faults_none_hides_the_other(tmp_path: Path) -> None:
    draw = random.Random(2)

    found = [hidden(draw, tmp_path / "cluster.yaml") for _ in range(PAIRS)]

    assert [each for each in found if each] == []


def test_a_bad_address_is_told_once_and_not_as_a_missing_one_too(tmp_path: Path) -> None:
    """Found as one of two faults that hid another's."""
    data = yaml.safe_load(CLUSTERS[0].read_text())
    data |= {"alarm_email": "0x10", "bill_alert": {"usd_per_month": 100}}

    with pytest.raises(BadConfig) as refused:
        parse_cluster(yaml.safe_dump(data), "dev.yaml")

    assert refused.value.problems == ("alarm_email: must be an e-mail address, is 0x10",)
