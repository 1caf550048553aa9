"""The section `container_cache` of the cluster file, down to what head and nodes are told."""

from pathlib import Path
from typing import Any

import pytest

from cdk.bootstrap import containers_of
from tests.wire.cluster_files import good, load, problems
from userdata.containers import Containers

PYXIS = {"containers": "pyxis", "image": "ami-0a1b2c3d"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, Containers("pyxis")),
        ({"container_cache": {}}, Containers("pyxis", 14, 200)),
        ({"container_cache.unused_days": 3}, Containers("pyxis", 3, 200)),
        ({"container_cache.max_gib": 50}, Containers("pyxis", 14, 50)),
    ],
)
def test_images_are_shared_where_the_file_asks_for_it(
    tmp_path: Path, given: dict[str, Any], told: Containers
) -> None:
    assert containers_of(load(tmp_path, good({**PYXIS, **given}))) == told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({**PYXIS, "container_cache": {"unused_days": 0}}, "container_cache.unused_days"),
        ({**PYXIS, "container_cache": {"max_gib": 0}}, "container_cache.max_gib"),
        ({**PYXIS, "container_cache": {"days": 3}}, "container_cache.days"),
        ({"container_cache": {}}, "container_cache"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    (found,) = problems(tmp_path, good(given))

    assert found.split()[0] == said
    assert said != "container_cache" or found.endswith("needs containers: pyxis")
