"""Cluster files for tests: a good one, changes to it, and what is said about them."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import ClusterFile, load_cluster

# USD per hour of a node in it beside its instance: 100 GiB of gp3 and a public address.
BESIDE = 100 * 0.08 / 730 + 0.005

GOOD = yaml.safe_load("""
name: demo
region: us-east-1
partitions:
  gpu: {pools: [t4]}
pools:
  t4:
    instance_types: [g4dn.xlarge]
    zones: [us-east-1a]
    capacity_types: [spot, on-demand]
prices_usd_per_hour:
  g4dn.xlarge: {on-demand: 0.526, spot: 0.20}
waiting: {usd_per_job_hour: 0}
""")


def good(change: Mapping[str, object] = MappingProxyType({})) -> dict[str, Any]:
    """A good file, changed at `path.in.it`; None takes the name away."""
    data: dict[str, Any] = deepcopy(GOOD)
    for path, value in change.items():
        *parents, last = path.split(".")
        here = data
        for parent in parents:
            here = here.setdefault(parent, {})
        if value is None:
            del here[last]
        else:
            here[last] = deepcopy(value)
    return data


def load(tmp_path: Path, content: object) -> ClusterFile:
    file = tmp_path / "demo.yaml"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return load_cluster(file)


def complaint(tmp_path: Path, content: object) -> list[str]:
    """The lines of the message, without the folder's name and the alignment."""
    with pytest.raises(BadConfig) as caught:
        load(tmp_path, content)
    lines = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    return [" ".join(line.split()) for line in lines]


def problems(tmp_path: Path, content: object) -> list[str]:
    return complaint(tmp_path, content)[1:]
